#pragma once
// A derived program compiled to flat numeric rows: what Evaluate runs over. Names, placements and
// containers stay behind; a row knows indices into small tables of local sizes, and its
// coefficients. Made once per composition.
//
//   Form form = CompileForm(edited, precision, states, rules);
//
// Local size of a dimension on a rank = size / product of the atoms that cut it (rounded up where
// the accounting says so); a block's bytes = coefficient x product of local sizes / product of its
// flat atoms.

#include <array>
#include <cstdint>
#include <vector>

#include "api/optimizer.h"
#include "core/edits.h"
#include "domain/accounting.h"
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
  kHost,  // in the memory of the host
};
inline constexpr int kAccounts = 8;  // those of the device
const char* Name(Account account);   // "parameters", ...

// Which state each parameter has: indices into a table of the distinct ones.
struct OptimizerStates {
  std::vector<OptimizerState> table;
  std::vector<std::vector<std::int16_t>> of_tensor;  // [tensor]; empty for what is no parameter

  friend bool operator==(const OptimizerStates&, const OptimizerStates&) = default;
};
OptimizerStates OptimizerStatesOf(const Program& program, const Optimizer& optimizer,
                                  const Precision& precision);
ParameterKind KindOf(const Program& program, const Tensor& parameter);

struct LocalSize {
  double size = 1;  // whole; batch: of one micro-batch on all ranks that cut it
  bool batch = false;
  std::uint8_t mask = 0;  // index into Form::masks
};

// A product of local sizes, one factor longer than its parent: products share their beginnings.
struct ProductNode {
  std::uint16_t parent = 0;  // an earlier node; node 0 is the empty product
  std::uint16_t local = 0;   // index into Form::locals

  friend bool operator==(const ProductNode&, const ProductNode&) = default;
};

struct Block {
  double coefficient = 0;     // bytes (or elements) per element of the product
  std::uint16_t product = 0;  // index into Form::products
  std::uint16_t flat = 0;     // index into Form::masks

  friend bool operator==(const Block&, const Block&) = default;
};

struct StateRow {
  std::uint8_t layer_class = 0;
  Account account = Account::kParameters;
  std::uint16_t block = 0;
  // For explaining: the tensor, and which optimizer state.
  TensorId tensor;
  std::int16_t state = -1;
  std::uint8_t when = 0;  // index into Form::masks: there only where these are several ranks
  bool kept = false;      // gathered in the forward pass and still there in the backward pass
  bool host = false;      // in the memory of the host
  bool bucket = false;    // kTransient: the copy that is reduced, beside the gradient itself
  bool copy = false;      // kParameters: of a weight in the dtype of its products
  bool spare = false;     // kTransient: one for all layers of the class
};

struct SavedRow {
  std::uint8_t layer_class = 0;
  Residency residency = Residency::kKept;
  bool of_inner_layers = false;  // a segment's own inputs: alive in all its layers but the first
  std::uint16_t block = 0;
  TensorId tensor;
  // Index into Form::masks: the same tensor is saved where it is without these ranks too.
  std::uint8_t when = 0;
};

enum class Bucket : std::uint8_t { kForward, kReplay, kInputGradient, kWeightGradient };
inline constexpr int kBuckets = 4;

// One op of one pass, for explaining and for compiling.
struct OpRow {
  std::uint8_t layer_class = 0;
  Bucket bucket = Bucket::kForward;
  OpId op;
  std::uint16_t price = 0;  // index into Form::op_prices
  bool cast = false;        // of what the op multiplies, to a narrower dtype of its products
};

// What the machine is asked: ops of one shape are asked for once.
struct OpPrice {
  OpKind kind = OpKind::kProduct;
  Phase phase = Phase::kForward;
  std::uint16_t m = 0, n = 0, k = 0;  // blocks: local sizes
  double flops = 0;                   // per element of m x n x k
  bool scores_in_memory = false;      // as OpShape
  std::uint8_t bytes = 0;             // how many blocks are read or written
  std::array<std::uint16_t, 8> block{};

  friend bool operator==(const OpPrice&, const OpPrice&) = default;
};

// Matrices of a layer that the optimizer works on as wholes, where their state is on the device:
// ranks that share the state of a weight share its matrices. Or, once a step too, the cast of a
// weight to copies in the dtype of its products: `rows` are the bytes that it moves.
struct UpdateRow {
  std::uint8_t layer_class = 0;
  std::uint16_t rows = 0, columns = 0, matrices = 0;  // blocks; the last over the sharing ranks
  ParameterKind kind;
  TensorId tensor;  // for explaining
  bool cast = false;
};

// What an op needs gathered and nobody keeps: there while that op runs, one op's at a time.
struct BufferRow {
  struct Part {
    std::uint16_t block = 0;
    std::uint8_t when = 0;  // index into Form::masks: there only where these are several ranks

    friend bool operator==(const Part&, const Part&) = default;
  };
  std::uint8_t layer_class = 0;
  std::vector<Part> parts;
  std::int32_t step = -1;  // into Derived::steps: the last of those that gather, for explaining
};

struct TransferRow {
  std::uint8_t layer_class = 0;
  bool per_layer = true;  // false: once per rank
  Phase phase = Phase::kForward;
  When when = When::kMicroBatch;
  HideBehind hide = HideBehind::kNothing;
  AxisRole role = AxisRole::kData;
  double share = 0;
  std::uint16_t price = 0;     // index into Form::transfer_prices
  std::int32_t step = -1;      // into Derived::steps: the first of those that travel together
  std::int32_t declared = -1;  // into Derived::declared
  TensorId update_of;  // neither: matrices that the optimizer needs whole, and back; one of them
  std::int16_t tensors = 1;  // parameters of a layer travel in one bucket
  int unit = 1;              // and so many layers in one call
  std::int16_t ring = -1;    // kOp: index into Form::rings
};

// Transfers of one layer and pass that hide together, piece by piece, under one op.
struct Ring {
  std::uint8_t layer_class = 0;
  bool forward = true;
  AxisRole role = AxisRole::kContext;
  std::uint8_t mask = 0;  // of the ranks among which the pieces go round
  std::uint16_t op_price = 0;

  friend bool operator==(const Ring&, const Ring&) = default;
};

struct TransferPrice {
  Collective collective = Collective::kAllReduce;
  std::uint8_t mask = 0;
  std::vector<std::uint16_t> payload;  // blocks, summed
  bool ends = false;                   // between the first and the last pipeline rank
  double bucket = 0;  // bytes that go in one call, of a part of a layer or of many; 0: the payload
  bool copied = false;  // of gradients that are copied together for it
  double copies = 0;    // of an all-to-all, as TransferShape
  int domains = 0;

  friend bool operator==(const TransferPrice&, const TransferPrice&) = default;
};

// The hot rows: the rows above with what is alike added up.
struct MemoryTerm {
  std::uint8_t layer_class = 0;
  // An Account, kAccounts + Residency (+ 3: of inner layers), or kUpdatedSlot.
  std::uint8_t slot = 0;
  std::uint8_t when = 0;  // as StateRow::when
  std::uint16_t block = 0;
};
struct OpTerm {
  std::uint8_t layer_class = 0;
  Bucket bucket = Bucket::kForward;
  std::uint16_t price = 0;
  double count = 1;
};
struct TransferTerm {
  TransferRow row;
  double count = 1;
};
// Parameters that the optimizer updates; counted only where bytes of state do not tell them.
inline constexpr int kUpdatedSlot = kAccounts + 4;
// Gathered weights that stay until the backward pass is through.
inline constexpr int kGatheredKeptSlot = kAccounts + 5;
// Of the buffers of a layer's ops the largest.
inline constexpr int kBufferSlot = kAccounts + 6;
// In the memory of the host: all of it, optimizer state, and parameters that are updated there.
inline constexpr int kHostSlot = kAccounts + 7, kHostStateSlot = kAccounts + 8,
                     kHostUpdatedSlot = kAccounts + 9;
// Buffers of which a rank has one for all layers of a class.
inline constexpr int kSpareSlot = kAccounts + 10;
// What a weight gradient that waits keeps alive, where that may be more than what was saved.
inline constexpr int kWaitingSlot = kAccounts + 11;
inline constexpr int kMemorySlots = kAccounts + 12;

struct Form {
  std::vector<AtomMask> masks;  // [0] = 0
  std::vector<LocalSize> locals;
  std::vector<ProductNode> products;  // [0] = the empty product
  std::vector<Block> blocks;
  std::size_t hot_blocks =
      0;  // the first so many are what Evaluate needs; the rest only Explain looks at
  std::vector<StateRow> state;
  std::vector<SavedRow> saved;
  std::vector<BufferRow> buffers;
  std::vector<UpdateRow> updates;
  std::vector<OpRow> ops;
  std::vector<OpPrice> op_prices;
  std::vector<TransferRow> transfers;
  std::vector<TransferPrice> transfer_prices;
  std::vector<Ring> rings;
  std::vector<MemoryTerm> memory_terms;
  std::vector<OpTerm> op_terms;
  std::vector<TransferTerm> transfer_terms;
  AtomMask batch_atoms = 0;    // the atoms that cut the batch somewhere
  std::uint16_t tokens = 0;    // block: tokens of a micro-batch on a rank
  std::uint16_t boundary = 0;  // block: the stream that a pipeline rank sends on
  // Bytes of optimizer state per updated parameter; 0 where parameters differ or have none.
  double state_width = 0;
  double update_width = 0;          // bytes of gradient and weight that its update reads and writes
  std::vector<std::uint8_t> roles;  // AxisRoles that some transfer has
  // Groups of transfers that are hidden block by block: where one has ranks, the step is an
  // estimate.
  std::vector<std::uint8_t> overlapping;
  bool copies_overlap = false;  // copies from or to the host are hidden so
  bool spares = false;          // some class has spare buffers
  bool buckets = false;         // some transfer goes in buckets
  bool on_host = false;         // something lies in the memory of the host
  struct ClassRow {
    StagePosition position = StagePosition::kLayer;
    int repeat = 1;
    int segment = 1;
    bool replays = false;
    // Kernels that the host starts for one layer and micro-batch.
    double calls_forward = 0, calls_backward = 0, calls_weight = 0;
    int unit = 1;   // layers whose weights are gathered together
    int ahead = 1;  // of these units, how many before they are needed
  };
  std::vector<ClassRow> classes;
};

Form CompileForm(const Edited& edited, const Precision& precision, const OptimizerStates& states,
                 const AccountingRules& rules, const Optimizer& optimizer);

}  // namespace shardlab
