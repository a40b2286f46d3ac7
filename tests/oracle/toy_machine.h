#pragma once
// A machine with real numbers that executes Derived.steps literally: each rank holds, for each
// Version, the indices that its placement gives it, and may take elements from the ranks of a
// collective's group alone. Nothing is derived here: a step that misses something is a Fault, and
// every value, gradient and updated weight is compared with those of the unsharded run while it
// goes on.
//
//   Trace expected = RunUnsharded(program, {.batch = 4, .micro_batches = 2});
//   Agreement agreement = ToyMachine(edited, degrees, job).Run(expected);  // throws Fault
//   EXPECT_LT(agreement.worst, 1e-9);

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "domain/derived.h"
#include "domain/mesh.h"
#include "domain/program.h"
#include "oracle/toy_arithmetic.h"

namespace shardlab::oracle {

// A parameter element that is moved a little, for finite differences.
struct Nudge {
  TensorId tensor;
  std::size_t element = 0;
  double by = 0;
};

struct Job {
  int batch = 4;  // sequences in one micro-batch, over all ranks
  int micro_batches = 2;
  Nudge nudge = {};
};

// What the unsharded run computed; arrays are row-major and empty where a tensor has no such thing.
struct Trace {
  using Arrays = std::vector<std::vector<double>>;  // by TensorId
  std::vector<Arrays> values, gradients;            // by micro-batch, of activations
  Arrays parameter_gradients, updated;
};

struct Agreement {
  std::size_t numbers = 0;
  double worst = 0;
  std::string where;             // of the worst difference
  std::set<TensorId> gradients;  // tensors whose gradient was compared
};

class ToyMachine final {
 public:
  // `degrees`: the size of each atom of the mesh.
  ToyMachine(const Program& program, const Mesh& mesh, const Derived& derived,
             std::vector<int> degrees, Job job);

  // Executes the step and compares with `expected`; without it the machine fills `recorded` (one
  // rank only).
  Agreement Run(const Trace* expected, Trace* recorded = nullptr);

  // The loss after the forward steps alone, without a backward pass.
  double Loss();

 private:
  using Blocks = std::vector<Block>;  // by rank
  using Shapes = std::vector<Shape>;  // by rank

  void LoadWeights();
  void Forward();
  void ForgetUnsaved();
  std::vector<TensorId> Losses() const;
  void SeedLoss();
  void Backward();
  void ForgetMicroBatch();
  void ForgetLayer(ClassId layer);
  void Execute(const Step& step);
  void Move(const Step& step);
  void Compute(const Step& step);
  void Gradient(const Step& step);
  void Update(const Step& step);

  const Blocks& Get(const Version& version);  // a Fault when it is not there
  void Put(const Version& version, Blocks blocks, bool add);
  Blocks Collect(const Version& from, const Placement& to, AtomMask group,
                 const Collective* collective);
  Block CollectOn(std::size_t rank, const Blocks& source, const Version& from, const Placement& to,
                  const Shape& shape, AtomMask group, const Collective* collective);
  Blocks Empty(const Version& version);
  const Shapes& ShapesOf(const Version& version);
  Shape ShapeOn(std::size_t rank, const Tensor& tensor, const Placement& at) const;
  Range Nested(std::size_t rank, const Placement& at, Layout layout, Range range) const;
  std::vector<Range> Pieces(std::size_t rank, const Placement& at, Layout layout,
                            Range whole) const;
  static Indices Listed(const std::vector<Range>& pieces);
  std::vector<int> SizesOf(TensorId tensor) const;
  Blocks BatchData(const Version& version);
  Block WeightsOn(TensorId tensor, const Shape& shape) const;

  int CoordinateOf(std::size_t rank, std::size_t atom) const {
    return static_cast<int>(rank) / stride_[atom] % degrees_[atom];
  }
  int CoordinatesOf(std::size_t rank, AtomMask atoms) const;
  const std::vector<std::size_t>& GroupOf(std::size_t rank, AtomMask group);
  AtomMask Real(AtomMask atoms) const;  // those of more than one rank

  // The machine's own rules about steps and lists; each throws a Fault.
  void Check(const Step& step) const;
  void CheckListed(TensorId id) const;
  void Compare(double actual, double expected, const Version& version);
  void Observe(const Version& version, const Trace::Arrays* expected, Trace::Arrays* recorded);
  void ObserveUpdated();
  std::string Describe(const Version& version) const;

  const Program& program_;
  const Mesh& mesh_;
  const Derived& derived_;
  const std::vector<int> degrees_;
  const Job job_;
  std::vector<int> stride_;  // of each atom in the rank's number
  std::size_t ranks_ = 1;
  DimensionSizes sizes_;
  std::vector<AtomId> stream_nesting_, other_nesting_;  // of batch and sequence; of all else

  std::map<Version, Blocks> store_;
  std::map<std::pair<TensorId, Placement>, Shapes> shapes_;
  std::map<AtomMask, std::vector<std::vector<std::size_t>>> groups_;
  int micro_batch_ = 0;
  bool replaying_ = false;
  std::set<Version> made_again_;  // outputs of layers, by a replay
  const Trace* expected_ = nullptr;
  Trace* recorded_ = nullptr;
  Agreement agreement_;
};

// The program as the model wrote it, on one rank.
Trace RunUnsharded(const Program& program, Job job);

// A number in [-1, 1) that depends on nothing but its arguments.
double Noise(std::uint64_t stream, std::uint64_t index);

}  // namespace shardlab::oracle
