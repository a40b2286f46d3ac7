// What does a pair of a forward and a backward hide? While one half's tokens travel to the experts
// and back, the other computes (DeepSeek-V3 report, arXiv 2412.19437, section 3.2.1): a pair of
// compute f and b with traffic tf and tb lasts max(tf, b) + max(tb, f), of which software reaches
// the share that it says (docs/decisions/0013).

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr int kRanks = 8, kMicroBatches = 20;

// One layer a stage and no ends to speak of, so that all stages but the last are alike. `inner`:
// the experts' width, with which compute grows and traffic does not. `nodes`, as many experts a
// token as there are nodes: tokens travel further.
std::string Experts(int inner, const std::string& schedule, const std::string& software = "",
                    int nodes = 8) {
  const std::string ranks = std::to_string(nodes);
  return R"(
[model]
plugin = "moe"
layers = 8
hidden = 2048
heads = 16
experts = 64
top_k = )" +
         std::to_string(nodes / 4) + R"(
vocabulary = 128
expert_ffn = )" +
         std::to_string(inner) + R"(

[hardware]
plugin = "h100-dgx"
nodes = )" +
         ranks + R"(

[training]
sequence_length = 4096
global_batch_size = )" +
         std::to_string(kMicroBatches * nodes) + R"(

[strategy.expert]
degree = )" +
         ranks + R"(

[schedule]
degree = 8
plugin = ")" +
         schedule + "\"\n" + software;
}

double ExpertSeconds(const Planned& plan, const char* which) {
  const nlohmann::ordered_json& time = plan.document["time"];
  return time.value(std::string(which), nlohmann::ordered_json::object())
      .value("expert_seconds", 0.0);
}

// Pairs that a rank of DualPipe does: of m/2 micro-batches a direction on R = p/2 ranks
// m/2 - 2R + r + 1 times two pairs, but one fewer on the last of them, and R - r - 1 more
// (reference of the authors, dualpipe.py: steps 4 and 5).
int Pairs(int rank) {
  const int half = kRanks / 2, r = std::min(rank, kRanks - 1 - rank);
  const int both = kMicroBatches / 2 - kRanks + r + 1;
  return 2 * both - (r == half - 1 ? 1 : 0) + half - r - 1;
}

TEST(OverlappedPairs, HideTheShorterOfTrafficAndCompute) {
  for (const auto& [software, share] : std::vector<std::pair<std::string, double>>{
           {"[software]\npreset = \"nemo\"\n", 0.8}, {"", 0.5}}) {
    const Planned plan = PlanText(Experts(8192, "pipeline-dualpipe", software));
    ASSERT_TRUE(plan.ok());
    const double shown = ExpertSeconds(plan, "exposed"), hidden = ExpertSeconds(plan, "hidden");
    const int rank = plan.document["time"]["rank"].get<int>();
    // Compute is the longer: of a pair's traffic all hides, and every micro-batch has as much.
    ASSERT_GT(hidden, 0);
    EXPECT_NEAR(hidden / (shown + hidden), share * Pairs(rank) / kMicroBatches, 1e-9) << rank;
    // 1F1B overlaps nothing: the same traffic, all seen.
    const Planned plain = PlanText(Experts(8192, "pipeline-1f1b", software));
    EXPECT_NEAR(ExpertSeconds(plain, "exposed"), shown + hidden, 1e-9 * (shown + hidden));
    EXPECT_EQ(ExpertSeconds(plain, "hidden"), 0);
  }
}

TEST(OverlappedPairs, HideNoMoreThanTheOtherHalfComputes) {
  const Planned plan = PlanText(Experts(16, "pipeline-dualpipe", "", 64));
  ASSERT_TRUE(plan.ok());
  const nlohmann::ordered_json& time = plan.document["time"];
  const double shown = ExpertSeconds(plan, "exposed"), hidden = ExpertSeconds(plan, "hidden");
  const double computes =
      time["forward_seconds"].get<double>() + time["backward_seconds"].get<double>();
  // Traffic of a forward is longer than a backward's compute, and the other way round.
  ASSERT_GT(shown + hidden, 2 * computes);
  const int rank = time["rank"].get<int>();
  // Embedding and head add a little to one stage of the ends' ranks.
  EXPECT_NEAR(hidden, 0.5 * computes * Pairs(rank) / kMicroBatches, 0.02 * hidden);
}

TEST(OverlappedPairs, ThePartsAndTheTableAddUp) {
  const Planned plan = PlanText(Experts(8192, "pipeline-dualpipe"));
  ASSERT_TRUE(plan.ok());
  double table = 0, all = 0;
  for (const auto& row : plan.document["communication"]) {
    if (row["axis"] != "expert") continue;
    table += row["exposed_seconds"].get<double>();
    all += row["seconds"].get<double>();
  }
  // Of the rank with most memory, not of the one that ends last; all ranks have as much traffic.
  EXPECT_LT(table, all);
  EXPECT_NEAR(all, ExpertSeconds(plan, "exposed") + ExpertSeconds(plan, "hidden"), 1e-9 * all);
}

// Reductions behind a pair begin when the pair ends: what is seen of them and what is not is what
// they take.
TEST(OverlappedPairs, ReductionsBeginBehindThePair) {
  const Planned plan = PlanText(R"(
[model]
plugin = "llama"
preset = "llama3.1-8b"
layers = 16

[hardware]
plugin = "h100-dgx"
nodes = 4

[training]
sequence_length = 4096
global_batch_size = 128

[strategy.fsdp]

[strategy.tensor]
degree = 4
sequence_parallel = true

[schedule]
plugin = "pipeline-dualpipe-v"
degree = 4
)");
  ASSERT_TRUE(plan.ok());
  const nlohmann::ordered_json& time = plan.document["time"];
  double taken = 0;
  for (const auto& row : plan.document["communication"])
    taken += row["axis"] == "data" ? row["seconds"].get<double>() : 0;
  const double shown = time["exposed"]["data_seconds"], hidden = time["hidden"]["data_seconds"];
  EXPECT_NEAR(shown + hidden, taken, 1e-9 * taken);
  EXPECT_GT(time["hidden"]["tensor_seconds"].get<double>(), 0);
}

// The classroom's pairs take as long as their parts.
TEST(OverlappedPairs, AreNotOfTheClassroom) {
  const Planned plan = PlanText("accounting = \"textbook\"\n" + Experts(8192, "pipeline-dualpipe"));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(ExpertSeconds(plan, "hidden"), 0);
}

}  // namespace
}  // namespace shardlab
