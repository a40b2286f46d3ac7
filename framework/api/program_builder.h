#pragma once
// How a Model writes its rows: dimensions with one-letter names, tensors, and ops in einsum
// notation.
//
//   ProgramBuilder p;
//   p.Dimension('h', "hidden", 8192);  p.Batch('b');  p.Sequence('s', 4096);
//   p.BeginClass("layer", StagePosition::kLayer, 80);
//   TensorId x = p.Input("x", "bsh");
//   TensorId w = p.Parameter("mlp.up", "hf");
//   TensorId u = p.Product("up", {x, "bsh"}, {w, "hf"}, "bsf");
//   p.Output(y);  p.EndClass();
//
// A letter stands for its dimension; Alias('t', 's') gives a second factor of the same dimension
// (keys of attention). Letters and ranks are checked when the program is taken: a model's mistake
// is a Status.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/export.h"
#include "domain/program.h"

namespace shardlab {

struct Arg {
  TensorId tensor;
  std::string labels;
};

class SHARDLAB_EXPORT ProgramBuilder final {
 public:
  void Dimension(char letter, std::string name, double size);
  void Batch(char letter);                  // "batch"
  void Sequence(char letter, double size);  // "sequence"
  void Alias(char letter, char dimension);

  void BeginClass(std::string name, StagePosition position, int repeat = 1, bool block = false);
  void EndClass();
  // Classes of layers take turns: for each layer of the model how many-th class of layers it is of.
  // Without it one class stands behind the other.
  void LayerOrder(std::vector<int> turns) { turns_ = std::move(turns); }
  TensorId Input(std::string name, std::string_view dims);  // the stream that enters the class
  void Output(TensorId stream);                             // the stream that leaves it

  TensorId Parameter(std::string name, std::string_view dims, double scale = 1);
  TensorId Data(std::string name, std::string_view dims);  // an input of the batch: tokens, targets

  // The ops; each returns its output. `role` is that of the output.
  TensorId Product(std::string name, const Arg& a, const Arg& b, std::string_view out,
                   TensorRole role = TensorRole::kActivation);
  TensorId Lookup(std::string name, const Arg& one_hot, const Arg& table, std::string_view out,
                  TensorRole role);
  TensorId Attention(std::string name, const Arg& q, const Arg& k, const Arg& v,
                     std::string_view out);
  TensorId Norm(std::string name, const Arg& x, const Arg& weight,
                std::string_view over);  // weight: or {}
  // Weight and bias may be left out, the bias alone or both.
  TensorId LayerNorm(std::string name, const Arg& x, const Arg& weight, const Arg& bias,
                     std::string_view over);
  TensorId Add(std::string name, const Arg& a, const Arg& b);
  TensorId Bias(std::string name, const Arg& x, const Arg& bias);
  TensorId Gelu(std::string name, const Arg& x);
  TensorId Relu(std::string name, const Arg& x);
  TensorId Concat(std::string name, const Arg& a, const Arg& b, std::string_view out);
  // weights: or {}
  TensorId GatedSilu(std::string name, const Arg& gate, const Arg& up,
                     TensorRole role = TensorRole::kActivation, const Arg& weights = {});
  TensorId Sum(std::string name, const Arg& a, std::string_view out, TensorRole role);
  TensorId MaxReduce(std::string name, const Arg& a, std::string_view out);
  TensorId SumExp(std::string name, const Arg& a, const Arg& max, std::string_view out);
  TensorId LogLoss(std::string name, const Arg& sum, const Arg& max, const Arg& picked);
  TensorId TopK(std::string name, const Arg& a, std::string_view over, int k);
  // `scale` of the output: its density, top-k / experts.
  TensorId Dispatch(std::string name, const Arg& tokens, const Arg& routes, std::string_view out,
                    double density);
  TensorId Lump(std::string name, const Arg& x, const Arg& weight, std::string_view out,
                TensorRole role = TensorRole::kStream);
  // FLOPs of the forward pass = flops x product of the named dimensions; of routed tokens only
  // their `density` of those.
  void Work(std::string name, std::string_view dims, double flops,
            TensorRole role = TensorRole::kActivation, double density = 0);

  // A tensor that the last op writes for its backward pass alone.
  TensorId Stash(std::string name, std::string_view dims, TensorRole role, DtypeSlot dtype,
                 double scale = 1);
  void Scale(TensorId tensor, double scale);
  // The last op does this share of its kind's FLOPs: attention in a window.
  void ScaleFlops(double share);
  // What the placement rule is told of the last op: the operand whose cut decides where it works.
  void Anchor(int operand);
  void Limit(AxisRole role, std::string why, std::string hint);
  void SetDtype(TensorId tensor, DtypeSlot dtype);

  ModelFacts& facts() { return program_.facts; }
  // The program, checked: letters known, ranks agree, classes closed, one stream in and out.
  absl::StatusOr<Program> Take();

 private:
  std::uint8_t FactorOf(Op& op, char letter);
  std::vector<DimensionId> Dims(std::string_view letters);
  Operand MakeOperand(Op& op, const Arg& arg);
  TensorId NewTensor(std::string name, std::string_view dims, TensorRole role, DtypeSlot dtype);
  TensorId Finish(Op op, std::string_view out, TensorRole role, DtypeSlot dtype);
  void Fail(std::string why);
  DimensionId DimOf(char letter);

  Program program_;
  void TakeTurns();

  std::vector<int> turns_;
  std::vector<std::pair<char, char>> aliases_;
  bool in_class_ = false;
  std::string failure_;
};

}  // namespace shardlab
