// Every network, over every machine that is installed and over machines that nobody builds: the
// contract of api/network.h.

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "api/hardware.h"
#include "api/network.h"
#include "laws/made.h"
#include "laws/random.h"

namespace shardlab {
namespace {

constexpr Collective kCollectives[] = {Collective::kAllReduce, Collective::kAllGather,
                                       Collective::kReduceScatter, Collective::kAllToAll,
                                       Collective::kSendRecv};

Tier MakeTier(const char* name, int devices, double bandwidth, double latency, int ports) {
  return Tier{name, devices, BytesPerSecond(bandwidth), Seconds(latency), ports};
}

std::vector<Machine> Machines() {
  std::vector<Machine> all;
  for (const std::string& name : BuiltPlugins().Names(Hardware::kKind)) {
    all.push_back(Made<Hardware>(name)->machine());
  }
  const auto add = [&](const char* name, std::vector<Tier> tiers) {
    Machine m;
    m.name = name;
    m.devices = tiers.back().devices;
    m.tiers = std::move(tiers);
    all.push_back(std::move(m));
  };
  add("one server", {MakeTier("link", 8, 450e9, 1e-6, 1)});
  add("equal links", {MakeTier("link", 4, 50e9, 1e-6, 1), MakeTier("net", 64, 50e9, 2e-6, 1)});
  add("two ports", {MakeTier("link", 4, 300e9, 0, 2), MakeTier("net", 64, 25e9, 5e-6, 2)});
  add("fast outside", {MakeTier("link", 4, 20e9, 1e-6, 1), MakeTier("net", 64, 400e9, 1e-6, 1)});
  add("three tiers", {MakeTier("link", 8, 900e9, 1e-6, 1), MakeTier("rail", 64, 50e9, 3e-6, 1),
                      MakeTier("spine", 512, 12.5e9, 9e-6, 1)});
  return all;
}

// Groups of k ranks in each of `servers` domains of the innermost tier, spread over pods as needed.
std::vector<Span> Spans(const Machine& machine) {
  std::vector<Span> all;
  const auto tiers = machine.tiers.size();
  for (int k = 1; k <= machine.tiers[0].devices; k *= 2) {
    for (int servers = 1; servers * machine.tiers[0].devices <= machine.devices; servers *= 2) {
      Span span;
      span.size = k * servers;
      int inside = machine.tiers[0].devices;
      span.outermost = static_cast<int>(tiers) - 1;
      for (std::size_t t = tiers; t-- > 0;) {
        inside = machine.tiers[t].devices;
        const int servers_inside =
            std::max(1, std::min(servers, inside / machine.tiers[0].devices));
        span.ranks[t] = t == 0 ? k : k * servers_inside;
        span.domains[t] = span.size / span.ranks[t];
        if (span.domains[t] == 1) span.outermost = static_cast<int>(t);
      }
      all.push_back(span);
    }
  }
  return all;
}

std::string Text(const Machine& machine, const Span& span, Collective c, double payload) {
  return absl::StrCat(machine.name, ": ", Name(c), " of ", payload, " B over ", span.size,
                      " ranks, ", span.ranks[0], " in a server, ", span.domains[0], " servers");
}

struct Connected {
  explicit Connected(const std::string& name, Machine m)
      : machine(std::move(m)), network(Made<Network>(name)) {
    network->Connect(machine);
  }
  double Time(Collective c, double payload, const Span& span) const {
    return network->TransferTime({c, Bytes(payload)}, span).value();
  }
  Machine machine;
  std::unique_ptr<Network> network;
};

template <class F>
void Everywhere(F check) {
  for (const std::string& name : BuiltPlugins().Names(Network::kKind)) {
    SCOPED_TRACE(name);
    for (const Machine& machine : Machines()) check(name, machine);
  }
}

TEST(NetworkLaws, AGroupOfOneAndASliceTakeNothing) {
  Everywhere([](const std::string& name, const Machine& machine) {
    const Connected on(name, machine);
    Span one;
    one.ranks.fill(1);
    one.domains.fill(1);
    for (const Collective c : kCollectives) EXPECT_EQ(on.Time(c, 1e9, one), 0) << Name(c);
    for (const Span& span : Spans(machine)) EXPECT_EQ(on.Time(Collective::kSlice, 1e9, span), 0);
  });
}

TEST(NetworkLaws, NeverUnderTheBoundAndNeverFasterForMore) {
  Everywhere([](const std::string& name, const Machine& machine) {
    const Connected on(name, machine);
    for (const Span& span : Spans(machine)) {
      if (span.size == 1) continue;
      double fastest = 0;
      for (int t = 0; t <= span.outermost; ++t) {
        const Tier& tier = machine.tiers[static_cast<std::size_t>(t)];
        fastest = std::max(fastest, tier.bandwidth.value() * tier.ports);
      }
      for (const Collective c : kCollectives) {
        double before = 0;
        for (double payload = 1; payload < 1e12; payload *= 3.7) {
          const double seconds = on.Time(c, payload, span);
          ASSERT_TRUE(std::isfinite(seconds)) << Text(machine, span, c, payload);
          ASSERT_GE(seconds * (1 + 1e-12), SentShare(c, span.size) * payload / fastest)
              << Text(machine, span, c, payload);
          ASSERT_GE(seconds, before) << Text(machine, span, c, payload);
          before = seconds;
        }
      }
    }
  });
}

TEST(NetworkLaws, AFasterLinkIsNeverSlower) {
  Everywhere([](const std::string& name, const Machine& machine) {
    const Connected on(name, machine);
    for (std::size_t t = 0; t < machine.tiers.size(); ++t) {
      for (int change = 0; change < 4; ++change) {
        Machine better = machine;
        Tier& tier = better.tiers[t];
        if (change == 0) tier.bandwidth = 1.3 * tier.bandwidth;
        if (change == 1) tier.bandwidth = 20.0 * tier.bandwidth;
        if (change == 2) tier.latency = 0.5 * tier.latency;
        if (change == 3) tier.ports *= 2;
        const Connected on_better(name, better);
        for (const Span& span : Spans(machine)) {
          for (const Collective c : kCollectives) {
            for (const double payload : {1.0, 1e4, 1e6, 1e8, 1e11}) {
              ASSERT_LE(on_better.Time(c, payload, span), on.Time(c, payload, span) * (1 + 1e-12))
                  << Text(machine, span, c, payload) << ", tier " << tier.name << ", change "
                  << change;
            }
          }
        }
      }
    }
  });
}

// An all-reduce may be done as a reduce-scatter and an all-gather, so it never takes longer than
// the two.
TEST(NetworkLaws, AnAllReduceIsNoSlowerThanItsTwoHalves) {
  Everywhere([](const std::string& name, const Machine& machine) {
    const Connected on(name, machine);
    for (const Span& span : Spans(machine)) {
      for (double payload = 1; payload < 1e12; payload *= 3.7) {
        const double halves = on.Time(Collective::kReduceScatter, payload, span) +
                              on.Time(Collective::kAllGather, payload, span);
        ASSERT_LE(on.Time(Collective::kAllReduce, payload, span), halves * (1 + 1e-12))
            << Text(machine, span, Collective::kAllReduce, payload);
      }
    }
  });
}

TEST(NetworkLaws, AlgorithmsHaveNamesAndConstantsHaveSources) {
  Everywhere([](const std::string& name, const Machine& machine) {
    const Connected on(name, machine);
    for (const Span& span : Spans(machine)) {
      for (const Collective c : kCollectives)
        EXPECT_FALSE(on.network->Algorithm({c, Bytes(1e6)}, span).empty());
    }
    EXPECT_FALSE(on.network->Constants().empty());
    for (const Constant& constant : on.network->Constants()) {
      EXPECT_FALSE(constant.name.empty());
      EXPECT_FALSE(constant.source.empty()) << constant.name;
    }
  });
}

}  // namespace
}  // namespace shardlab
