#pragma once
// Tiny worlds: a toy model, some strategies, and every mesh of a few ranks on which they can stand.
//
//   const Setting setting(Unroll(ToyModel({})), {.batch = 4, .micro_batches = 2});
//   Tally tally;
//   RunEveryMesh(setting, {DataParallel(), ZeroStage(3)}, 8, tally);

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/edits.h"
#include "oracle/toy_machine.h"
#include "oracle/toy_strategies.h"

namespace shardlab::oracle {

// Under sanitizers everything takes twenty times as long, and every twentieth world shows their
// faults.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

using Choices = std::vector<Choice>;

// A program with its numbers, computed once without any strategy.
class Setting final {
 public:
  Setting(Program written_out, Job work)
      : program(std::move(written_out)), job(work), expected(RunUnsharded(program, job)) {}
  const Program program;
  const Job job;
  const Trace expected;
};

// The program as these strategies edit it; fails the test on a diagnostic.
std::optional<Edited> Apply(const Program& program, const Choices& choices);

// Edited as a class of layers, then written out and derived again: segments of recomputed layers
// are real.
std::optional<Edited> ApplyThenUnroll(const Program& rolled, const Choices& choices);

// The atoms' sizes for every choice of degrees with at most so many ranks in all.
std::vector<std::vector<int>> Meshes(const Edited& edited, int ranks);

struct Tally {
  int compositions = 0, worlds = 0, failures = 0, skipped = 0;
  std::size_t numbers = 0;
  double worst = 0;
};

// Why the world differs from the unsharded run; empty when it does not.
std::string WhatIsWrong(const Setting& setting, const Edited& edited, const Derived& derived,
                        const std::vector<int>& degrees, Tally& tally);

// `take` chooses among the meshes, by a running number; all of them without it.
void RunEveryMesh(const Setting& setting, const Choices& choices, int ranks, Tally& tally,
                  const std::function<bool(int)>& take = {});
void RunEveryMesh(const Setting& setting, const Choices& choices, const Edited& edited, int ranks,
                  Tally& tally, const std::function<bool(int)>& take = {});

std::string NameOf(const Choices& choices);
std::string NameOf(const Edited& edited, const std::vector<int>& degrees);

// Prints what was run, and fails the test where nothing was.
void Conclude(const Tally& tally, const char* what);

// One choice from each list, in every combination; an empty Choices stands for "none of them".
std::vector<Choices> Product(const std::vector<std::vector<Choices>>& lists);

}  // namespace shardlab::oracle
