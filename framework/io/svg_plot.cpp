#include "io/svg_plot.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "io/plot_axis.h"

namespace shardlab {
namespace {

// Okabe and Ito's colours without yellow, which is pale on white.
constexpr std::array<const char*, 7> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#e69f00", "#56b4e9", "#000000"};
constexpr std::size_t kMarks = 4;
static_assert(kColors.size() * kMarks == kMostSeries);

constexpr double kWidth = 760, kHeight = 460, kLeft = 78, kTop = 48, kBottom = 74, kRight = 24;
constexpr double kLetter = 6.6;  // width of one at 12 px, about
constexpr double kLegendLine = 18;

// Two decimals are finer than a screen, and the same on every machine.
std::string Px(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      // XML has no way to say the others.
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

double TextWidth(const std::string& text) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not the rest of a UTF-8 letter
  });
  return kLetter * static_cast<double>(letters);
}

class Drawing {
 public:
  explicit Drawing(const SvgPlot& plot) : plot_(plot) {
    std::vector<double> x, y;
    for (const PlotSeries& series : plot.series) {
      for (const PlotPoint& point : series.points) {
        x.push_back(point.x);
        y.push_back(point.y);
      }
    }
    x_ = MakeAxis(std::move(x), plot.x_column, plot.log_x);
    y_ = MakeAxis(std::move(y), plot.y_column, plot.log_y);
    legend_width_ = LegendWidth();
    right_ = kWidth - kRight - legend_width_;
    // Lines of a long legend need their height.
    const double lines = static_cast<double>(plot.series.size() + (plot.front.empty() ? 0 : 1));
    height_ =
        legend_width_ > 0 ? std::max(kHeight, kTop + kBottom + kLegendLine * (lines + 1)) : kHeight;
    bottom_ = height_ - kBottom;
  }

  std::string Text() {
    absl::StrAppend(&out_, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", Px(kWidth),
                    " ", Px(height_), "\" width=\"", Px(kWidth), "\" height=\"", Px(height_),
                    "\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>",
                    Escaped(plot_.title), "</title>\n<rect width=\"100%\" height=\"100%\" ",
                    "fill=\"#ffffff\"/>\n");
    Label(kLeft, kTop - 22, plot_.title, "start", " font-size=\"15\" font-weight=\"bold\"");
    Axes();
    Front();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) Series(i);
    if (legend_width_ > 0) Legend();
    if (!plot_.note.empty())
      Label(kLeft, height_ - 12, plot_.note, "start", " font-size=\"11\" fill=\"#595959\"");
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  bool HasLegend() const {
    return plot_.series.size() > 1 || !plot_.front.empty() ||
           (!plot_.series.empty() && !plot_.series[0].name.empty());
  }

  double LegendWidth() const {
    if (!HasLegend()) return 0;
    double widest = TextWidth(plot_.legend_title) - 26;
    for (const PlotSeries& series : plot_.series) widest = std::max(widest, TextWidth(series.name));
    if (!plot_.front.empty()) widest = std::max(widest, TextWidth("Pareto front"));
    return std::min(kWidth / 2.2, widest + 50);
  }

  double X(double value) const { return kLeft + x_.At(value) * (right_ - kLeft); }
  double Y(double value) const { return bottom_ - y_.At(value) * (bottom_ - kTop); }

  void Label(double x, double y, const std::string& text, const char* anchor,
             const std::string& more = "") {
    absl::StrAppend(&out_, "<text x=\"", Px(x), "\" y=\"", Px(y), "\" text-anchor=\"", anchor, "\"",
                    more, ">", Escaped(text), "</text>\n");
  }

  void Line(double x1, double y1, double x2, double y2, const char* color) {
    absl::StrAppend(&out_, "<path d=\"M", Px(x1), " ", Px(y1), "L", Px(x2), " ", Px(y2),
                    "\" stroke=\"", color, "\" fill=\"none\"/>\n");
  }

  void Axes() {
    double drawn = -1e9;  // a label that would touch the one before is left out
    for (const PlotTick& tick : x_.ticks) {
      const double at = X(tick.value), half = TextWidth(tick.label) / 2 + 4;
      Line(at, kTop, at, bottom_, "#e4e4e4");
      Line(at, bottom_, at, bottom_ + 4, "#404040");
      if (at - half < drawn) continue;
      Label(at, bottom_ + 18, tick.label, "middle");
      drawn = at + half;
    }
    drawn = 1e9;
    for (const PlotTick& tick : y_.ticks) {
      const double at = Y(tick.value);
      Line(kLeft, at, right_, at, "#e4e4e4");
      Line(kLeft - 4, at, kLeft, at, "#404040");
      if (at + 14 > drawn) continue;
      Label(kLeft - 8, at + 4, tick.label, "end");
      drawn = at;
    }
    Line(kLeft, kTop, kLeft, bottom_, "#404040");
    Line(kLeft, bottom_, right_, bottom_, "#404040");
    Label((kLeft + right_) / 2, bottom_ + 38, x_.title, "middle");
    const double middle = (kTop + bottom_) / 2;
    Label(18, middle, y_.title, "middle",
          absl::StrCat(" transform=\"rotate(-90 18 ", Px(middle), ")\""));
  }

  void Mark(double x, double y, std::size_t series) {
    const char* color = kColors[series % kColors.size()];
    // The mark changes with the colour, so that either alone tells two neighbours apart.
    const std::size_t mark = (series + series / kColors.size()) % kMarks;
    std::string shape;
    if (mark == 0) {
      shape = absl::StrCat("<circle cx=\"", Px(x), "\" cy=\"", Px(y), "\" r=\"4\"");
    } else if (mark == 1) {
      shape = absl::StrCat("<rect x=\"", Px(x - 3.6), "\" y=\"", Px(y - 3.6),
                           "\" width=\"7.2\" height=\"7.2\"");
    } else if (mark == 2) {
      shape = absl::StrCat("<path d=\"M", Px(x), " ", Px(y - 4.8), "L", Px(x + 4.6), " ",
                           Px(y + 3.6), "L", Px(x - 4.6), " ", Px(y + 3.6), "Z\"");
    } else {
      shape = absl::StrCat("<path d=\"M", Px(x), " ", Px(y - 5.2), "L", Px(x + 5.2), " ", Px(y),
                           "L", Px(x), " ", Px(y + 5.2), "L", Px(x - 5.2), " ", Px(y), "Z\"");
    }
    absl::StrAppend(&out_, shape, " fill=\"", color, "\"",
                    plot_.lines ? "" : " fill-opacity=\"0.75\"", "/>\n");
  }

  void Series(std::size_t index) {
    const PlotSeries& series = plot_.series[index];
    if (plot_.lines && series.points.size() > 1) {
      std::string path;
      for (const PlotPoint& point : series.points)
        absl::StrAppend(&path, path.empty() ? "M" : "L", Px(X(point.x)), " ", Px(Y(point.y)));
      absl::StrAppend(&out_, "<path d=\"", path, "\" stroke=\"", kColors[index % kColors.size()],
                      "\" stroke-width=\"2\" fill=\"none\"",
                      index < kColors.size() ? "" : " stroke-dasharray=\"6 4\"", "/>\n");
    }
    for (const PlotPoint& point : series.points) Mark(X(point.x), Y(point.y), index);
  }

  // Between two points of the front nothing is known to be reachable but the worse of each.
  void Front() {
    if (plot_.front.empty()) return;
    std::string path;
    for (const PlotPoint& point : plot_.front) {
      const std::string x = Px(X(point.x)), y = Px(Y(point.y));
      if (path.empty()) {
        path = absl::StrCat("M", x, " ", y);
      } else if (plot_.front_low_x) {
        absl::StrAppend(&path, "H", x, "V", y);
      } else {
        absl::StrAppend(&path, "V", y, "H", x);
      }
    }
    absl::StrAppend(&out_, "<path d=\"", path,
                    "\" stroke=\"#404040\" stroke-width=\"1.5\" stroke-dasharray=\"4 3\" "
                    "fill=\"none\"/>\n");
    for (const PlotPoint& point : plot_.front)
      absl::StrAppend(&out_, "<circle cx=\"", Px(X(point.x)), "\" cy=\"", Px(Y(point.y)),
                      "\" r=\"8\" fill=\"none\" stroke=\"#404040\" stroke-width=\"1.5\"/>\n");
  }

  void Legend() {
    const double x = right_ + 20;
    double y = kTop + 6;
    if (!plot_.legend_title.empty()) {
      Label(x, y + 4, plot_.legend_title, "start", " font-weight=\"bold\"");
      y += kLegendLine;
    }
    for (std::size_t i = 0; i < plot_.series.size(); ++i, y += kLegendLine) {
      if (plot_.lines)
        absl::StrAppend(&out_, "<path d=\"M", Px(x), " ", Px(y), "h18\" stroke=\"",
                        kColors[i % kColors.size()], "\" stroke-width=\"2\"",
                        i < kColors.size() ? "" : " stroke-dasharray=\"6 4\"", "/>\n");
      Mark(x + 9, y, i);
      Label(x + 26, y + 4, plot_.series[i].name, "start");
    }
    if (plot_.front.empty()) return;
    absl::StrAppend(&out_, "<circle cx=\"", Px(x + 9), "\" cy=\"", Px(y),
                    "\" r=\"7\" fill=\"none\" stroke=\"#404040\" stroke-width=\"1.5\"/>\n");
    Label(x + 26, y + 4, "Pareto front", "start");
  }

  const SvgPlot& plot_;
  PlotAxis x_, y_;
  double legend_width_ = 0, right_ = 0, height_ = 0, bottom_ = 0;
  std::string out_;
};

}  // namespace

std::string SvgText(const SvgPlot& plot) { return Drawing(plot).Text(); }

std::vector<PlotPoint> ParetoFront(std::vector<PlotPoint> points, bool low_x, bool low_y) {
  const double sx = low_x ? 1 : -1, sy = low_y ? 1 : -1;
  std::sort(points.begin(), points.end(), [&](const PlotPoint& a, const PlotPoint& b) {
    return a.x != b.x ? sx * a.x < sx * b.x : sy * a.y < sy * b.y;
  });
  std::vector<PlotPoint> front;
  for (const PlotPoint& point : points) {
    if (front.empty() || sy * point.y < sy * front.back().y) front.push_back(point);
  }
  if (!low_x) std::reverse(front.begin(), front.end());
  return front;
}

}  // namespace shardlab
