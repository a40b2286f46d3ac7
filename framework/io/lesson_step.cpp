#include "io/lesson_step.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/read_file.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;

// Reads keys of one table and remembers which: what is left over is a mistake.
class Table {
 public:
  Table(const Value* table, Diagnostics& diagnostics) : table_(table), diagnostics_(diagnostics) {
    if (table_ != nullptr && table_->kind != Value::kTable) {
      diagnostics_.Error("lesson.kind", table_->place, "must be a table");
      table_ = nullptr;
    }
  }

  const Value* Find(const char* key) {
    known_.emplace_back(key);
    return table_ == nullptr ? nullptr : table_->Find(key);
  }
  std::string Text(const char* key) {
    const Value* value = Find(key);
    if (value == nullptr) return "";
    if (value->kind == Value::kText) return value->text;
    if (value->kind == Value::kInteger || value->kind == Value::kNumber)
      return ShortNumber(value->number);
    diagnostics_.Error("lesson.kind", value->place, absl::StrCat(key, " must be a text"));
    return "";
  }
  double Number(const char* key, double otherwise) {
    const Value* value = Find(key);
    if (value == nullptr) return otherwise;
    if (value->kind != Value::kInteger && value->kind != Value::kNumber)
      diagnostics_.Error("lesson.kind", value->place, absl::StrCat(key, " must be a number"));
    return value->number;
  }
  std::vector<std::string> Texts(const char* key) {
    std::vector<std::string> out;
    const Value* value = Find(key);
    if (value == nullptr) return out;
    if (value->kind == Value::kText) return {value->text};
    for (const Value& item : value->array)
      out.push_back(item.kind == Value::kText ? item.text : ToToml(item));
    return out;
  }
  std::vector<const Value*> Tables(const char* key) {
    std::vector<const Value*> out;
    const Value* value = Find(key);
    if (value == nullptr) return out;
    if (value->kind != Value::kArray)
      diagnostics_.Error("lesson.kind", value->place, absl::StrCat(key, " must be [[", key, "]]"));
    for (const Value& item : value->array) out.push_back(&item);
    return out;
  }
  void Done() {
    if (table_ == nullptr) return;
    for (const auto& [key, value] : table_->table) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const std::string near = Nearest(key, known_);
      diagnostics_.Error("lesson.key", value.key_place, absl::StrCat("unknown key \"", key, "\""),
                         near.empty() ? "" : absl::StrCat("did you mean \"", near, "\"?"));
    }
  }

 private:
  const Value* table_;
  Diagnostics& diagnostics_;
  std::vector<std::string> known_;
};

std::string PathFrom(const fs::path& folder, const std::string& name) {
  return name.empty() ? "" : (folder / name).lexically_normal().string();
}

void ReadFigures(const Value& root, const fs::path& folder, LessonStep* step,
                 Diagnostics& diagnostics) {
  Table table(&root, diagnostics);
  if (const Value* plans = table.Find("plans")) {
    for (const auto& [id, value] : plans->table) {
      Table plan(&value, diagnostics);
      step->plans.push_back({id, PathFrom(folder, plan.Text("scenario")), plan.Texts("set")});
      plan.Done();
    }
  }
  if (const Value* families = table.Find("families")) {
    for (const auto& [id, value] : families->table) {
      Table family(&value, diagnostics);
      LessonFamily out{id, PathFrom(folder, family.Text("scenario")), {}};
      for (const Value* item : family.Tables("members")) {
        Table member(item, diagnostics);
        const Value* label = member.Find("label");
        out.members.push_back({label == nullptr ? Value() : *label, member.Texts("set")});
        member.Done();
      }
      family.Done();
      step->families.push_back(std::move(out));
    }
  }
  if (const Value* figures = table.Find("figures")) {
    for (const auto& [name, value] : figures->table) {
      LessonFigure figure{name, {}};
      if (value.kind == Value::kArray) {
        for (const Value& item : value.array) figure.expressions.push_back(item.text);
      } else {
        figure.expressions.push_back(value.text);
      }
      step->figures.push_back(std::move(figure));
    }
  }
  table.Done();
}

LessonQuestion ReadQuestion(const Value& value, const fs::path& folder, Diagnostics& diagnostics) {
  Table table(&value, diagnostics);
  LessonQuestion q;
  const std::string kind = table.Text("kind");
  if (kind == "number") {
    q.kind = QuestionKind::kNumber;
  } else if (kind == "fraction") {
    q.kind = QuestionKind::kFraction;
  } else if (kind == "integer") {
    q.kind = QuestionKind::kInteger;
  } else if (kind == "text") {
    q.kind = QuestionKind::kText;
  } else if (kind == "match") {
    q.kind = QuestionKind::kMatch;
  } else {
    diagnostics.Error("lesson.question", value.place,
                      absl::StrCat("there is no kind of question \"", kind, "\""),
                      "kinds: number, fraction, integer, text, match");
  }
  // Two percent of a number, half a point of a fraction, nothing of a count.
  const double usual = q.kind == QuestionKind::kNumber     ? 0.02
                       : q.kind == QuestionKind::kFraction ? 0.005
                                                           : 0;
  q.tolerance = table.Number("tolerance", usual);
  q.text = table.Text("text");
  q.hint = table.Text("hint");
  q.worked = table.Text("worked");
  q.unit = table.Text("unit");
  q.answer = table.Text("answer");
  q.accepts = table.Texts("accept");
  q.choices = table.Texts("choices");
  if (const Value* same = table.Find("same"))
    for (const auto& [word, meant] : same->table) q.same.emplace_back(word, meant.text);
  q.scenario = PathFrom(folder, table.Text("scenario"));
  q.sets = table.Texts("set");
  if (const Value* over = table.Find("over")) {
    Table family(over, diagnostics);
    q.family_label = family.Text("variable");
    q.family_from = static_cast<int>(family.Number("from", 1));
    q.family_to = static_cast<int>(family.Number("to", 0));
    family.Done();
  }
  if (const Value* main = table.Find("main")) q.main = *main;
  if (const Value* draw = table.Find("draw")) q.draw = *draw;
  for (const Value* item : table.Tables("slip")) {
    Table slip(item, diagnostics);
    q.slips.push_back(
        {slip.Text("name"), slip.Text("value"), slip.Texts("texts"), slip.Text("message")});
    slip.Done();
  }
  table.Done();
  const bool words = q.kind == QuestionKind::kText || q.kind == QuestionKind::kMatch;
  if (words ? q.accepts.empty() : q.answer.empty())
    diagnostics.Error("lesson.question", value.place, "the question has no answer");
  return q;
}

std::vector<LessonRequirement> ReadRequirements(Table& table, Diagnostics& diagnostics) {
  std::vector<LessonRequirement> out;
  for (const Value* item : table.Tables("require")) {
    Table require(item, diagnostics);
    out.push_back(
        {require.Text("value"), require.Text("min"), require.Text("max"), require.Text("text")});
    require.Done();
  }
  return out;
}

void ReadStep(const Value& root, const fs::path& folder, LessonStep* step,
              Diagnostics& diagnostics) {
  Table table(&root, diagnostics);
  step->title = table.Text("title");
  step->part = table.Text("part");
  step->minutes = static_cast<int>(table.Number("minutes", 1));
  if (const Value* constants = table.Find("constants"))
    for (const auto& [name, value] : constants->table)
      step->constants.emplace_back(name, value.number);
  for (const Value* item : table.Tables("knob")) {
    Table knob(item, diagnostics);
    LessonKnob out;
    out.key = knob.Text("key");
    out.label = knob.Text("label");
    out.flag = knob.Text("flag");
    if (const Value* with = knob.Find("with")) out.with = ToToml(*with);
    if (const Value* without = knob.Find("without")) out.without = ToToml(*without);
    if (const Value* values = knob.Find("values"))
      for (const Value& one : values->array) out.values.push_back(ToToml(one));
    knob.Done();
    step->knobs.push_back(std::move(out));
  }
  step->flags_of = table.Text("flags_of");
  for (const Value* item : table.Tables("no_flag")) {
    Table absent(item, diagnostics);
    step->no_flags.push_back({absent.Texts("names"), absent.Text("message")});
    absent.Done();
  }
  if (const Value* value = table.Find("predict")) {
    Table predict(value, diagnostics);
    step->prediction = {predict.Text("text"), predict.Text("told"), predict.Texts("choices")};
    predict.Done();
  }
  if (const Value* value = table.Find("mix")) {
    Table mix(value, diagnostics);
    step->mix = {mix.Texts("steps"), static_cast<int>(mix.Number("questions", 1))};
    mix.Done();
  }
  if (const Value* value = table.Find("front")) {
    Table front(value, diagnostics);
    step->front = {front.Text("family"), front.Text("x"), front.Text("x_label"), front.Text("y"),
                   front.Text("y_label")};
    front.Done();
  }
  if (const Value* change = table.Find("break")) {
    Table broken(change, diagnostics);
    step->break_sets = broken.Texts("set");
    step->break_text = broken.Text("text");
    broken.Done();
  }
  if (const Value* value = table.Find("goal")) {
    Table goal(value, diagnostics);
    step->goal_text = goal.Text("text");
    step->goal = ReadRequirements(goal, diagnostics);
    goal.Done();
  }
  for (const Value* item : table.Tables("event")) {
    Table event(item, diagnostics);
    step->events.push_back({event.Text("name"), event.Text("text"), event.Texts("set"),
                            ReadRequirements(event, diagnostics)});
    event.Done();
  }
  step->restart_seconds = table.Text("restart_seconds");
  for (const Value* item : table.Tables("question"))
    step->questions.push_back(ReadQuestion(*item, folder, diagnostics));
  table.Done();
}

// Takes the marks out of the text, and what is between them into `live`.
void TakeLive(std::string* text, std::string* live) {
  static constexpr char kOpen[] = "<!-- live -->\n", kClose[] = "<!-- /live -->\n";
  const std::size_t open = text->find(kOpen);
  const std::size_t close = text->find(kClose);
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  const std::size_t from = open + sizeof kOpen - 1;
  *live = text->substr(from, close - from);
  text->erase(close, sizeof kClose - 1);
  text->erase(open, sizeof kOpen - 1);
}

// The number before the first '-', or nothing of a folder that is no step.
int StepNumber(const std::string& name) {
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_step = error == std::errc() && end != name.data() + name.size() && *end == '-';
  return is_step ? number : 0;
}

}  // namespace

std::vector<LessonStep> ReadCourse(const std::string& folder, Diagnostics& diagnostics) {
  std::vector<LessonStep> course;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    const int number = StepNumber(name);
    if (number == 0) continue;
    LessonStep step;
    step.number = number;
    step.slug = name.substr(name.find('-') + 1);
    step.folder = entry.path().string();
    step.scenario = (entry.path() / "scenario.toml").string();
    const Value root = ReadTomlFile((entry.path() / "step.toml").string(), diagnostics);
    if (root.kind == Value::kTable) ReadStep(root, entry.path(), &step, diagnostics);
    for (const char* file : {"figures.toml", "families.toml"}) {
      std::error_code ignored;
      if (!fs::exists(entry.path() / file, ignored)) continue;
      const Value figures = ReadTomlFile((entry.path() / file).string(), diagnostics);
      if (figures.kind == Value::kTable) ReadFigures(figures, entry.path(), &step, diagnostics);
    }
    step.text = ReadTextFile((entry.path() / "step.md").string(), diagnostics).value_or("");
    TakeLive(&step.text, &step.live);
    course.push_back(std::move(step));
  }
  if (failed)
    diagnostics.Error("lesson.folder", {folder, 0, 0, ""},
                      absl::StrCat("the course's folder cannot be read: ", failed.message()));
  std::sort(course.begin(), course.end(), [](const LessonStep& a, const LessonStep& b) {
    return std::tie(a.number, a.slug) < std::tie(b.number, b.slug);
  });
  return course;
}

const LessonStep* FindStep(const std::vector<LessonStep>& course, const std::string& name,
                           Diagnostics& diagnostics) {
  std::vector<std::string> slugs;
  for (const LessonStep& step : course) {
    if (name == step.slug || name == std::to_string(step.number) ||
        name == std::filesystem::path(step.folder).filename())
      return &step;
    slugs.push_back(step.slug);
  }
  const std::string near = Nearest(name, slugs);
  diagnostics.Error(
      "lesson.unknown", {}, absl::StrCat("there is no step \"", name, "\""),
      near.empty() ? "see shardlab lesson list" : absl::StrCat("did you mean \"", near, "\"?"));
  return nullptr;
}

}  // namespace shardlab
