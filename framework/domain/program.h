#pragma once
// A model as a small table of rows over named dimensions: tensors, and the ops that read and write
// them, for each distinct kind of layer. A Model plugin writes it for one device; strategies edit
// where things are; the framework derives what must travel. Rows name dimensions and atoms, never
// degrees.
//
//   Program program = builder.Build();            // api/program_builder.h
//   const Tensor& w = program.tensor(op.inputs[1].tensor);

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/export.h"
#include "base/ids.h"
#include "domain/placement.h"
#include "domain/precision.h"

namespace shardlab {

using TensorId = Id<struct TensorTag>;
using OpId = Id<struct OpTag>;
using ClassId = Id<struct LayerClassTag>;

enum class DimensionKind : std::uint8_t {
  kFixed,
  kBatch,  // sequences of one micro-batch; its local size is the plan's micro_batch_size, so `size`
           // is 1
  kSequence,  // tokens of a sequence
};

struct Dimension {
  std::string name;
  char letter = '?';  // in einsum labels
  double size = 1;
  DimensionKind kind = DimensionKind::kFixed;

  friend bool operator==(const Dimension&, const Dimension&) = default;
};

enum class TensorRole : std::uint8_t {
  kParameter,
  kData,        // the batch: tokens, targets. Every rank can have what it needs; never moved, never
                // counted
  kStream,      // the residual stream and what has its shape: what sequence parallelism cuts
  kActivation,  // inside a block
  kRouted,      // tokens sent to experts: has density = top-k / experts in `scale`
  kStatistic,   // soft-max sums, maxima
};
SHARDLAB_EXPORT const char* Name(TensorRole role);

struct SHARDLAB_EXPORT Tensor {
  std::string name;
  ClassId layer_class;
  TensorRole role = TensorRole::kActivation;
  std::vector<DimensionId> dims;
  double scale = 1;  // elements = scale x product of the dimensions (density of routed tensors,
                     // lumps of the textbook)
  DtypeSlot dtype = DtypeSlot::kCompute;

  // Filled by the strategies' edits. `use`: while computing. Parameters only: `home` between uses,
  // `state` of the optimizer's tensors, `gradient` as accumulated between micro-batches.
  Placement use, home, state, gradient;
  bool home_on_host = false;   // these lie in the memory of the host, and come from there for use
  bool state_on_host = false;  // ... and the optimizer works there
  bool gradient_on_host = false;
  bool reduce_each_micro_batch =
      false;  // the gradient moves to `gradient` after each micro-batch, not once a step
  bool keep_moved =
      false;  // saved for the backward pass as it was used, even where moving made it larger
  bool keep_after_forward = false;  // gathered for the forward pass and kept for the backward pass
  // Rows of an all-to-all that are one token's, which cross to each scale-up domain once, and to so
  // many of them at most; 0: each row goes by itself, no limit.
  double copies = 0;
  int copy_domains = 0;
  double bucket = 0;           // elements that are reduced or restored in one call; 0: a layer's
  bool bucket_copied = false;  // to where they lie side by side
  int unit = 1;                // layers whose homes are gathered as one
  int ahead = 1;               // of these, how many are gathered before they are needed
  std::array<std::int16_t, kMaxAtoms>
      author{};  // index into Program::authors of the edit that set `use`; -1 the model
  std::int16_t state_author = -1;

  Tensor() { author.fill(-1); }
  bool Has(DimensionId dim) const;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// What an op computes; the numbers are those of the oracle's toy machine and of a cost model,
// nothing else.
enum class OpKind : std::uint8_t {
  kProduct,    // einsum of two operands
  kLookup,     // the same with a one-hot first operand: embedding; costs memory, not FLOPs
  kAttention,  // q, k, v -> output; causal soft-max over the factor of k that the output lacks
  kNorm,  // root-mean-square norm of operand 0 over `whole`, times operand 1 where there is one
  kLayerNorm,  // operand 0 less its mean, over its deviation, both over `whole`; times operand 1,
               // plus operand 2, where there are such
  kAdd,
  kBias,  // operand 0 + operand 1 where that lies; in the epilogue of the product before it: only
          // the gradient of operand 1 costs anything
  kGatedSilu,  // silu(operand 0) * operand 1, times operand 2 where there is one
  kGelu,       // gelu(operand 0), by its tanh formula
  kRelu,       // max(operand 0, 0); its gradient reads the output
  kConcat,     // operand 0, then operand 1, along the output's last factor
  kSum,        // of operand 0 over the factors that the output lacks
  kMaxReduce,  // maximum over the factors that the output lacks; no gradient
  kSumExp,     // sum of exp(operand 0 - operand 1) over the factors that the output lacks
  kLogLoss,    // log(operand 0) + operand 1 - operand 2
  kTopK,       // soft-max of the best k entries along `whole`, zero elsewhere
  kDispatch,   // operand 0 where operand 1 > 0, else 0: tokens to experts
  kLump,  // classroom block: einsum for placement; its gradients read its weight and stashes; no
          // cost of its own
  kWork,  // classroom compute: FLOPs without operands, priced at peak x efficiency
};
SHARDLAB_EXPORT const char* Name(OpKind kind);

// A factor of an op's iteration space. Attention has two of the dimension `sequence`: of queries
// and of keys.
struct Factor {
  char letter = '?';
  DimensionId dim;

  friend bool operator==(const Factor&, const Factor&) = default;
};

struct Operand {
  TensorId tensor;
  std::vector<std::uint8_t>
      factors;  // for each dimension of the tensor, the index of its factor in the op
  bool has_gradient = true;

  friend bool operator==(const Operand&, const Operand&) = default;
};

inline constexpr int kReadsOutput = -1;

struct Op {
  std::string name;
  ClassId layer_class;
  OpKind kind = OpKind::kProduct;
  std::vector<Factor> factors;
  std::vector<Operand> inputs;
  TensorId output;
  std::vector<std::uint8_t> output_factors;
  // What the gradient of operand i reads: indices of operands, or kReadsOutput.
  std::vector<std::vector<int>> reads;
  // Written in the forward pass for the backward pass alone: soft-max statistics, dropout masks,
  // lumps.
  std::vector<TensorId> stash;
  std::vector<std::uint8_t>
      whole;         // factors along which the op cannot be cut (a norm's hidden, attention's keys)
  int anchor = -1;   // operand whose cut decides where the op works (dispatch: its tokens)
  double flops = 0;  // of the forward pass = flops x product of the factors; backward by kind
  int top_k = 0;     // kTopK

  bool recompute = false;  // its output is not kept: replayed in the backward pass
  std::int16_t recompute_author = -1;

  // Filled by placing the work: the factor along which each atom cuts the op, what it needs, what
  // it makes.
  std::array<std::int8_t, kMaxAtoms> work{};  // index of a factor, -1 = none (repeated work)
  std::vector<Placement> need;
  Placement made;

  Op() { work.fill(-1); }
  friend bool operator==(const Op&, const Op&) = default;
};

enum class StagePosition : std::uint8_t {
  kFirst,   // on the first stage only
  kLayer,   // repeated through the stages in order
  kLast,    // on the last stage only
  kSpread,  // classroom compute: a whole model's work, divided evenly over all stages
};

struct LayerClass {
  std::string name;
  StagePosition position = StagePosition::kLayer;
  int repeat = 1;      // layers of this class, one after another
  TensorId input;      // the stream that enters, as this class holds it; invalid for none
  TensorId output;     // the stream that leaves
  bool block = false;  // a block of the model: what activation checkpointing may recompute
  // Set by the recompute verb over the whole block: K layers share one kept input and are replayed
  // together.
  bool whole_block_recompute = false;
  int segment = 1;
  // Of its layers only some are treated as this class is: of so many the first, or so many of each
  // pipeline rank; a copy of the class, which stands behind it, takes the others. 1 and 0: all.
  int every = 1;
  int per_rank = 0;
  ClassId copy_of;  // of a copy
  bool shared() const { return every > 1 || per_rank > 0; }
  // What a parameter costs that ops of another end use too, where the two ends are on different
  // pipeline ranks: on the last rank a copy of it, on both the sum of its gradients. No rows.
  TensorId both_ends;

  friend bool operator==(const LayerClass&, const LayerClass&) = default;
};

// One layer of the model, in the order of the model.
struct LayerAt {
  ClassId layer_class;  // never a copy
  int index = 0;        // among the layers of its class
};

struct ModelFacts {
  std::string name;
  double parameters = 0;
  double active_parameters = 0;     // per token
  double embedding_parameters = 0;  // looked up only; left out of model FLOPs
  int layers = 0;
  double attention_width =
      0;  // heads x head_dim (MLA: mean of query-key and value width), for attention FLOPs
  std::string source;
};

// An axis along which a model cannot be cut, whatever the degree of it: told when a plan asks.
struct Limit {
  AxisRole role = AxisRole::kTensor;
  std::string why;   // "tied embeddings are on one pipeline rank only"
  std::string hint;  // what would be legal
};

class SHARDLAB_EXPORT Program final {
 public:
  ModelFacts facts;
  std::vector<Dimension> dimensions;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;  // forward order; those of one class stand together
  std::vector<LayerClass> classes;
  std::vector<ClassId> order;  // of each layer, where classes take turns; empty: class after class
  std::vector<Limit> limits;
  std::vector<std::string> authors;  // strategies, in the order of Tensor::author

  const Dimension& dimension(DimensionId id) const { return dimensions[id.index()]; }
  const Tensor& tensor(TensorId id) const { return tensors[id.index()]; }
  Tensor& tensor(TensorId id) { return tensors[id.index()]; }
  const Op& op(OpId id) const { return ops[id.index()]; }
  const LayerClass& layer_class(ClassId id) const { return classes[id.index()]; }

  // Every layer between the ends.
  std::vector<LayerAt> LayersInOrder() const;
  // The class that treats this layer: its own, or the copy. `on_rank`: how many layers of its
  // pipeline rank come before it, in the order in which shares are dealt out.
  ClassId TreatedBy(const LayerAt& layer, int on_rank) const;

  DimensionId FindDimension(std::string_view name) const;  // invalid when the model has none
  DimensionId FindKind(DimensionKind kind) const;
  std::string Describe(const Tensor& tensor, const Placement& placement, const Mesh& mesh) const;
};

}  // namespace shardlab
