// The numbers of the course, as `shardlab plan` gives them. lesson.json says which plan documents
// show which number, make_lesson.py how it is made; one test per step of the course lists all that
// differs.
//
// A value agrees when it is within 1e-9 of itself, or within what rounding can do: documents hold
// whole bytes, each account of a rank rounded once, so half a byte for each account (and each row
// of traffic) that went into the value, carried through its expression (expression.h).

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands.h"
#include "golden/expression.h"
#include "gtest/gtest.h"

namespace shardlab::golden {
namespace {

using json = nlohmann::ordered_json;

constexpr double kRelative = 1e-9;
constexpr int kWrongInput = 2;  // exit status of a plan that is refused

struct Step {
  const char* slug;
  std::size_t names;    // at least so many of the step's numbers are tested,
  std::size_t members;  // on at least so many plans of whole families
};

constexpr Step kSteps[] = {
    {"conventions", 50, 107},
    {"one-gpu-70b", 11, 0},
    {"floor-405b", 13, 0},
    {"zero-stages", 19, 0},
    {"zero-wire", 18, 0},
    {"fsdp-32", 7, 16},
    {"activation-checkpointing", 19, 12},
    {"drill-zero3-state", 7, 0},
    {"tp-split", 65, 0},
    {"break-tp-across-servers", 65, 0},
    {"tp-inside-nvlink", 23, 0},
    {"pp-split", 53, 0},
    {"shrink-bubble", 32, 0},
    {"break-recompute-off", 18, 0},
    {"drill-bubble", 8, 160},
    {"expert-parallel", 42, 0},
    {"plan-3d-70b", 98, 167},
    {"megatron-flags", 13, 0},
    {"deepspeed-config", 9, 0},
    {"fsdp-code", 12, 0},
    {"drill-megatron-tp", 1, 0},
    {"playground-replan", 58, 380},
};

void PrintTo(const Step& step, std::ostream* out) { *out << step.slug; }

json Load() {
  std::ifstream file(SHARDLAB_SOURCE_DIR "/tests/golden/lesson.json");
  return json::parse(file);
}

// Runs the plans of lesson.json, each once.
class Plans {
 public:
  Plans() : lesson_(Load()) {
    if (std::getenv("SHARDLAB_PLUGIN_PATH") == nullptr) {  // a test that is not started by ctest
      setenv("SHARDLAB_PLUGIN_PATH", SHARDLAB_BINARY_DIR "/plugins", 0);
    }
    folder_ =
        std::filesystem::temp_directory_path() / ("shardlab-golden-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    for (const auto& [id, text] : lesson_.at("scenarios").items()) {
      std::ofstream(folder_ / (id + ".toml")) << text.get<std::string>();
    }
  }
  ~Plans() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;

  const json& lesson() const { return lesson_; }

  // The document of a plan, or the array of a family's documents.
  const json& Document(const std::string& id) {
    const auto known = documents_.find(id);
    if (known != documents_.end()) return known->second;
    const auto plan = lesson_.at("plans").find(id);
    if (plan != lesson_.at("plans").end()) {
      std::string why;
      const std::optional<json> document = Run(plan->at("scenario"), plan->at("set"), &why);
      if (!document) throw ExpressionError(id + " is refused: " + why);
      return documents_[id] = *document;
    }
    const auto family = lesson_.at("families").find(id);
    if (family == lesson_.at("families").end()) throw ExpressionError("no plan or family " + id);
    json all = json::array();
    for (const json& member : family->at("members")) {
      std::string why;
      const std::optional<json> document = Run(family->at("scenario"), member.at("set"), &why);
      json entry = document.value_or(json::object());
      entry["label"] = member.at("label");
      entry["legal"] = document.has_value();
      if (document) {
        const json& memory = entry.at("memory");
        entry["headroom_fraction"] =
            memory.at("headroom_bytes").get<double>() / memory.at("capacity_bytes").get<double>();
      } else {
        entry["why"] = why;
      }
      all.push_back(std::move(entry));
    }
    return documents_[id] = std::move(all);
  }

 private:
  // Nothing for a plan that is refused.
  std::optional<json> Run(const std::string& scenario, const json& settings,
                          std::string* why) const {
    std::vector<std::string> args = {"plan", (folder_ / (scenario + ".toml")).string(), "--format",
                                     "json"};
    std::string told = scenario;
    for (const json& setting : settings) {
      args.emplace_back("--set");
      args.push_back(setting.get<std::string>());
      told += " " + args.back();
    }
    std::ostringstream out;
    std::ostringstream err;
    const int status = RunShardlab(args, out, err);
    if (status == kWrongInput) {
      *why = err.str();
      return std::nullopt;
    }
    if (status != 0)
      throw ExpressionError(told + ": exit status " + std::to_string(status) + "\n" + err.str());
    return json::parse(out.str());
  }

  json lesson_;
  std::filesystem::path folder_;
  std::map<std::string, json> documents_;
};

Plans& SharedPlans() {
  static Plans plans;
  return plans;
}

// Empty when they agree.
std::string Difference(double expected, Number got) {
  const double off = std::abs(got.value - expected);
  if (off <= kRelative * std::abs(expected) + got.error) return "";
  std::ostringstream out;
  out.precision(17);
  out << "expected " << expected << ", got " << got.value << ", relative error ";
  out.precision(3);
  out << off / std::abs(expected);
  return out.str();
}

std::string Difference(const json& expected, const json& expression, const Documents& documents) {
  if (expression.is_array()) {
    if (expression.size() != expected.size())
      return "expressions and expected numbers differ in number";
    std::string out;
    for (std::size_t i = 0; i < expression.size(); ++i)
      out += Difference(expected[i], expression[i], documents);
    return out;
  }
  if (expected.is_array()) {
    const json got = Select(expression.get<std::string>(), documents);
    return got == expected ? "" : "expected " + expected.dump() + ", got " + got.dump();
  }
  return Difference(expected.get<double>(), Evaluate(expression.get<std::string>(), documents));
}

class Lesson : public testing::TestWithParam<Step> {};

TEST_P(Lesson, NumbersHold) {
  Plans& plans = SharedPlans();
  const Documents documents = [&](const std::string& id) -> const json& {
    return plans.Document(id);
  };
  std::set<std::string> names;
  for (const json& value : plans.lesson().at("values")) {
    if (value.at("step") != GetParam().slug) continue;
    const std::string name = value.at("name");
    names.insert(name);
    std::string difference;
    try {
      difference = Difference(value.at("expected"), value.at("expression"), documents);
    } catch (const std::exception& error) {
      difference = error.what();
    }
    if (!difference.empty())
      ADD_FAILURE() << name << ": " << difference << "\n  = " << value.at("expression").dump();
  }
  EXPECT_GE(names.size(), GetParam().names);
}

// Every plan of the sets that a step counts or chooses from: refused or not, and the numbers of
// those that are not.
TEST_P(Lesson, FamiliesHold) {
  Plans& plans = SharedPlans();
  std::size_t members = 0;
  for (const auto& [id, family] : plans.lesson().at("families").items()) {
    if (family.at("step") != GetParam().slug) continue;
    const json* all = nullptr;
    try {
      all = &plans.Document(id);
    } catch (const std::exception& error) {
      ADD_FAILURE() << id << ": " << error.what();
      continue;
    }
    for (std::size_t i = 0; i < all->size(); ++i, ++members) {
      const json& member = family.at("members")[i];
      const json& document = (*all)[i];
      const std::string name = id + " " + member.at("label").dump();
      const bool legal = member.value("legal", true);
      EXPECT_EQ(document.at("legal").get<bool>(), legal)
          << name << " " << document.value("why", "is not refused");
      if (!legal || document.at("legal") == false || !member.contains("expected")) continue;
      for (const auto& [path, expected] : member.at("expected").items()) {
        const Documents itself = [&](const std::string&) -> const json& { return document; };
        std::string difference;
        try {
          difference = Difference(expected.get<double>(), Evaluate("plan:" + path, itself));
        } catch (const std::exception& error) {
          difference = error.what();
        }
        if (!difference.empty()) ADD_FAILURE() << name << " " << path << ": " << difference;
      }
    }
  }
  EXPECT_GE(members, GetParam().members);
}

std::string TestName(const testing::TestParamInfo<Step>& step) {
  std::string name = step.param.slug;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Steps, Lesson, testing::ValuesIn(kSteps), TestName);

}  // namespace
}  // namespace shardlab::golden
