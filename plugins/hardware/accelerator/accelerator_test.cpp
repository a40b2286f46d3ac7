#include "accelerator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::accelerator {
namespace {

const std::string kFolder = SHARDLAB_SOURCE_DIR "/plugins/hardware/accelerator/";

std::vector<std::string> Presets() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "presets"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// A scenario's [hardware] table, and the text of "own.toml" beside it.
struct World {
  AccountingRules rules;
  Precision precision;
  Diagnostics diagnostics;
  Accelerator machine;

  explicit World(const std::string& table, const std::string& own = "", bool nominal = false) {
    rules.facts["hardware.nominal_memory"] = nominal;
    const Value read = ParseToml(table, "scenario.toml", diagnostics);
    ParameterReader reader(&read, {}, {}, &diagnostics);
    machine.Visit(reader);
    reader.Finish();
    InitContext context;
    context.rules = &rules;
    context.precision = &precision;
    context.diagnostics = &diagnostics;
    context.place_of = [&](const std::string& name) { return reader.PlaceOf(name); };
    context.is_given = [&](const std::string& name) { return reader.IsGiven(name); };
    context.list_files = [](const std::string&) {
      std::vector<std::string> files;
      for (const std::string& name : Presets()) files.push_back(name + ".toml");
      return files;
    };
    context.read_toml = [&](const std::string& file) {
      return ReadTomlFile(kFolder + file, diagnostics);
    };
    context.read_user_toml = [&](const std::string& file) {
      return ParseToml(own, file, diagnostics);
    };
    context.read_table = [&](const Value& value, const std::vector<std::string>& reserved,
                             const std::function<void(ParameterVisitor&)>& visit) {
      ParameterReader table_reader(&value, value.place, reserved, &diagnostics);
      visit(table_reader);
      table_reader.Finish();
    };
    machine.Init(context);
  }

  std::string Said() const {
    std::string text;
    for (const Diagnostic& d : diagnostics.all())
      text += d.place.file + ":" + std::to_string(d.place.line) + ": " + d.message + "\n";
    return text;
  }
};

constexpr const char* kOwn =
    "machine = \"mine\"\nmemory = \"24 GB\"\nmemory_bandwidth = \"1 TB/s\"\n"
    "peak_bf16 = \"160 TFLOP/s\"\n[[tiers]]\nname = \"pcie\"\ndevices = 4\n"
    "bandwidth = \"32 GB/s\"\n[[tiers]]\nname = \"ethernet\"\nbandwidth = \"12.5 GB/s\"\n";

TEST(Accelerator, EveryPresetIsAMachineWhoseKeysHaveSources) {
  EXPECT_EQ(Presets(), (std::vector<std::string>{"a100-40gb", "a100-80gb", "b200-sxm",
                                                 "gb200-nvl72", "h100-sxm", "h200-sxm", "mi300x"}));
  for (const std::string& preset : Presets()) {
    SCOPED_TRACE(preset);
    const World world("preset = \"" + preset + "\"\nnodes = 2\n");
    EXPECT_EQ(world.Said(), "");
    const Machine& m = world.machine.machine();
    ASSERT_EQ(m.tiers.size(), 2u);
    EXPECT_EQ(m.devices, 2 * m.tiers[0].devices);
    EXPECT_EQ(m.tiers[1].devices, m.devices);
    for (const Constant& c : world.machine.Constants()) {
      EXPECT_FALSE(c.source.empty()) << c.name;
      EXPECT_EQ(c.source.find("no source given"), std::string::npos) << c.name;
    }
    Diagnostics ignored;
    const Value file = ReadTomlFile(kFolder + "presets/" + preset + ".toml", ignored);
    for (const auto& [key, value] : file.table) {
      if (key == "machine" || key == "tiers" || key == "source" || key == "sources") continue;
      EXPECT_NE(file.FindPath("sources." + key), nullptr) << key;
    }
  }
}

TEST(Accelerator, TheRackIsOneDomain) {
  const World world("preset = \"gb200-nvl72\"\ndevices = 144\n");
  EXPECT_EQ(world.machine.machine().tiers[0].devices, 72);
  EXPECT_EQ(world.machine.machine().tiers[0].bandwidth.value(), 900e9);
}

TEST(Accelerator, ALargeProductComesNearWhatIsSustained) {
  for (const std::string& preset : Presets()) {
    SCOPED_TRACE(preset);
    const World world("preset = \"" + preset + "\"\n");
    double record = 0, sustained = 0;
    for (const Constant& c : world.machine.Constants()) {
      if (c.name == "best_product") record = c.value;
      if (c.name == "sustained") sustained = c.value;
    }
    const double n = 16384;
    const OpShape shape{.kind = OpKind::kProduct,
                        .m = n,
                        .n = n,
                        .k = n,
                        .flops = 2 * n * n * n,
                        .bytes = 6 * n * n};
    const double rate = shape.flops / world.machine.OpTime(shape).value();
    EXPECT_LT(rate, sustained * record);
    EXPECT_GT(rate, 0.95 * sustained * record);
  }
}

TEST(Accelerator, NominalMemoryIsThatOfTheBox) {
  EXPECT_EQ(World("preset = \"a100-80gb\"\n", "", true).machine.machine().memory.value(), 80e9);
  const World op("preset = \"h200-sxm\"\n");
  EXPECT_EQ(op.machine.machine().memory.value(), 140.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(op.machine.machine().outside_allocator.value(), 2.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(World("memory = \"10 GB\"\n").machine.machine().memory.value(), 10e9);
}

TEST(Accelerator, AFileOfTheUsers) {
  const World world("file = \"own.toml\"\nnodes = 3\nprice_per_device_hour = 2\n", kOwn);
  ASSERT_EQ(world.Said(), "");
  const Machine& m = world.machine.machine();
  EXPECT_EQ(m.name, "mine");
  EXPECT_EQ(m.devices, 12);
  EXPECT_EQ(m.peak.value(), 160e12);
  EXPECT_EQ(m.price_per_device_hour, 2);
  for (const Constant& c : world.machine.Constants()) {
    if (c.name == "peak_bf16") {
      EXPECT_EQ(c.source, "machine file, no source given");
    }
    if (c.name == "launch") {
      EXPECT_EQ(c.source, "assumed: as on H100");
    }
  }
}

TEST(Accelerator, MistakesInAFileAreToldAtTheirPlaces) {
  const World empty("file = \"own.toml\"\n", "launch = \"1 us\"\n");
  EXPECT_EQ(empty.Said(),
            "own.toml:1: a machine needs memory\nown.toml:1: a machine needs memory_bandwidth\n"
            "own.toml:1: a machine needs peak_bf16\nown.toml:1: a machine needs tiers\n");
  const World unit("file = \"own.toml\"\n", std::string("launch = 3\nlunch = \"1 us\"\n") + kOwn);
  EXPECT_NE(unit.Said().find("own.toml:1: launch must be"), std::string::npos) << unit.Said();
  EXPECT_NE(unit.Said().find("own.toml:2: unknown key \"lunch\""), std::string::npos);
  const World fast("file = \"own.toml\"\n", std::string("best_product = \"200 TFLOP/s\"\n") + kOwn);
  EXPECT_EQ(fast.Said(), "own.toml:1: best_product is more than peak_bf16\n");
  const World source("file = \"own.toml\"\n", std::string(kOwn) + "[sources]\nmemry = \"x\"\n");
  EXPECT_EQ(source.Said(),
            "own.toml:13: a source for \"memry\", which the machine does not state\n");
}

TEST(Accelerator, MistakesInTheScenario) {
  EXPECT_EQ(World("preset = \"h100\"\n").Said(), "scenario.toml:1: there is no preset \"h100\"\n");
  EXPECT_EQ(World("preset = \"mi300x\"\nfile = \"own.toml\"\n", kOwn).Said(),
            "scenario.toml:2: preset and file both name a machine\n");
  EXPECT_NE(World("nodes = 2\ndevices = 8\n").Said().find("contradict"), std::string::npos);
  EXPECT_EQ(World("tiers = 3\n").Said(),
            "scenario.toml:1: tiers must be a list of tables, not a whole number\n");
  EXPECT_EQ(World("tiers = [{ name = \"a\", bandwidth = \"1 GB/s\" }, { name = \"b\", "
                  "bandwidth = \"1 GB/s\" }]\n")
                .Said(),
            "scenario.toml:1: a tier needs devices\n");
  EXPECT_NE(World("tiers = [{ name = \"a\", devices = 8, bandwidth = \"1 GB/s\" }, { name = "
                  "\"b\", devices = 12, bandwidth = \"1 GB/s\" }]\n")
                .Said()
                .find("does not hold whole domains of 8"),
            std::string::npos);
}

TEST(Accelerator, OversubscriptionDividesTheBandwidthBeyondThePod) {
  const World world(
      "devices = 512\ntiers = [{ name = \"nvlink\", devices = 8, bandwidth = \"450 GB/s\" }, { "
      "name = \"pod\", devices = 256, bandwidth = \"50 GB/s\" }, { name = \"spine\", bandwidth = "
      "\"50 GB/s\", oversubscription = 4 }]\n");
  ASSERT_EQ(world.Said(), "");
  const Machine& m = world.machine.machine();
  ASSERT_EQ(m.tiers.size(), 3u);
  EXPECT_EQ(m.tiers[1].devices, 256);
  EXPECT_EQ(m.tiers[1].bandwidth.value(), 50e9);
  EXPECT_EQ(m.tiers[2].devices, 512);
  EXPECT_EQ(m.tiers[2].bandwidth.value(), 12.5e9);
}

TEST(Accelerator, FewerDevicesThanADomain) {
  const World world("preset = \"gb200-nvl72\"\ndevices = 16\n");
  const Machine& m = world.machine.machine();
  EXPECT_EQ(m.devices, 16);
  EXPECT_GE(m.tiers[1].devices, m.tiers[0].devices);
}

}  // namespace
}  // namespace shardlab::accelerator
