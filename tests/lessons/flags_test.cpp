// A plan set in a framework's own flags, and the flags of a plan: both ways.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "io/export_plan.h"
#include "io/lesson_flags.h"
#include "io/scenario.h"
#include "lessons/course.h"
#include "lessons/typed.h"

namespace shardlab {
namespace {

constexpr const char* kStep = "megatron-flags";

using Sets = std::vector<std::string>;

Sets Read(const std::vector<std::string>& words, Diagnostics* diagnostics) {
  return ReadRequest(StepNamed(kStep), words, *diagnostics).sets;
}

TEST(Flags, WordsAndLinesBecomeKeys) {
  Diagnostics none;
  EXPECT_EQ(Read({"--tensor-model-parallel-size", "4"}, &none), Sets{"strategy.tensor.degree=4"});
  EXPECT_EQ(Read({"--tensor-model-parallel-size=4"}, &none), Sets{"strategy.tensor.degree=4"});
  EXPECT_EQ(Read({"  --tensor-model-parallel-size 4"}, &none), Sets{"strategy.tensor.degree=4"});
  EXPECT_EQ(
      Read({"--tensor-model-parallel-size 4  --sequence-parallel", "schedule.degree=2"}, &none),
      (Sets{"strategy.tensor.degree=4", "strategy.tensor.sequence_parallel=true",
            "schedule.degree=2"}));
  EXPECT_EQ(Read({"without", "--use-distributed-optimizer", "--seq-length", "8192"}, &none),
            (Sets{"strategy.zero.stage=0", "training.sequence_length=8192"}));
  EXPECT_EQ(Read({"without --recompute-granularity"}, &none),
            Sets{"strategy.checkpointing.mode=none"});
  EXPECT_TRUE(none.empty());
}

TEST(Flags, WhatIsNoFlagIsTold) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--tensor-model-parallel-size"},
           {"--tensor-model-parallel-size", "--sequence-parallel"},
           {"--data-parallel-size", "2"},
           {"--dp=2"},
           {"without", "--tensor-model-parallel-size"},
           {"without", "nothing"}}) {
    Diagnostics told;
    Read(words, &told);
    EXPECT_TRUE(told.HasErrors()) << testing::PrintToString(words);
  }
}

// Every flag of a knob stands in the export of the plan that the knob makes, so spelled.
TEST(Flags, AreThoseThatTheExporterWrites) {
  for (const LessonStep& step : Course()) {
    if (step.flags_of.empty()) continue;
    std::size_t seen = 0;
    for (const LessonKnob& knob : step.knobs) {
      if (knob.flag.empty()) continue;
      const bool is_switch = !knob.with.empty();
      for (const std::string& value : knob.values) {
        Diagnostics diagnostics;
        const std::string text = value.front() == '"' ? value.substr(1, value.size() - 2) : value;
        const ExportedPlan exported = ExportPlan(
            Plugins(), step.flags_of,
            ReadScenario(step.scenario, {knob.key + "=" + text}, diagnostics), &diagnostics);
        if (diagnostics.HasErrors()) continue;  // with the other knobs as they are
        const std::string script = exported.files.at(0).text;
        const bool out = value == knob.without;
        const std::string line =
            is_switch || out ? knob.flag + "\n" : knob.flag + " " + text + "\n";
        EXPECT_EQ(script.find("  " + line) != std::string::npos, !out) << knob.flag << " " << value;
        ++seen;
      }
    }
    EXPECT_GT(seen, 10u);
  }
}

TEST_F(LessonCommandTest, AFlagChangesThePlanAndThePlanItsFlags) {
  Json state = Ask({"set", kStep, "--pipeline-model-parallel-size", "4"});
  EXPECT_EQ(state.at("plan").at("plan").at("pipeline"), 4);
  EXPECT_EQ(state.at("plan").at("plan").at("data"), 1);
  EXPECT_EQ(state.at("gauges").at("peak_bytes"), 47736029184) << "TP8 PP4 of the course";
  const auto has = [&](const std::string& line) {
    return state.at("live").get<std::string>().find(line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("--pipeline-model-parallel-size 4"));
  state = Ask({"set", kStep, "schedule.degree=2"});
  EXPECT_TRUE(has("--pipeline-model-parallel-size 2"));
  state = Ask({"set", kStep, "without", "--grad-reduce-in-bf16"});
  EXPECT_FALSE(has("--grad-reduce-in-bf16"));
  EXPECT_EQ(state.at("gauges").at("peak_bytes"), 64323780608);  // fp32 gradients, of the course
  state = Ask({"set", kStep, "--grad-reduce-in-bf16 --recompute-granularity full"});
  EXPECT_TRUE(has("--grad-reduce-in-bf16"));
  EXPECT_TRUE(has("--recompute-granularity full"));
  EXPECT_EQ(state.at("plan").at("plan").at("recompute").at("mode"), "full");
  EXPECT_EQ(Ask({"set", kStep}).at("set").size(), 0u);
  const Json job = Ask(
      {"submit", kStep, "--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size=8"});
  EXPECT_EQ(job.at("accepted"), true);
  EXPECT_EQ(job.at("job").at("set").size(), 2u);
}

TEST_F(LessonCommandTest, ABadFlagIsNamedWithItsRule) {
  EXPECT_EQ(Run({"set", kStep, "--pipeline-model-parallel-size", "16"}), 2);
  EXPECT_NE(err_.find("--pipeline-model-parallel-size 16: "), std::string::npos) << err_;
  EXPECT_NE(err_.find("1, 2, 4"), std::string::npos) << err_;  // legal values
  EXPECT_EQ(Run({"set", kStep, "--tensor-model-paralel-size", "4"}), 2);
  EXPECT_NE(err_.find("--tensor-model-parallel-size"), std::string::npos) << err_;
  EXPECT_EQ(Run({"set", kStep, "--data-parallel-size", "2"}), 2);
  EXPECT_NE(err_.find("what is left"), std::string::npos) << err_;
  EXPECT_EQ(Run({"set", kStep, "--num-layers", "40"}), 2);
  EXPECT_NE(err_.find("--num-layers 80"), std::string::npos) << err_;
  EXPECT_EQ(Run({"set", "fsdp-32", "--tp", "4"}), 2);
  for (const char* value : {"four", "-1", "1e400", "nan", "0", "\xff"})
    EXPECT_EQ(Run({"set", kStep, "--tensor-model-parallel-size", value}), 2) << value;
  // Flags that the plan has anyway do no harm: a whole line may be pasted.
  EXPECT_EQ(Run({"set", kStep, "--bf16 --num-layers 80 --tensor-model-parallel-size 8"}), 0)
      << err_;
}

}  // namespace
}  // namespace shardlab
