#include "io/lesson_front.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "io/lesson_keys.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

// "tp8_pp2_dp2_zero1" as it is read: "tp8 pp2 dp2 zero1".
std::string Spoken(const Json& label) {
  std::string out = label.is_string() ? label.get<std::string>() : label.dump();
  for (char& c : out)
    if (c == '_') c = ' ';
  return out;
}

std::string LastName(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

Json FrontDocument(const LessonStep& step, LessonPlans& plans, std::vector<std::string>* problems) {
  const LessonFront& front = step.front;
  if (front.family.empty()) return nullptr;
  std::string problem;
  const Json* family = plans.Family(front.family, &problem);
  if (family == nullptr) {
    problems->push_back(problem);
    return nullptr;
  }
  Json points = Json::array();
  for (const Json& plan : *family) {
    Json point = {{"label", Spoken(plan.at("label"))},
                  {"legal", plan.at("legal")},
                  {"fits", false},
                  {"best", false}};
    if (plan.at("legal") == true) {
      const Json* x = ValueAt(plan, front.x);
      const Json* y = ValueAt(plan, front.y);
      if (x == nullptr || y == nullptr || !x->is_number() || !y->is_number()) {
        problems->push_back(absl::StrCat("a plan has no ", front.x, " or ", front.y));
        return nullptr;
      }
      point["fits"] = plan.at("memory").at("fits");
      point["x"] = *x;
      point["y"] = *y;
      point["x_shown"] = FormatFigure("_" + LastName(front.x), "", x->get<double>());
      point["y_shown"] = FormatFigure("_" + LastName(front.y), "", y->get<double>());
      Json sets = Json::array();
      for (const LessonKnob& knob : step.knobs)
        if (const Json* value = ValueAt(plan.at("resolved"), knob.key))
          sets.push_back(absl::StrCat(
              knob.key, "=", value->is_string() ? value->get<std::string>() : value->dump()));
      point["set"] = std::move(sets);
    }
    points.push_back(std::move(point));
  }
  for (Json& one : points) {
    if (one.at("fits") == false) continue;
    bool beaten = false;
    for (const Json& other : points) {
      if (other.at("fits") == false) continue;
      const double dx = other.at("x").get<double>() - one.at("x").get<double>();
      const double dy = other.at("y").get<double>() - one.at("y").get<double>();
      beaten = beaten || (dx <= 0 && dy >= 0 && (dx < 0 || dy > 0));
    }
    one["best"] = !beaten;
  }
  return {{"x", {{"label", front.x_label}}}, {"y", {{"label", front.y_label}}}, {"plans", points}};
}

std::vector<std::string> SetsOfFront(const Json& front, const std::string& number,
                                     Diagnostics& diagnostics) {
  std::size_t at = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), at);
  const std::size_t count = front.is_object() ? front.at("plans").size() : 0;
  if (count == 0) {
    diagnostics.Error("lesson.load", {}, "this step has no plans to load");
  } else if (error != std::errc() || end != number.data() + number.size() || at < 1 || at > count) {
    diagnostics.Error("lesson.load", {}, absl::StrCat("there is no plan \"", number, "\""),
                      absl::StrCat("plans are numbered from 1 to ", count));
  } else if (const Json& plan = front.at("plans")[at - 1]; plan.contains("set")) {
    return plan.at("set").get<std::vector<std::string>>();
  } else {
    diagnostics.Error("lesson.load", {}, absl::StrCat("plan ", at, " is refused by the planner"));
  }
  return {};
}

}  // namespace shardlab
