#include "io/render_diagnostics.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/read_file.h"
#include "io/utf8.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWidth = 100;  // columns of a source line that are shown
constexpr int kTab = 4;

// Lines of the sources by number; a file is indexed once however many diagnostics it has.
class Lines final {
 public:
  explicit Lines(const Sources& sources) : sources_(sources) {}

  std::optional<std::string_view> Find(const std::string& file, int line) {
    const auto source = sources_.find(file);
    if (source == sources_.end() || line < 1) return std::nullopt;
    const std::string_view text = WithoutByteOrderMark(source->second);
    std::vector<std::size_t>& starts = starts_[file];
    if (starts.empty()) {
      starts.push_back(0);
      for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\n') starts.push_back(at + 1);
      }
    }
    const auto number = static_cast<std::size_t>(line);
    if (number > starts.size()) return std::nullopt;
    const std::size_t start = starts[number - 1];
    const std::size_t end = number < starts.size() ? starts[number] - 1 : text.size();
    std::string_view found = text.substr(start, end - start);
    if (!found.empty() && found.back() == '\r') found.remove_suffix(1);
    return found;
  }

  // The byte of a line's character `wanted` (from 0), or of its end; `wanted` becomes the character
  // that it is. Remembers where it was: diagnostics in order of their columns walk a long line
  // once.
  std::size_t ByteOf(std::string_view line, std::size_t* wanted) {
    if (line.data() != walked_.data() || *wanted < character_) {
      walked_ = line;
      character_ = 0;
      byte_ = 0;
    }
    for (; character_ < *wanted && byte_ < line.size(); ++character_)
      byte_ += DecodeUtf8(line, byte_).bytes;
    *wanted = character_;
    return byte_;
  }

 private:
  const Sources& sources_;
  std::map<std::string, std::vector<std::size_t>> starts_;
  std::string_view walked_;
  std::size_t character_ = 0;
  std::size_t byte_ = 0;
};

struct Cell {
  std::string text;
  int width = 1;
};

// At most `count` characters of text as they are shown, a cell each: tabs as spaces, what must not
// reach a terminal as U+FFFD.
std::vector<Cell> Cells(std::string_view line, std::size_t count) {
  std::vector<Cell> cells;
  int column = 0;
  for (std::size_t at = 0; at < line.size() && cells.size() < count;) {
    const Utf8Character character = DecodeUtf8(line, at);
    at += character.bytes;
    Cell cell;
    if (character.code == '\t') {
      cell.width = kTab - column % kTab;
      cell.text.assign(static_cast<std::size_t>(cell.width), ' ');
    } else {
      const char32_t shown = IsUnprintable(character.code) ? 0xFFFD : character.code;
      cell.width = DisplayWidth(shown);
      AppendUtf8(shown, &cell.text);
    }
    column += cell.width;
    cells.push_back(std::move(cell));
  }
  return cells;
}

class Renderer final {
 public:
  Renderer(const Sources& sources, bool color) : lines_(sources), color_(color) {}

  void Add(const Diagnostic& diagnostic) {
    const char* const shade = diagnostic.severity == Severity::kError     ? "\x1b[1;31m"
                              : diagnostic.severity == Severity::kWarning ? "\x1b[1;35m"
                                                                          : "\x1b[1;36m";
    Headline(diagnostic.place, Name(diagnostic.severity), shade, diagnostic.message);
    Excerpt(diagnostic.place);
    if (!diagnostic.hint.empty()) {
      out_ += "  ";
      Paint("\x1b[1;36m", "hint:");
      out_ += " " + Printable(diagnostic.hint) + "\n";
    }
    for (const Place& other : diagnostic.other_places) {
      Headline(other, "note", "\x1b[1;36m",
               other.key.empty() ? "the other place" : "the other place: " + other.key);
      Excerpt(other);
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  void Paint(const char* shade, const std::string& text) {
    out_ += color_ ? shade + text + "\x1b[0m" : text;
  }

  void Headline(const Place& place, const std::string& severity, const char* shade,
                const std::string& message) {
    std::string where = Printable(place.file);
    if (place.line > 0) {
      where += ":" + std::to_string(place.line);
      if (place.column > 0) where += ":" + std::to_string(place.column);
    } else if (!place.key.empty()) {
      // Without a line the key is all that there is to find it by: "--set strategy.tensor.degree".
      where += (where.empty() ? "" : " ") + Printable(place.key);
    }
    if (!where.empty()) Paint("\x1b[1m", where + ": ");
    Paint(shade, severity + ":");
    out_ += " ";
    Paint("\x1b[1m", Printable(message));
    out_ += "\n";
  }

  void Excerpt(const Place& place) {
    const auto line = lines_.Find(place.file, place.line);
    if (!line) return;
    // Only characters that could be shown are looked at: a line may be megabytes long.
    const auto wanted = static_cast<std::size_t>(std::max(place.column, 1) - 1);
    std::size_t start = wanted > kWidth ? wanted - kWidth : 0;
    std::size_t byte = lines_.ByteOf(*line, &start);
    if (byte == line->size() && start > 0) {
      start = start > kWidth ? start - kWidth : 0;  // far beyond the end of the line: show its end
      byte = lines_.ByteOf(*line, &start);
    }
    constexpr std::size_t kLookedAt = 3 * static_cast<std::size_t>(kWidth);
    const std::vector<Cell> cells = Cells(line->substr(byte), kLookedAt);
    const std::size_t caret = std::min(wanted - start, cells.size());
    // Cut a long line to a window with the caret in its middle.
    std::size_t first = 0;
    std::size_t last = cells.size();
    int total = 0;
    for (const Cell& cell : cells) total += cell.width;
    if (total > kWidth) {
      int before = 0;
      first = caret;
      while (first > 0 && before + cells[first - 1].width <= kWidth / 2)
        before += cells[--first].width;
      last = caret;
      int used = before;
      while (last < cells.size() && used + cells[last].width <= kWidth) used += cells[last++].width;
      // Near the end of the line there is room to show more of what stands before.
      while (first > 0 && used + cells[first - 1].width <= kWidth) used += cells[--first].width;
    }
    const std::string dots = "...";
    std::string shown = "    ";
    std::size_t indent = 4;
    if (first > 0 || start > 0) {
      shown += dots;
      indent += dots.size();
    }
    for (std::size_t i = first; i < last; ++i) {
      shown += cells[i].text;
      if (i < caret) indent += static_cast<std::size_t>(cells[i].width);
    }
    if (last < cells.size() || cells.size() == kLookedAt) shown += dots;
    while (!shown.empty() && shown.back() == ' ') shown.pop_back();
    out_ += shown + "\n";
    if (place.column < 1) return;
    out_.append(indent, ' ');
    Paint("\x1b[1;32m", "^");
    out_ += "\n";
  }

  Lines lines_;
  bool color_;
  std::string out_;
};

Json PlaceToJson(const Place& place) {
  Json json;
  json["file"] = ToValidUtf8(place.file);
  json["line"] = place.line;
  json["column"] = place.column;
  json["key"] = ToValidUtf8(place.key);
  return json;
}

}  // namespace

void LoadSources(const Diagnostics& diagnostics, Sources* sources) {
  const auto load = [sources](const Place& place) {
    if (place.line < 1 || place.file.empty() || sources->count(place.file) != 0) return;
    Diagnostics ignored;  // a file that is gone by now is shown without its lines
    (*sources)[place.file] = ReadTextFile(place.file, ignored).value_or("");
  };
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    load(diagnostic.place);
    for (const Place& other : diagnostic.other_places) load(other);
  }
}

std::string RenderDiagnostics(const Diagnostics& diagnostics, const Sources& sources, bool color) {
  Renderer renderer(sources, color);
  for (const Diagnostic& diagnostic : diagnostics.all()) renderer.Add(diagnostic);
  return renderer.Take();
}

Json DiagnosticToJson(const Diagnostic& diagnostic) {
  Json json;
  json["severity"] = Name(diagnostic.severity);
  json["code"] = ToValidUtf8(diagnostic.code);
  json["message"] = ToValidUtf8(diagnostic.message);
  json.update(PlaceToJson(diagnostic.place));
  json["hint"] = ToValidUtf8(diagnostic.hint);
  json["other_places"] = Json::array();
  for (const Place& other : diagnostic.other_places)
    json["other_places"].push_back(PlaceToJson(other));
  return json;
}

Json DiagnosticsToJson(const Diagnostics& diagnostics) {
  Json json;
  json["schema"] = "shardlab.diagnostics/1";
  json["diagnostics"] = Json::array();
  for (const Diagnostic& diagnostic : diagnostics.all())
    json["diagnostics"].push_back(DiagnosticToJson(diagnostic));
  return json;
}

}  // namespace shardlab
