// How long do tokens travel that cross to each server once? Of k experts drawn by chance over q
// servers q (1 - (1 - 1/q)^k) are reached, or as many as routing by groups allows (DeepSeek-V3,
// arXiv 2412.19437, section 2.1.2: at most four). On the rail network a transfer lasts as long as
// its bytes on the slower link: 50 GB/s a device between servers, 450 GB/s inside.

#include <cmath>

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kServers = 8, kInServer = 8, kTopK = 8, kHidden = 2048, kTokens = 4096;
constexpr double kPayload = 2 * kTokens * kTopK * kHidden;
constexpr double kNetwork = 50e9, kNvLink = 450e9;

Planned Experts(const std::string& dispatch, bool refused = false) {
  return PlanText(R"(
[model]
plugin = "moe"
layers = 1
hidden = 2048
heads = 16
experts = 64
top_k = 8
expert_ffn = 256
vocabulary = 512

[hardware]
plugin = "h100-dgx"
nodes = 8
network = "rail"

[training]
sequence_length = 4096
global_batch_size = 64

[strategy.expert]
degree = 64
)" + dispatch,
                  refused);
}

double OneDispatch(const Planned& plan) {
  for (const auto& row : plan.document["communication"]) {
    if (row["tensor"] == "dispatch")
      return row["seconds"].get<double>() / row["count"].get<double>();
  }
  return 0;
}

double Crosses(double reached) {
  return kPayload * reached / kTopK * (kServers - 1) / kServers / kNetwork;
}
const double kInside = kPayload * (kInServer - 1) / kInServer / kNvLink;

TEST(NodeLimited, EachExpertByItself) {
  EXPECT_NEAR(OneDispatch(Experts("")), Crosses(kTopK), 1e-12);
}

TEST(NodeLimited, EachServerOnce) {
  const double reached = kServers * (1 - std::pow(1 - 1 / kServers, kTopK));
  EXPECT_NEAR(OneDispatch(Experts("dispatch = \"each-server\"\n")), Crosses(reached), 1e-12);
}

TEST(NodeLimited, AtMostSoManyServers) {
  for (const int most : {1, 2, 4, 8}) {
    const double reached =
        std::min<double>(most, kServers * (1 - std::pow(1 - 1 / kServers, kTopK)));
    const Planned plan =
        Experts("dispatch = \"each-server\"\nservers_per_token = " + std::to_string(most) + "\n");
    // All copies are passed on inside, and that may take longer.
    EXPECT_NEAR(OneDispatch(plan), std::max(Crosses(reached), kInside), 1e-12) << most;
  }
}

TEST(NodeLimited, ALimitAloneIsRefused) {
  const Planned plan = Experts("servers_per_token = 4\n", /*refused=*/true);
  EXPECT_NE(plan.Said().find("add dispatch = \"each-server\""), std::string::npos) << plan.Said();
}

}  // namespace
}  // namespace shardlab
