#pragma once
// A derived program compiled to flat numeric rows: what Evaluate runs over. Names, placements and containers stay
// behind; a row knows indices into small tables of local sizes, and its coefficients. Made once per composition.
//
//   Form form = CompileForm(edited, precision, states);
//
// Local size of a dimension on a rank = size / product of the atoms that cut it (rounded up where the accounting
// says so); a block's bytes = coefficient x product of local sizes / product of its flat atoms.

#include <array>
#include <cstdint>
#include <vector>

#include "api/optimizer.h"
#include "core/edits.h"
#include "domain/machine.h"

namespace shardlab {

inline constexpr int kMaxClasses = 12;

enum class Account : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kGathered,
  kTransient,
  kFragmentation,
  kOutsideAllocator,
};
inline constexpr int kAccounts = 8;
const char* Name(Account account);  // "parameters", ...

struct LocalSize {
  double size = 1;       // whole; batch: of one micro-batch on all ranks that cut it
  bool batch = false;
  std::uint8_t mask = 0;  // index into Form::masks
};

struct Block {
  double coefficient = 0;  // bytes (or elements) per element of the product
  std::uint8_t count = 0;
  std::array<std::uint8_t, 7> local{};  // indices into Form::locals
  std::uint8_t flat = 0;                // index into Form::masks
};

struct StateRow {
  std::uint8_t layer_class = 0;
  Account account = Account::kParameters;
  std::uint16_t block = 0;
  // For explaining: the tensor, and which optimizer state.
  TensorId tensor;
  std::int16_t state = -1;
};

struct SavedRow {
  std::uint8_t layer_class = 0;
  Residency residency = Residency::kKept;
  bool of_inner_layers = false;  // a segment's own inputs: alive in all its layers but the first
  std::uint16_t block = 0;
  TensorId tensor;
};

enum class Bucket : std::uint8_t { kForward, kReplay, kInputGradient, kWeightGradient };

struct OpRow {
  std::uint8_t layer_class = 0;
  Bucket bucket = Bucket::kForward;
  OpKind kind = OpKind::kProduct;
  Phase phase = Phase::kForward;
  std::uint8_t m = 0, n = 0, k = 0;               // how many locals each
  std::array<std::uint8_t, 10> local{};           // first those of m, then n, then k
  std::uint8_t bytes = 0;                         // how many blocks are read or written
  std::array<std::uint16_t, 8> block{};
  double flops = 0;                               // per element of m x n x k
  OpId op;
};

struct TransferRow {
  std::uint8_t layer_class = 0;
  bool per_layer = true;  // false: once per rank
  Phase phase = Phase::kForward;
  When when = When::kMicroBatch;
  Collective collective = Collective::kAllReduce;
  HideBehind hide = HideBehind::kNothing;
  AxisRole role = AxisRole::kData;
  std::uint8_t mask = 0;
  std::uint16_t block = 0;  // payload
  double share = 0;
  std::int32_t step = -1;      // into Derived::steps
  std::int32_t declared = -1;  // into Derived::declared
};

struct Form {
  std::vector<AtomMask> masks;  // [0] = 0
  std::vector<LocalSize> locals;
  std::vector<Block> blocks;
  std::vector<StateRow> state;
  std::vector<SavedRow> saved;
  std::vector<OpRow> ops;
  std::vector<TransferRow> transfers;
  AtomMask batch_atoms = 0;     // the atoms that cut the batch somewhere
  std::uint16_t tokens = 0;     // block: tokens of a micro-batch on a rank
  std::uint16_t boundary = 0;   // block: the stream that a pipeline rank sends on
  struct ClassRow {
    StagePosition position = StagePosition::kLayer;
    int repeat = 1;
    int segment = 1;
    bool replays = false;
  };
  std::vector<ClassRow> classes;
};

Form CompileForm(const Edited& edited, const Precision& precision, const std::vector<OptimizerState>& states);

}  // namespace shardlab
