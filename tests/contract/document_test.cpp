// The keys and types of a plan's JSON. Keys may be added; none of those below may go or change its
// type.

#include "contract/contract_fixture.h"

namespace shardlab {
namespace {

// --- the document of plan
// -------------------------------------------------------------------------------

// "path type": s string, b boolean, i integer, d a number (a double where it is none of bytes or
// counts), o object, a array, ? anything; a path through [] holds for each element.
constexpr const char* kPlanKeys[] = {
    "schema s",
    "scenario s",
    "accounting s",
    "resolved o",
    "model o",
    "hardware o",
    "plan o",
    "memory o",
    "time o",
    "throughput o",
    "communication a",
    "diagnostics a",
    "provenance a",
    "model.name s",
    "model.parameters i",
    "model.active_parameters i",
    "model.layers i",
    "hardware.name s",
    "hardware.devices i",
    "hardware.memory_bytes i",
    "hardware.tiers a",
    "hardware.tiers[].name s",
    "hardware.tiers[].devices i",
    "hardware.tiers[].bandwidth_bytes_per_second d",
    "hardware.tiers[].latency_seconds d",
    "hardware.tiers[].ports i",
    "plan.tensor i",
    "plan.sequence_parallel b",
    "plan.context i",
    "plan.pipeline i",
    "plan.chunks i",
    "plan.data i",
    "plan.expert i",
    "plan.expert_tensor i",
    "plan.expert_data i",
    "plan.zero_stage i",
    "plan.fsdp_shard i",
    "plan.replicate i",
    "plan.mesh_order s",
    "plan.micro_batch_size i",
    "plan.micro_batches i",
    "plan.global_batch_size i",
    "plan.sequence_length i",
    "plan.schedule s",
    "plan.layers a",
    "plan.layers[] i",
    "plan.recompute o",
    "plan.recompute.mode s",
    "plan.recompute.segment i",
    "plan.recompute.stride i",
    "plan.recompute.layers ?",
    "plan.recompute.modules a",
    "plan.precision o",
    "plan.precision.recipe s",
    "plan.precision.parameters s",
    "plan.precision.compute s",
    "plan.precision.gradients s",
    "plan.precision.gradient_reduce s",
    "plan.precision.master s",
    "plan.precision.moments s",
    "plan.optimizer s",
    "plan.software s",
    "memory.fits b",
    "memory.verdict s",
    "memory.capacity_bytes i",
    "memory.peak_bytes i",
    "memory.headroom_bytes i",
    "memory.worst_rank i",
    "memory.host o",
    "memory.host.capacity_bytes i",
    "memory.host.peak_bytes i",
    "memory.host.fits b",
    "memory.ranks a",
    "memory.ranks[].pipeline_rank i",
    "memory.ranks[].stages a",
    "memory.ranks[].stages[] i",
    "memory.ranks[].parameters_bytes i",
    "memory.ranks[].gradients_bytes i",
    "memory.ranks[].optimizer_bytes i",
    "memory.ranks[].activations_bytes i",
    "memory.ranks[].gathered_bytes i",
    "memory.ranks[].transient_bytes i",
    "memory.ranks[].allocated_bytes i",
    "memory.ranks[].fragmentation_bytes i",
    "memory.ranks[].outside_allocator_bytes i",
    "memory.ranks[].total_bytes i",
    "memory.ranks[].initialisation_peak_bytes i",
    "memory.ranks[].first_step_peak_bytes i",
    "memory.ranks[].in_flight_micro_batches d",
    "time.step_seconds d",
    "time.rank i",
    "time.forward_seconds d",
    "time.backward_seconds d",
    "time.recompute_seconds d",
    "time.optimizer_seconds d",
    "time.bubble_seconds d",
    "time.bubble_fraction d",
    "time.own_bubble_seconds d",
    "time.exposed o",
    "time.exposed.tensor_seconds d",
    "time.exposed.context_seconds d",
    "time.exposed.expert_seconds d",
    "time.exposed.pipeline_seconds d",
    "time.exposed.data_seconds d",
    "time.hidden o",
    "time.hidden.tensor_seconds d",
    "time.hidden.context_seconds d",
    "time.hidden.expert_seconds d",
    "time.hidden.pipeline_seconds d",
    "time.hidden.data_seconds d",
    "time.approximate b",
    "throughput.tokens_per_second d",
    "throughput.tokens_per_second_per_device d",
    "throughput.model_flops_per_token d",
    "throughput.model_flops_per_second_per_device d",
    "throughput.mfu d",
    "throughput.mfu_convention s",
    "throughput.hfu d",
    "communication[].axis s",
    "communication[].collective s",
    "communication[].tensor s",
    "communication[].phase s",
    "communication[].author s",
    "communication[].count d",
    "communication[].bytes_per_call i",
    "communication[].bytes i",
    "communication[].group_size i",
    "communication[].spans a",
    "communication[].spans[] i",
    "communication[].tier s",
    "communication[].algorithm s",
    "communication[].declared b",
    "communication[].seconds d",
    "communication[].exposed_seconds d",
    "provenance[].name s",
    "provenance[].value ?",
    "provenance[].source s",
};

constexpr const char* kDiagnosticKeys[] = {"[].severity s", "[].code s", "[].message s",
                                           "[].file s",     "[].line i", "[].column i",
                                           "[].hint s"};

bool IsOf(const Json& value, char type) {
  switch (type) {
    case 's':
      return value.is_string();
    case 'b':
      return value.is_boolean();
    case 'i':
      return value.is_number_integer();
    case 'd':
      return value.is_number();
    case 'o':
      return value.is_object();
    case 'a':
      return value.is_array();
    default:
      return true;
  }
}

void CheckKey(const Json& at, const std::string& rest, char type, const std::string& whole) {
  if (rest.empty()) {
    EXPECT_TRUE(IsOf(at, type)) << whole << " is " << at.dump();
    return;
  }
  if (rest.rfind("[]", 0) == 0) {
    ASSERT_TRUE(at.is_array()) << whole;
    for (const Json& item : at)
      CheckKey(item, rest.substr(rest.size() > 2 && rest[2] == '.' ? 3 : 2), type, whole);
    return;
  }
  const std::size_t end = std::min(rest.find_first_of(".["), rest.size());
  const std::string key = rest.substr(0, end);
  ASSERT_TRUE(at.is_object() && at.contains(key)) << whole << " is missing";
  CheckKey(at[key], rest.substr(end < rest.size() && rest[end] == '.' ? end + 1 : end), type,
           whole);
}

template <std::size_t N>
void CheckKeys(const Json& document, const char* const (&keys)[N]) {
  for (const std::string key : keys)
    CheckKey(document, key.substr(0, key.size() - 2), key.back(), key);
}

// Keys say their unit: bytes are whole numbers (rates are not bytes), seconds and rates are
// doubles.
void CheckUnits(const Json& json, const std::string& path) {
  if (json.is_array()) {
    for (const Json& item : json) CheckUnits(item, path + "[]");
  }
  if (!json.is_object()) return;
  const auto ends = [](const std::string& key, const std::string& tail) {
    return key.size() >= tail.size() &&
           key.compare(key.size() - tail.size(), tail.size(), tail) == 0;
  };
  for (const auto& [key, value] : json.items()) {
    const std::string at = absl::StrCat(path, ".", key);
    if (ends(key, "_bytes") || key == "bytes" || key == "bytes_per_call") {
      EXPECT_TRUE(value.is_number_integer()) << at << " is " << value;
    }
    if (ends(key, "_seconds") || ends(key, "_per_second") || ends(key, "_per_device")) {
      EXPECT_TRUE(value.is_number_float()) << at << " is " << value;
    }
    CheckUnits(value, at);
  }
}

TEST_F(Contract, PlanHasEveryKeyWithItsType) {
  for (const auto& [name, text] : Scenarios()) {
    SCOPED_TRACE(name);
    const Json document = Plan(name + ".toml");
    CheckKeys(document, kPlanKeys);
    CheckKeys(document["diagnostics"], kDiagnosticKeys);
    for (const char* part :
         {"model", "hardware", "plan", "memory", "time", "throughput", "communication"})
      CheckUnits(document[part], part);
    EXPECT_EQ(document["schema"], "shardlab.plan/1");
    EXPECT_EQ(document["scenario"], name) << "a scenario without a name has that of its file";
    EXPECT_TRUE(std::set<std::string>({"fits", "tight", "does_not_fit"})
                    .count(document["memory"]["verdict"]));
    EXPECT_EQ(document["memory"]["fits"], document["memory"]["verdict"] != "does_not_fit");
    EXPECT_TRUE(std::set<std::string>({"causal", "full", "6p"})
                    .count(document["throughput"]["mfu_convention"]));
    EXPECT_EQ(document["memory"]["ranks"].size(), document["plan"]["pipeline"]);
    EXPECT_EQ(document["plan"]["layers"].size(), document["plan"]["pipeline"].get<std::size_t>() *
                                                     document["plan"]["chunks"].get<std::size_t>());
    EXPECT_FALSE(document["provenance"].empty());
    for (const Json& row : document["communication"])
      EXPECT_EQ(row["spans"].size(), document["hardware"]["tiers"].size());
    EXPECT_EQ(RunProgram({"plan", name + ".toml", "--format", "json"}).out, document.dump(2) + "\n")
        << "and nothing else";
  }
}

TEST_F(Contract, TextbookLeavesOutWhatItSaysItLeavesOut) {
  for (const char* name : {"textbook-plain", "textbook-full", "textbook-zero3"}) {
    const Json document = Plan(absl::StrCat(name, ".toml"));
    for (const Json& rank : document["memory"]["ranks"]) {
      for (const char* account : {"gathered_bytes", "transient_bytes", "fragmentation_bytes",
                                  "outside_allocator_bytes"}) {
        EXPECT_EQ(rank[account], 0) << account;
      }
    }
    EXPECT_EQ(document["time"]["optimizer_seconds"], 0);
    EXPECT_EQ(document["throughput"]["mfu_convention"], "6p");
  }
}

// --- resolved
// -------------------------------------------------------------------------------------------

std::string ToScenario(const Json& value) {
  if (value.is_object()) {
    std::string out;
    for (const auto& [key, item] : value.items()) {
      if (item.is_null()) continue;  // left out: what it stands for is found again
      absl::StrAppend(&out, out.empty() ? "" : ", ", "\"", key, "\" = ", ToScenario(item));
    }
    return "{ " + out + " }";
  }
  if (value.is_array()) {
    std::string out;
    for (const Json& item : value) absl::StrAppend(&out, out.empty() ? "" : ", ", ToScenario(item));
    return "[" + out + "]";
  }
  return value.dump();
}

TEST_F(Contract, ResolvedWrittenBackIsTheSameScenario) {
  for (const auto& [name, text] : Scenarios()) {
    SCOPED_TRACE(name);
    const Json document = Plan(name + ".toml");
    std::string again;
    for (const auto& [key, value] : document["resolved"].items())
      absl::StrAppend(&again, key, " = ", ToScenario(value), "\n");
    WriteFile("again.toml", again);
    const ProgramRun run = RunProgram({"plan", "again.toml", "--format", "json"});
    ASSERT_EQ(run.status, 0) << run.err << again;
    Json other = Json::parse(run.out), before = document;
    // Places differ, and a default that is written out may be told to be of no use.
    before.erase("diagnostics");
    other.erase("diagnostics");
    EXPECT_TRUE(before.dump() == other.dump())
        << again << Json::diff(before, other).dump(1).substr(0, 2000);
  }
}

TEST_F(Contract, ResolvedHasTheDefaultsThatScriptsReadThere) {
  const Json textbook = Plan("textbook-full.toml")["resolved"],
             op = Plan("operator-full.toml")["resolved"];
  EXPECT_EQ(textbook["hardware"]["memory"], "80 GB");
  EXPECT_EQ(op["hardware"]["memory"], "81559 MiB");
  EXPECT_EQ(textbook["precision"]["recipe"], "textbook");
  EXPECT_EQ(op["precision"]["recipe"], "megatron-bf16");
  EXPECT_EQ(textbook["hardware"]["network"]["plugin"], "rail");
  EXPECT_EQ(op["hardware"]["network"]["plugin"], "nccl");
  EXPECT_EQ(textbook["strategy"]["data"]["overlap"], "none");
  EXPECT_EQ(op["strategy"]["data"]["overlap"], "full");
  EXPECT_EQ(textbook["schedule"]["transfers"], "ignore");
  EXPECT_EQ(op["schedule"]["transfers"], "exposed");
  for (const Json& resolved : {textbook, op}) {
    EXPECT_EQ(resolved["schedule"]["plugin"], "pipeline-1f1b");
    EXPECT_EQ(resolved["optimizer"]["plugin"], "adam");
    EXPECT_EQ(resolved["software"]["preset"], "generic");
    EXPECT_EQ(resolved["mesh"]["order"], "tp-cp-ep-dp-pp");
    EXPECT_EQ(resolved["hardware"]["efficiency"], 0.5);
    EXPECT_EQ(resolved["training"]["micro_batch_size"], 1);
    EXPECT_EQ(resolved["strategy"]["zero"]["reduce"], "micro_batch");
    EXPECT_EQ(resolved["strategy"]["tensor"]["overlap"], 0.0);
  }
  EXPECT_EQ(Plan("operator-plain.toml")["plan"]["zero_stage"], 0) << "0 without the table";
  WriteFile("zero.toml", std::string(kModelAndMachine) + "[strategy.zero]\n");
  EXPECT_EQ(Plan("zero.toml")["plan"]["zero_stage"], 1) << "1 with it";
}

TEST_F(Contract, WithJsonErrorsAreADocumentToo) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"plan", "bad.toml"},
                                             {"plan", "none.toml"},
                                             {"plan", "good.toml", "--set", "x"},
                                             {"explain", "bad.toml"},
                                             {"explain", "good.toml", "energy"},
                                             {"plan"},
                                             {"plan", "good.toml", "--sett", "a=1"},
                                             {"models", "llama"},
                                             {"plugins", "show", "none"},
                                             {"plugins", "sho"},
                                             {"nothing"}}) {
    std::vector<std::string> with = args;
    with.insert(with.end(), {"--format", "json"});
    SCOPED_TRACE(with[0] + " " + (with.size() > 1 ? with[1] : ""));
    const ProgramRun text = RunProgram(args), json = RunProgram(with);
    EXPECT_EQ(text.status, 2);
    EXPECT_EQ(json.status, 2);
    EXPECT_EQ(text.out, "");
    EXPECT_EQ(text.err, json.err);
    const Json document = Json::parse(json.out, nullptr, false);
    ASSERT_TRUE(document.is_object()) << json.out;
    EXPECT_EQ(document["schema"], "shardlab.diagnostics/1");
    ASSERT_FALSE(document["diagnostics"].empty());
    CheckKeys(document["diagnostics"], kDiagnosticKeys);
    for (const Json& d : document["diagnostics"])
      EXPECT_THAT(json.err, HasSubstr(d["message"].get<std::string>()));
  }
}

}  // namespace
}  // namespace shardlab
