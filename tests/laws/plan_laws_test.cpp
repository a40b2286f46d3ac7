// What holds for every plan, whatever plugins it is made of.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/travel.h"
#include "laws/allocation_counter.h"
#include "laws/made.h"
#include "laws/plans.h"
#include "laws/random.h"
#include "laws/slow_player.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

template <std::size_t N>
double Sum(const std::array<double, N>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

double BusySeconds(const TimeParts& t) {
  return t.forward + t.backward + t.recompute + t.optimizer + t.bubble + Sum(t.exposed);
}

// All numbers of an evaluation, bit by bit.
std::vector<std::uint64_t> Bits(const Evaluation& e) {
  std::vector<double> numbers = {e.step,           e.pipeline,       e.peak,
                                 e.capacity,       e.time.forward,   e.time.backward,
                                 e.time.recompute, e.time.optimizer, e.time.bubble};
  numbers.insert(numbers.end(), e.time.exposed.begin(), e.time.exposed.end());
  numbers.insert(numbers.end(), e.time.hidden.begin(), e.time.hidden.end());
  std::vector<std::uint64_t> bits = {e.fits, static_cast<std::uint64_t>(e.worst_rank),
                                     static_cast<std::uint64_t>(e.time_rank), e.approximate};
  for (const double n : numbers) bits.push_back(std::bit_cast<std::uint64_t>(n));
  return bits;
}

Evaluation EvaluateAfresh(const Composition& c, const Plan& plan, const CompiledOrder* order) {
  Workspace workspace(c);
  workspace.Reserve(plan, order);
  return Evaluate(c, plan, order, workspace);
}

// Of a document what must not change when a strategy that does nothing is named, or tables change
// places.
Json Essence(const LawPlan& plan, const std::set<std::string>& ignored_facts) {
  Json document = plan.document;
  document.erase("resolved");
  document.erase("diagnostics");
  for (const std::string& fact : ignored_facts) document["plan"].erase(fact);
  return document;
}

std::set<std::string> FactsOf(const LawPlan& plan) {
  std::set<std::string> facts;
  for (const auto& [key, value] : plan.composition().edited.plan_facts) facts.insert(key);
  for (const auto& [key, ranks] : plan.composition().edited.plan_degrees) facts.insert(key);
  return facts;
}

std::multiset<std::string> Told(const LawPlan& plan) {
  std::multiset<std::string> told;
  for (const Diagnostic& d : plan.diagnostics.all())
    told.insert(absl::StrCat(Name(d.severity), d.code, d.message, d.hint));
  return told;
}

// Equal but for the last bits of seconds: an axis of one rank may change which equal terms are
// added first.
bool Alike(const Json& a, const Json& b) {
  if (a.is_number_float() && b.is_number_float()) {
    return std::abs(a.get<double>() - b.get<double>()) <= 1e-12 * std::abs(a.get<double>()) + 1e-18;
  }
  if (!a.is_structured() || a.type() != b.type() || a.size() != b.size()) return a == b;
  for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) {
    if ((a.is_object() && i.key() != j.key()) || !Alike(*i, *j)) return false;
  }
  return true;
}

// The first difference, for a message that a person can read.
std::string Difference(const Json& a, const Json& b) {
  const Json patch = Json::diff(a, b);
  std::string text;
  for (std::size_t i = 0; i < patch.size() && i < 5; ++i) {
    const std::string path = patch[i]["path"];
    const Json::json_pointer pointer(path);
    absl::StrAppend(&text, path, ": ", a.contains(pointer) ? a[pointer].dump() : "nothing",
                    " against ", b.contains(pointer) ? b[pointer].dump() : "nothing", "\n");
  }
  return text;
}

// A law is checked on every plan; the first that breaks it is shown.
template <class F>
void ForEachPlan(F check) {
  for (const LawPlan& plan : LegalPlans()) {
    SCOPED_TRACE(plan.text);
    check(plan);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(PlanLaws, TheDrawnPlansAreOfEveryKind) {
  std::map<std::string, int> seen;
  for (const LawPlan& plan : LegalPlans()) {
    ++seen["accounting " + plan.composition().rules.name];
    if (plan.plan().pipeline > 1) ++seen["pipeline"];
    if (plan.plan().chunks > 1) ++seen["chunks"];
    for (const Table& table : plan.draft.tables) {
      if (!absl::StartsWith(table.header, "strategy.")) continue;
      for (const auto& [key, value] : table.keys) {
        const std::string neutral = NeutralValue(key);
        if (!neutral.empty() && value != neutral) ++seen[table.header];
      }
    }
  }
  for (const std::string& name : CatalogNames(BuiltPlugins(), "accounting"))
    EXPECT_GT(seen["accounting " + name], 50) << name;
  EXPECT_GT(seen["pipeline"], 50);
  for (const std::string& name : BuiltPlugins().Names("strategy")) {
    bool has_neutral = false;
    for (const ParameterDoc& doc : DocsOf("strategy", name))
      has_neutral |= !NeutralValue(doc.name).empty();
    if (has_neutral) {
      EXPECT_GE(seen["strategy." + name], 5) << name << " hardly ever does anything";
    }
  }
}

TEST(PlanLaws, ARefusalIsAMistakeOfTheUserAndNotOfAPlugin) {
  std::set<std::string> said;
  for (const Diagnostic& d : Refusals()) {
    if (!said.insert(d.code + d.message).second) continue;
    for (const char* code :
         {"plugin.threw", "strategy.threw", "model.rows", "model.failed", "schedule.order"}) {
      EXPECT_NE(d.code, code) << d.message;
    }
    EXPECT_FALSE(d.message.empty());
  }
}

// Nothing, or a word for how it would be done: that means nothing either.
std::vector<std::vector<std::pair<std::string, std::string>>> WordsBeside(
    const ParameterDoc& neutral, const std::vector<ParameterDoc>& docs) {
  std::vector<std::vector<std::pair<std::string, std::string>>> all = {{}};
  for (const ParameterDoc& doc : docs) {
    if (doc.name == neutral.name || doc.name != "method") continue;
    for (const std::string& word : doc.choices) all.push_back({{doc.name, "\"" + word + "\""}});
  }
  return all;
}

TEST(PlanLaws, AStrategyThatDoesNothingChangesNothing) {
  std::map<std::string, int> checked;
  ForEachPlan([&](const LawPlan& plan) {
    for (const std::string& name : BuiltPlugins().Names("strategy")) {
      const std::string header = "strategy." + name;
      for (const ParameterDoc& doc : DocsOf("strategy", name)) {
        const std::string neutral = NeutralValue(doc.name);
        if (neutral.empty() || plan.draft.tables.empty()) continue;
        Draft without = plan.draft;
        if (without.Find(header) != nullptr) continue;
        for (const auto& words : WordsBeside(doc, DocsOf("strategy", name))) {
          Draft with = without;
          with.tables.push_back({header, {{doc.name, neutral}}});
          for (const auto& [key, word] : words) with.tables.back().Set(key, word);
          // A strategy may come with the precision that its framework is used with.
          if (with.Find("precision") == nullptr) {
            with.tables.push_back(
                {"precision", {{"recipe", "\"" + plan.composition().precision.recipe + "\""}}});
          }
          Diagnostics refusal;
          const std::optional<LawPlan> other = PlanOf(with, &refusal);
          if (!other) {
            // A degree of 1 on the axis that takes what is left is a statement, and may be wrong.
            const auto error =
                std::find_if(refusal.all().begin(), refusal.all().end(),
                             [](const Diagnostic& d) { return d.severity == Severity::kError; });
            ASSERT_NE(error, refusal.all().end());
            EXPECT_EQ(error->code, "plan.world") << header << ": " << error->message;
            continue;
          }
          std::set<std::string> facts = FactsOf(plan);
          facts.merge(FactsOf(*other));
          const Json before = Essence(plan, facts), after = Essence(*other, facts);
          EXPECT_TRUE(Alike(before, after)) << header << "\n"
                                            << with.Text() << Difference(before, after);
          ++checked[header];
        }
      }
    }
  });
  EXPECT_GE(checked.size(), 4u);
  // The axis that takes what is left has one rank in few plans.
  for (const auto& [header, times] : checked) EXPECT_GE(times, 3) << header;
}

// One pipeline rank is gradient accumulation: which schedule is named does not matter, nor whether
// one is.
TEST(PlanLaws, WithOnePipelineRankTheScheduleIsNotAsked) {
  int checked = 0;
  ForEachPlan([&](const LawPlan& plan) {
    if (plan.plan().pipeline != 1) return;
    for (const std::string& name : BuiltPlugins().Names("schedule")) {
      Draft with = plan.draft;
      std::erase_if(with.tables, [](const Table& table) { return table.header == "schedule"; });
      with.tables.push_back({"schedule", {{"plugin", "\"" + name + "\""}, {"degree", "1"}}});
      const std::optional<LawPlan> other = PlanOf(with);
      ASSERT_TRUE(other.has_value()) << name;
      const Json before = Essence(plan, {"schedule"}), after = Essence(*other, {"schedule"});
      EXPECT_TRUE(before.dump() == after.dump()) << name << "\n" << Difference(before, after);
      EXPECT_EQ(other->document["memory"]["ranks"][0]["in_flight_micro_batches"], 1);
      ++checked;
    }
  });
  EXPECT_GE(checked, 50);
}

TEST(PlanLaws, TheOrderOfTheFileChangesNothing) {
  Random random(11);
  ForEachPlan([&](const LawPlan& plan) {
    for (int i = 0; i < 2; ++i) {
      Draft shuffled = plan.draft;
      Table top = shuffled.tables[0];  // stands before all tables
      shuffled.tables.erase(shuffled.tables.begin());
      random.Shuffle(shuffled.tables);
      for (Table& table : shuffled.tables) random.Shuffle(table.keys);
      random.Shuffle(top.keys);
      shuffled.tables.insert(shuffled.tables.begin(), top);
      const std::optional<LawPlan> other = PlanOf(shuffled);
      ASSERT_TRUE(other.has_value()) << shuffled.Text();
      const Json before = Essence(plan, {}), after = Essence(*other, {});
      EXPECT_TRUE(before.dump() == after.dump()) << shuffled.Text() << "\n"
                                                 << Difference(before, after);
      EXPECT_EQ(nlohmann::json(plan.document["resolved"]),
                nlohmann::json(other->document["resolved"]));
      EXPECT_EQ(Told(plan), Told(*other));
    }
  });
}

TEST(PlanLaws, ThePartsOfTheTimeAreTheStep) {
  ForEachPlan([](const LawPlan& plan) {
    const Evaluation& e = plan.planned.explanation.evaluation;
    EXPECT_NEAR(BusySeconds(e.time), e.step, 2e-12 * e.step);
    for (const double part :
         {e.time.forward, e.time.backward, e.time.recompute, e.time.optimizer, e.time.bubble})
      EXPECT_GE(part, 0);
    for (std::size_t r = 0; r < kAxisRoles; ++r) {
      EXPECT_GE(e.time.exposed[r], 0) << Name(static_cast<AxisRole>(r));
      EXPECT_GE(e.time.hidden[r], -1e-12 * e.step) << Name(static_cast<AxisRole>(r));
    }
    const Json& t = plan.document["time"];
    double sum = 0;
    for (const char* part : {"forward", "backward", "recompute", "optimizer", "bubble"}) {
      const double seconds = t[absl::StrCat(part, "_seconds")];
      EXPECT_GE(seconds, 0) << part;
      sum += seconds;
    }
    for (const auto& [role, seconds] : t["exposed"].items()) sum += seconds.get<double>();
    EXPECT_NEAR(sum, t["step_seconds"].get<double>(), 2e-12 * e.step);
    EXPECT_GE(t["bubble_fraction"], 0);
    EXPECT_LT(t["bubble_fraction"], 1);
    EXPECT_LE(t["own_bubble_seconds"].get<double>(), e.time.bubble + 1e-9 * e.step);
    if (plan.plan().pipeline == 1) {
      EXPECT_EQ(t["bubble_seconds"], 0);
    }
  });
}

TEST(PlanLaws, TotalsAreTheSumsOfTheirAccounts) {
  ForEachPlan([](const LawPlan& plan) {
    const Json& memory = plan.document["memory"];
    std::int64_t most = 0;
    for (const Json& rank : memory["ranks"]) {
      std::int64_t sum = 0;
      for (const char* account :
           {"parameters", "gradients", "optimizer", "activations", "gathered", "transient"}) {
        const std::int64_t bytes = rank[absl::StrCat(account, "_bytes")];
        EXPECT_GE(bytes, 0) << account;
        sum += bytes;
      }
      EXPECT_EQ(rank["allocated_bytes"], sum);
      sum += rank["fragmentation_bytes"].get<std::int64_t>() +
             rank["outside_allocator_bytes"].get<std::int64_t>();
      EXPECT_EQ(rank["total_bytes"], sum);
      most = std::max(most, sum);
    }
    EXPECT_LE(std::abs(memory["peak_bytes"].get<std::int64_t>() - most), 8)
        << "the worst rank is the worst but for rounding";
    EXPECT_EQ(memory["peak_bytes"],
              memory["ranks"][memory["worst_rank"].get<std::size_t>()]["total_bytes"]);
    EXPECT_EQ(
        memory["headroom_bytes"].get<std::int64_t>(),
        memory["capacity_bytes"].get<std::int64_t>() - memory["peak_bytes"].get<std::int64_t>());
    const Evaluation& e = plan.planned.explanation.evaluation;
    for (const RankExplanation& rank : plan.planned.explanation.ranks) {
      EXPECT_NEAR(Sum(rank.memory.bytes), rank.memory.total, 1e-12 * rank.memory.total);
      EXPECT_LE(rank.memory.total, e.peak);
    }
    const Json& host = memory["host"];
    EXPECT_EQ(host["fits"], e.host_capacity == 0 || e.host_peak <= e.host_capacity);
    EXPECT_EQ(e.fits, e.peak <= e.capacity && host["fits"].get<bool>()) << "device and host";
    std::int64_t most_host = 0;
    for (const Json& rank : memory["ranks"])
      most_host = std::max(most_host, rank["host_bytes"].get<std::int64_t>());
    EXPECT_EQ(host["peak_bytes"], most_host);
    int layers = 0;
    for (const Json& n : plan.document["plan"]["layers"]) layers += n.get<int>();
    EXPECT_EQ(layers, plan.document["model"]["layers"]);
  });
}

TEST(PlanLaws, TheDegreesAreTheMachineAndTheBatch) {
  ForEachPlan([](const LawPlan& plan) {
    const Json& p = plan.document["plan"];
    const std::int64_t world = p["tensor"].get<std::int64_t>() * p["context"].get<std::int64_t>() *
                               p["pipeline"].get<std::int64_t>() * p["data"].get<std::int64_t>();
    EXPECT_EQ(world, plan.document["hardware"]["devices"]);
    EXPECT_EQ(p["micro_batch_size"].get<std::int64_t>() * p["micro_batches"].get<std::int64_t>() *
                  p["data"].get<std::int64_t>(),
              p["global_batch_size"]);
  });
}

TEST(PlanLaws, EveryAccountIsTheSumOfItsEntries) {
  ForEachPlan([](const LawPlan& plan) {
    for (const RankExplanation& rank : plan.planned.explanation.ranks) {
      std::array<double, kAccounts + 1> sums{};
      for (const MemoryEntry& entry : rank.entries) {
        sums[static_cast<std::size_t>(entry.account)] += entry.bytes;
        EXPECT_FALSE(entry.author.empty()) << entry.row;
        EXPECT_FALSE(entry.row.empty());
        EXPECT_FALSE(entry.formula.empty()) << entry.row;
        EXPECT_FALSE(entry.source.empty()) << entry.row;
      }
      for (std::size_t a = 0; a <= kAccounts; ++a) {
        const double bytes = a < kAccounts ? rank.memory.bytes[a] : rank.memory.host;
        EXPECT_NEAR(sums[a], bytes, 1e-9 * std::max(1.0, bytes))
            << Name(static_cast<Account>(a)) << " of stages " << rank.stages[0];
      }
    }
  });
}

TEST(PlanLaws, EveryPartOfTheTimeIsTheSumOfItsEntries) {
  ForEachPlan([](const LawPlan& plan) {
    const Explanation& x = plan.planned.explanation;
    std::map<std::string, double> parts;
    for (const TimeEntry& entry : x.times) {
      parts[entry.part] += entry.seconds;
      EXPECT_FALSE(entry.author.empty()) << entry.row;
      EXPECT_FALSE(entry.row.empty());
      EXPECT_FALSE(entry.formula.empty()) << entry.row;
    }
    const TimeParts& t = x.evaluation.time;
    const double close = 1e-9 * x.evaluation.step;
    EXPECT_NEAR(parts["forward"], t.forward, close);
    EXPECT_NEAR(parts["backward"], t.backward, close);
    EXPECT_NEAR(parts["recompute"], t.recompute, close);
    EXPECT_NEAR(parts["optimizer"], t.optimizer, close);
    EXPECT_EQ(parts.size(), 4u) << "no entry is of another part";
  });
}

TEST(PlanLaws, ExposedTrafficIsTheSumOfItsEntries) {
  ForEachPlan([](const LawPlan& plan) {
    const Evaluation& e = plan.planned.explanation.evaluation;
    const Explanation x = Explain(plan.composition(), plan.plan(), plan.order(), e.time_rank);
    ASSERT_EQ(x.transfer_rank, e.time_rank);
    std::array<double, kAxisRoles> exposed{}, total{};
    for (const TransferEntry& t : x.transfers) {
      exposed[static_cast<std::size_t>(t.role)] += t.exposed_seconds;
      total[static_cast<std::size_t>(t.role)] += t.seconds;
      EXPECT_GE(t.exposed_seconds, -1e-12);
      EXPECT_FALSE(t.author.empty()) << t.tensor;
      EXPECT_FALSE(t.tier.empty()) << t.tensor;
      EXPECT_FALSE(t.algorithm.empty()) << t.tensor;
      EXPECT_NEAR(t.bytes, t.count * t.bytes_per_call, 1e-9 * t.bytes);
      if (t.declared) {
        EXPECT_FALSE(t.why.empty()) << t.tensor;
      }
    }
    for (std::size_t r = 0; r < kAxisRoles; ++r) {
      const auto role = static_cast<AxisRole>(r);
      const bool pipeline = role == AxisRole::kPipeline;
      // The classroom takes the gathers of the stage that has most of them for those of every rank.
      const bool of_another =
          plan.composition().rules.prefetch_hides_in_slot && plan.plan().pipeline > 1;
      if (of_another && role == AxisRole::kData) {
        EXPECT_LE(exposed[r], e.time.exposed[r] + 1e-9 * e.step);
        continue;
      }
      EXPECT_NEAR(exposed[r], e.time.exposed[r] + (pipeline ? x.exposed_pipeline : 0),
                  1e-9 * e.step)
          << Name(role);
      if (!pipeline && !of_another) {
        EXPECT_NEAR(total[r], e.time.exposed[r] + e.time.hidden[r], 1e-9 * e.step) << Name(role);
      }
    }
  });
}

TEST(PlanLaws, EvaluateAllocatesNothingAndRepeatsItself) {
  ForEachPlan([](const LawPlan& plan) {
    const Composition& c = plan.composition();
    Workspace workspace(c);
    workspace.Reserve(plan.plan(), plan.order());
    Plan larger = plan.plan();  // other numbers for the same composition
    larger.micro_batch_size *= 2;
    long allocations = 0;
    Evaluation first, between, second;
    {
      const AllocationCounter counter;
      first = Evaluate(c, plan.plan(), plan.order(), workspace);
      between = Evaluate(c, larger, plan.order(), workspace);
      second = Evaluate(c, plan.plan(), plan.order(), workspace);
      allocations = counter.count();
    }
    EXPECT_EQ(allocations, 0);
    EXPECT_EQ(Bits(first), Bits(second)) << "a workspace remembers nothing";
    EXPECT_EQ(Bits(first), Bits(plan.planned.explanation.evaluation));
    EXPECT_GE(between.step * (1 + 1e-12), first.step)
        << "twice the sequences in as many micro-batches";
  });
}

// Of an overlapped pair: the shorter of one half's collectives and the other half's compute.
HiddenOfPairs HiddenOf(const Composition& c, const CompiledOrder& order, const Workspace& w) {
  const auto stages = static_cast<std::size_t>(order.stages);
  HiddenOfPairs hidden(stages, std::vector<double>(stages, 0));
  if (order.pairs.empty() || !c.rules.pairs_overlap) return hidden;
  for (std::size_t f = 0; f < stages; ++f) {
    for (std::size_t b = 0; b < stages; ++b) {
      const double tf = w.pair_traffic[2 * f], tb = w.pair_traffic[2 * b + 1];
      const double cf = w.stage_cost[4 * f] - tf, cb = w.stage_cost[4 * b + 3] - tb;
      hidden[f][b] = c.overlap_share * (std::min(tf, cb) + std::min(tb, cf));
    }
  }
  return hidden;
}

// The pipeline's seconds, by a player that knows nothing of compiled orders and closed forms.
TEST(PlanLaws, ASlowPlayerGivesThePipelinesSeconds) {
  int checked = 0;
  ForEachPlan([&](const LawPlan& plan) {
    const Composition& c = plan.composition();
    const Plan& p = plan.plan();
    if (p.pipeline == 1) return;
    Workspace workspace(c);
    workspace.Reserve(p, plan.order());
    const Evaluation e = Evaluate(c, p, plan.order(), workspace);
    const double hop = c.exposed_transfers ? HopSeconds(c, workspace) : 0;
    const ScheduleShape shape{p.pipeline, p.chunks, p.micro_batches};
    const Played played =
        PlaySlowly(*c.schedule, shape, c.schedule->Order(shape), workspace.stage_cost, hop, -1,
                   HiddenOf(c, *plan.order(), workspace));
    ASSERT_TRUE(played.done);
    // Reductions that go on behind a pass are Simulate's to compare with.
    if (!Travels(c, workspace)) {
      EXPECT_NEAR(e.pipeline, played.makespan, 1e-9 * played.makespan);
    }
    for (int r = 0; r < p.pipeline; ++r) {
      EXPECT_DOUBLE_EQ(workspace.memory[static_cast<std::size_t>(r)].in_flight * p.chunks,
                       played.in_flight[static_cast<std::size_t>(r)]);
    }
    ++checked;
  });
  EXPECT_GE(checked, 50);
}

// That the counter sees what a plugin does.
TEST(AllocationCounter, CountsHereAndInPlugins) {
  const std::string name = BuiltPlugins().Names(Hardware::kKind).at(0);
  const auto hardware = Made<Hardware>(name);
  std::vector<Constant> constants;
  std::vector<int> numbers;
  const AllocationCounter counter;
  numbers.resize(1000);
  EXPECT_EQ(counter.count(), 1);
  constants = hardware->Constants();
  EXPECT_GT(counter.count(), 5);
}

// --- better machines
// --------------------------------------------------------------------------------------

// The plan's machine with other numbers on its label; ops take `factor` times their seconds.
class Tuned final : public Hardware {
 public:
  Tuned(std::shared_ptr<const Hardware> original, double factor)
      : original_(std::move(original)), machine_(original_->machine()), factor_(factor) {}
  Machine& tune() { return machine_; }
  const Machine& machine() const override { return machine_; }
  Seconds OpTime(const OpShape& shape) const noexcept override {
    return factor_ * original_->OpTime(shape);
  }
  std::vector<Constant> Constants() const override { return original_->Constants(); }

 private:
  std::shared_ptr<const Hardware> original_;
  Machine machine_;
  double factor_;
};

template <class F>
Evaluation OnAnother(const LawPlan& plan, F tune, double op_factor = 1) {
  Composition c = plan.composition();
  auto hardware = std::make_shared<Tuned>(c.hardware, op_factor);
  tune(hardware->tune());
  c.hardware = hardware;
  std::shared_ptr<Network> network = Made<Network>(c.network_name);
  network->Connect(hardware->machine());
  c.network = network;
  return EvaluateAfresh(c, plan.plan(), plan.order());
}

TEST(PlanLaws, TheSameMachineGivesTheSamePlan) {
  ForEachPlan([](const LawPlan& plan) {
    EXPECT_EQ(Bits(OnAnother(plan, [](Machine&) {})), Bits(plan.planned.explanation.evaluation));
  });
}

TEST(PlanLaws, MoreMemoryNeverMakesAFittingPlanUnfit) {
  Random random(12);
  ForEachPlan([&](const LawPlan& plan) {
    const Evaluation& e = plan.planned.explanation.evaluation;
    for (const double memory :
         {e.peak * random.Between(0.5, 1.0), e.peak, e.peak * random.Between(1.0, 3.0)}) {
      const Evaluation little = OnAnother(plan, [&](Machine& m) { m.memory = Bytes(memory); });
      const Evaluation more =
          OnAnother(plan, [&](Machine& m) { m.memory = Bytes(memory * random.Between(1.0, 2.0)); });
      const bool host = e.host_capacity == 0 || e.host_peak <= e.host_capacity;
      EXPECT_EQ(little.fits, e.peak <= memory && host);
      EXPECT_LE(little.fits, more.fits);
      EXPECT_EQ(little.peak, more.peak) << "what is needed does not depend on what there is";
      EXPECT_EQ(little.step, more.step);
    }
  });
}

TEST(PlanLaws, AFasterLinkNeverMakesAStepSlower) {
  Random random(13);
  ForEachPlan([&](const LawPlan& plan) {
    const double before = plan.planned.explanation.evaluation.step;
    const std::size_t tiers = plan.composition().hardware->machine().tiers.size();
    for (std::size_t t = 0; t < tiers; ++t) {
      const double factor = random.Between(1.0, 4.0);
      const double faster = OnAnother(plan, [&](Machine& m) {
                              m.tiers[t].bandwidth = factor * m.tiers[t].bandwidth;
                            }).step;
      EXPECT_LE(faster, before * (1 + 1e-12)) << "tier " << t << " x " << factor;
      const double nearer = OnAnother(plan, [&](Machine& m) {
                              m.tiers[t].latency = m.tiers[t].latency / factor;
                            }).step;
      EXPECT_LE(nearer, before * (1 + 1e-12)) << "tier " << t << " latency / " << factor;
    }
  });
}

TEST(PlanLaws, AFasterDeviceNeverMakesAStepSlower) {
  Random random(14);
  ForEachPlan([&](const LawPlan& plan) {
    const double factor = random.Between(0.2, 1.0);
    const double faster = OnAnother(
                              plan, [](Machine&) {}, factor)
                              .step;
    EXPECT_LE(faster, plan.planned.explanation.evaluation.step * (1 + 1e-12)) << factor;
  });
}

// Twice the machine and twice the batch: all goes to the data axis, where state is shared or
// copied, never more.
TEST(PlanLaws, MoreDataRanksNeverRaiseStateBytes) {
  int checked = 0, shared = 0;
  ForEachPlan([&](const LawPlan& plan) {
    Draft twice = plan.draft;
    std::string* nodes = twice.Find("hardware")->Find("nodes");
    if (nodes == nullptr) return;
    *nodes = std::to_string(2 * std::stoi(*nodes));
    std::string* batch = twice.Find("training")->Find("global_batch_size");
    *batch = std::to_string(2 * std::stoi(*batch));
    const std::optional<LawPlan> other = PlanOf(twice);
    if (!other || other->document["plan"]["data"] == plan.document["plan"]["data"]) return;
    ++checked;
    for (std::size_t r = 0; r < plan.planned.explanation.ranks.size(); ++r) {
      for (const Account account :
           {Account::kParameters, Account::kGradients, Account::kOptimizer}) {
        const auto a = static_cast<std::size_t>(account);
        const double before = plan.planned.explanation.ranks[r].memory.bytes[a];
        const double after = other->planned.explanation.ranks[r].memory.bytes[a];
        EXPECT_LE(after, before * (1 + 1e-12)) << Name(account) << " of rank " << r;
        if (after < before) ++shared;
      }
    }
  });
  EXPECT_GE(checked, 50);
  EXPECT_GE(shared, 20) << "nothing that is drawn shares state over the data axis";
}

}  // namespace
}  // namespace shardlab
