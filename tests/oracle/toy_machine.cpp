#include "oracle/toy_machine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/derive.h"
#include "core/place.h"

namespace shardlab::oracle {
namespace {

constexpr double kLearningRate = 0.1;
constexpr double kWeightSpread = 0.7;

std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Calls visit(local offset in box, global indices) for every element of a box, row-major.
template <class Visit>
void EachElement(const std::vector<Indices>& box, const Visit& visit) {
  std::vector<std::size_t> at(box.size(), 0);
  std::vector<int> index;
  for (const Indices& indices : box) {
    if (indices.empty()) return;
    index.push_back(indices.front());
  }
  for (int offset = 0;; ++offset) {
    visit(offset, index);
    std::size_t d = box.size();
    while (d > 0 && ++at[d - 1] == box[d - 1].size()) {
      at[d - 1] = 0;
      index[d - 1] = box[d - 1].front();
      --d;
    }
    if (d == 0) return;
    index[d - 1] = box[d - 1][at[d - 1]];
  }
}

// Row-major in the whole tensor, of these sizes.
std::size_t ElementIn(const std::vector<int>& sizes, const std::vector<int>& index) {
  std::size_t element = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    element = element * static_cast<std::size_t>(sizes[d]) + static_cast<std::size_t>(index[d]);
  return element;
}

// Where two ascending lists agree: positions in the one and in the other.
std::vector<std::pair<int, int>> Common(const Indices& a, const Indices& b) {
  std::vector<std::pair<int, int>> common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) common.emplace_back(static_cast<int>(i), static_cast<int>(j));
    const bool less = a[i] <= b[j], more = a[i] >= b[j];
    i += less ? 1 : 0;
    j += more ? 1 : 0;
  }
  return common;
}

// Calls visit(offset in a, offset in b) for every element that both hold; offsets count from the
// flat begins.
template <class Visit>
void EachCommon(const Shape& a, const Shape& b, const Visit& visit) {
  std::vector<std::vector<std::pair<int, int>>> common;
  for (std::size_t d = 0; d < a.box.size(); ++d) {
    common.push_back(Common(a.box[d], b.box[d]));
    if (common.back().empty()) return;
  }
  const auto each = [&](const auto& self, std::size_t d, int in_a, int in_b) -> void {
    if (d == common.size()) {
      if (in_a < a.flat.begin || in_a >= a.flat.end || in_b < b.flat.begin || in_b >= b.flat.end)
        return;
      visit(static_cast<std::size_t>(in_a - a.flat.begin),
            static_cast<std::size_t>(in_b - b.flat.begin));
      return;
    }
    const int of_a = static_cast<int>(a.box[d].size()), of_b = static_cast<int>(b.box[d].size());
    for (const std::pair<int, int>& both : common[d])
      self(self, d + 1, in_a * of_a + both.first, in_b * of_b + both.second);
  };
  each(each, 0, 0, 0);
}

// What a collective may do to the layout along an atom of its group.
bool Does(Collective collective, Layout from, Layout to) {
  const bool from_cut = from.cut() || from.flat(), to_cut = to.cut() || to.flat();
  switch (collective) {
    case Collective::kSlice:
      return from.whole() && (to_cut || to.sum());
    case Collective::kAllReduce:
      return from.partial() && to.whole();
    case Collective::kReduceScatter:
      return from.partial() && to_cut;
    case Collective::kAllGather:
      return from_cut && to.whole();
    case Collective::kAllToAll:
      return from_cut && to_cut && from != to;
    case Collective::kSendRecv:
    case Collective::kHostCopy:
      return false;
  }
  return false;
}

bool IsParameter(const Program& program, TensorId id) {
  return program.tensor(id).role == TensorRole::kParameter;
}

Version HomeOf(const Program& program, TensorId id) {
  return {id, false, program.tensor(id).home, program.tensor(id).home_on_host};
}

bool IsForward(const Step& step) {
  return step.when == When::kMicroBatch && step.phase == Phase::kForward;
}

}  // namespace

double Noise(std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(Mix(Mix(stream) ^ index) >> 11) * 0x1p-52 - 1;
}

ToyMachine::ToyMachine(const Program& program, const Mesh& mesh, const Derived& derived,
                       std::vector<int> degrees, Job job)
    : program_(program), mesh_(mesh), derived_(derived), degrees_(std::move(degrees)), job_(job) {
  for (const int degree : degrees_) {
    stride_.push_back(static_cast<int>(ranks_));
    ranks_ *= static_cast<std::size_t>(degree);
  }
  for (const Dimension& dim : program.dimensions) {
    sizes_.push_back(dim.kind == DimensionKind::kBatch ? job.batch : static_cast<int>(dim.size));
  }
  stream_nesting_ = mesh.Nesting(true);
  other_nesting_ = mesh.Nesting(false);
}

// --- who holds what
// ---------------------------------------------------------------------------------------

Shape ToyMachine::ShapeOn(std::size_t rank, const Tensor& tensor, const Placement& at) const {
  Shape shape;
  for (const DimensionId dim : tensor.dims) {
    const bool tokens = program_.dimension(dim).kind != DimensionKind::kFixed;
    const Range whole{0, sizes_[dim.index()]};
    shape.box.push_back(Listed(tokens ? Pieces(rank, at, Layout::Cut(dim), whole)
                                      : std::vector{Nested(rank, at, Layout::Cut(dim), whole)}));
  }
  shape.flat = Nested(rank, at, Layout::Flat(), {0, shape.volume()});
  return shape;
}

// An inner cut is of what the outer ones leave.
Range ToyMachine::Nested(std::size_t rank, const Placement& at, Layout layout, Range range) const {
  for (const AtomId atom : other_nesting_) {
    if (at.at(atom) == layout)
      range = Part(range, CoordinateOf(rank, atom.index()), degrees_[atom.index()]);
  }
  return range;
}

// Of every piece that an outer atom could make the rank has, where that atom cuts, the one with its
// own coordinate, else all.
std::vector<Range> ToyMachine::Pieces(std::size_t rank, const Placement& at, Layout layout,
                                      Range whole) const {
  std::vector<Range> pieces = {whole};
  for (const AtomId atom : stream_nesting_) {
    const int parts = degrees_[atom.index()], own = CoordinateOf(rank, atom.index());
    std::vector<Range> finer;
    for (const Range piece : pieces) {
      for (int part = 0; part < parts; ++part) {
        if (at.at(atom) != layout || part == own) finer.push_back(Part(piece, part, parts));
      }
    }
    pieces = std::move(finer);
  }
  return pieces;
}

Indices ToyMachine::Listed(const std::vector<Range>& pieces) {
  Indices indices;
  for (const Range piece : pieces) {
    for (int i = piece.begin; i < piece.end; ++i) indices.push_back(i);
  }
  return indices;
}

const ToyMachine::Shapes& ToyMachine::ShapesOf(const Version& version) {
  Shapes& shapes = shapes_[{version.tensor, version.at}];
  for (std::size_t rank = shapes.size(); rank < ranks_; ++rank) {
    shapes.push_back(ShapeOn(rank, program_.tensor(version.tensor), version.at));
  }
  return shapes;
}

ToyMachine::Blocks ToyMachine::Empty(const Version& version) {
  Blocks blocks(ranks_);
  const Shapes& shapes = ShapesOf(version);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    blocks[rank].shape = &shapes[rank];
    blocks[rank].data.assign(static_cast<std::size_t>(shapes[rank].flat.size()), 0);
  }
  return blocks;
}

int ToyMachine::CoordinatesOf(std::size_t rank, AtomMask atoms) const {
  int number = 0;
  for (std::size_t a = 0; a < degrees_.size(); ++a) {
    if (atoms >> a & 1) number = number * degrees_[a] + CoordinateOf(rank, a);
  }
  return number;
}

AtomMask ToyMachine::Real(AtomMask atoms) const {
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    if (a >= degrees_.size() || degrees_[a] == 1) atoms = static_cast<AtomMask>(atoms & ~(1u << a));
  }
  return atoms;
}

// The ranks that differ from this one along the group's atoms only, itself first.
const std::vector<std::size_t>& ToyMachine::GroupOf(std::size_t rank, AtomMask group) {
  std::vector<std::vector<std::size_t>>& members = groups_[group];
  if (members.empty()) {
    const auto others = static_cast<AtomMask>(~group);
    for (std::size_t r = 0; r < ranks_; ++r) {
      members.push_back({r});
      for (std::size_t other = 0; other < ranks_; ++other) {
        if (other != r && CoordinatesOf(other, others) == CoordinatesOf(r, others))
          members[r].push_back(other);
      }
    }
  }
  return members[rank];
}

std::string ToyMachine::Describe(const Version& version) const {
  return (version.gradient ? "gradient of " : "") +
         program_.Describe(program_.tensor(version.tensor), version.at, mesh_) +
         (version.host ? " on the host" : "");
}

// --- what is in memory
// ------------------------------------------------------------------------------------

// One-hot tokens and targets: every rank reads the batch, as the program places it.
ToyMachine::Blocks ToyMachine::BatchData(const Version& version) {
  const Tensor& tensor = program_.tensor(version.tensor);
  const auto classes = static_cast<std::uint64_t>(sizes_[tensor.dims.back().index()]);
  const std::uint64_t stream =
      1000u * static_cast<std::uint64_t>(micro_batch_ + 1) + version.tensor.value();
  Blocks blocks = Empty(version);
  for (Block& block : blocks) {
    EachElement(block.shape->box, [&](int offset, const std::vector<int>& index) {
      std::uint64_t position = 0;
      for (std::size_t d = 0; d + 1 < index.size(); ++d)
        position = position * 64 + static_cast<std::uint64_t>(index[d]);
      const bool hot =
          Mix(Mix(stream) ^ position) % classes == static_cast<std::uint64_t>(index.back());
      block.data[static_cast<std::size_t>(offset)] = hot ? 1 : 0;
    });
  }
  return blocks;
}

std::vector<int> ToyMachine::SizesOf(TensorId tensor) const {
  std::vector<int> sizes;
  for (const DimensionId dim : program_.tensor(tensor).dims) sizes.push_back(sizes_[dim.index()]);
  return sizes;
}

Block ToyMachine::WeightsOn(TensorId tensor, const Shape& shape) const {
  Block block{&shape, std::vector<double>(static_cast<std::size_t>(shape.flat.size()))};
  const std::vector<int> sizes = SizesOf(tensor);
  EachElement(shape.box, [&](int offset, const std::vector<int>& index) {
    if (offset < shape.flat.begin || offset >= shape.flat.end) return;
    const std::size_t element = ElementIn(sizes, index);
    double weight = kWeightSpread * Noise(tensor.value(), element);
    if (tensor == job_.nudge.tensor && element == job_.nudge.element) weight += job_.nudge.by;
    block.data[static_cast<std::size_t>(offset - shape.flat.begin)] = weight;
  });
  return block;
}

const ToyMachine::Blocks& ToyMachine::Get(const Version& version) {
  const auto found = store_.find(version);
  if (found != store_.end()) return found->second;
  const Tensor& tensor = program_.tensor(version.tensor);
  if (tensor.role == TensorRole::kData && !version.gradient && version.at == tensor.use) {
    return store_.emplace(version, BatchData(version)).first->second;
  }
  throw Fault("missing: " + Describe(version));
}

void ToyMachine::Put(const Version& version, Blocks blocks, bool add) {
  const auto [place, fresh] = store_.try_emplace(version);
  // A block that is replayed whole makes its output again (once), which the next layer kept as its
  // input.
  const LayerClass& layer = program_.layer_class(program_.tensor(version.tensor).layer_class);
  const bool again =
      replaying_ && version.tensor == layer.output && made_again_.insert(version).second;
  if (fresh || again) {
    place->second = std::move(blocks);
    return;
  }
  if (!add) throw Fault("exists already: " + Describe(version));
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    std::vector<double>& sum = place->second[rank].data;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += blocks[rank].data[i];
  }
}

// --- the step, in its order
// -------------------------------------------------------------------------------

Agreement ToyMachine::Run(const Trace* expected, Trace* recorded) {
  expected_ = expected;
  recorded_ = recorded;
  if (recorded) {
    recorded->values.assign(static_cast<std::size_t>(job_.micro_batches),
                            Trace::Arrays(program_.tensors.size()));
    recorded->gradients = recorded->values;
    recorded->parameter_gradients.resize(program_.tensors.size());
    recorded->updated.resize(program_.tensors.size());
  }
  LoadWeights();
  for (micro_batch_ = 0; micro_batch_ < job_.micro_batches; ++micro_batch_) {
    Forward();
    SeedLoss();
    ForgetUnsaved();
    Backward();
    ForgetMicroBatch();
  }
  for (const Step& step : derived_.steps) {
    if (step.when == When::kStep) Execute(step);
  }
  ObserveUpdated();
  return agreement_;
}

double ToyMachine::Loss() {
  double loss = 0;
  LoadWeights();
  for (micro_batch_ = 0; micro_batch_ < job_.micro_batches; ++micro_batch_) {
    Forward();
    for (const TensorId id : Losses()) {
      const Blocks& one = Get({id, false, program_.tensor(id).use});
      for (const double x : one[0].data)
        loss += x / static_cast<double>(one[0].data.size()) / job_.micro_batches;
    }
    ForgetMicroBatch();
  }
  return loss;
}

void ToyMachine::LoadWeights() {
  for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
    if (!IsParameter(program_, TensorId(t))) continue;
    const Version home = HomeOf(program_, TensorId(t));
    Blocks blocks;
    for (const Shape& shape : ShapesOf(home)) blocks.push_back(WeightsOn(TensorId(t), shape));
    store_.emplace(home, std::move(blocks));
  }
}

void ToyMachine::Forward() {
  for (const Step& step : derived_.steps) {
    if (IsForward(step)) Execute(step);
  }
}

// Between the passes only what the derivation lists as saved survives, and the parameters.
void ToyMachine::ForgetUnsaved() {
  std::set<Version> keep;
  for (const Saved& saved : derived_.saved) {
    if (saved.residency != Residency::kReplayed) keep.insert({saved.tensor, false, saved.at});
  }
  std::erase_if(store_, [&](const auto& entry) {
    const Version& version = entry.first;
    const Tensor& tensor = program_.tensor(version.tensor);
    if (version.gradient) return false;
    if (tensor.role != TensorRole::kParameter) return keep.count(version) == 0;
    return version != HomeOf(program_, version.tensor) && !tensor.keep_after_forward;
  });
}

// The last op's output; a model that predicts further tokens has a loss for each.
std::vector<TensorId> ToyMachine::Losses() const {
  std::vector<TensorId> losses;
  for (const Op& op : program_.ops) {
    if (op.kind == OpKind::kLogLoss || &op == &program_.ops.back()) losses.push_back(op.output);
  }
  return losses;
}

void ToyMachine::SeedLoss() {
  for (const TensorId loss : Losses()) {
    Get({loss, false, program_.tensor(loss).use});
    double elements = job_.micro_batches;
    for (const DimensionId dim : program_.tensor(loss).dims) elements *= sizes_[dim.index()];
    const Version seed{loss, true, Dual(program_.tensor(loss).use)};
    Blocks blocks = Empty(seed);
    for (Block& block : blocks) std::fill(block.data.begin(), block.data.end(), 1 / elements);
    Put(seed, std::move(blocks), false);
  }
}

void ToyMachine::Backward() {
  bool begun = false;
  ClassId layer;
  for (const Step& step : derived_.steps) {
    if (step.when != When::kMicroBatch) continue;
    if (step.phase == Phase::kForward) {
      if (begun) throw Fault("a forward step stands behind the backward pass");
      continue;
    }
    if (begun && step.layer_class != layer) ForgetLayer(layer);
    begun = true;
    layer = step.layer_class;
    Execute(step);
  }
}

// What was replayed or gathered for the backward pass of a layer is gone when the layer is done.
void ToyMachine::ForgetLayer(ClassId layer) {
  made_again_.clear();
  std::erase_if(store_, [&](const auto& entry) {
    const Version& version = entry.first;
    const Tensor& tensor = program_.tensor(version.tensor);
    if (tensor.layer_class != layer || version.gradient) return false;
    return tensor.role != TensorRole::kParameter || version != HomeOf(program_, version.tensor);
  });
}

void ToyMachine::ForgetMicroBatch() {
  made_again_.clear();
  std::erase_if(store_, [&](const auto& entry) {
    const Version& version = entry.first;
    const Tensor& tensor = program_.tensor(version.tensor);
    return tensor.role != TensorRole::kParameter ||
           (!version.gradient && version != HomeOf(program_, version.tensor));
  });
}

void ToyMachine::Execute(const Step& step) {
  replaying_ = step.phase == Phase::kReplay;
  switch (step.kind) {
    case StepKind::kMove:
      return Move(step);
    case StepKind::kCompute:
      return Compute(step);
    case StepKind::kGradient:
      return Gradient(step);
    case StepKind::kUpdate:
      return Update(step);
  }
}

void ToyMachine::Compute(const Step& step) {
  const Op& op = program_.op(step.op);
  std::vector<const Blocks*> operands;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    operands.push_back(&Get({op.inputs[i].tensor, false, op.need[i]}));
  const Version made{op.output, false, op.made};
  Blocks output = Empty(made);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    std::vector<const Block*> local;
    for (const Blocks* blocks : operands) local.push_back(&(*blocks)[rank]);
    ComputeLocally(op, sizes_, local, output[rank]);
  }
  Put(made, std::move(output), false);
  const auto mb = static_cast<std::size_t>(micro_batch_);
  Observe(made, expected_ ? &expected_->values[mb] : nullptr,
          recorded_ ? &recorded_->values[mb] : nullptr);
}

void ToyMachine::Gradient(const Step& step) {
  const Op& op = program_.op(step.op);
  std::vector<const Blocks*> operands(op.inputs.size(), nullptr);
  const Blocks* output = nullptr;
  std::vector<Version> produced;
  std::vector<Blocks> gradients(op.inputs.size());
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    produced.push_back({op.inputs[i].tensor, true, Produced(op, i)});
    if ((step.operands >> i & 1) == 0) continue;
    gradients[i] = Empty(produced[i]);
    for (const int read : op.reads[i]) {
      if (read == kReadsOutput) {
        output = &Get({op.output, false, Dual(op.made)});
        CheckListed(op.output);
      } else {
        const auto r = static_cast<std::size_t>(read);
        operands[r] = &Get({op.inputs[r].tensor, false, op.need[r]});
        CheckListed(op.inputs[r].tensor);
      }
    }
  }
  const Version incoming{op.output, true, Dual(op.made)};
  const Blocks& output_gradient = Get(incoming);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    std::vector<const Block*> local;
    std::vector<Block*> local_gradients;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      local.push_back(operands[i] ? &(*operands[i])[rank] : nullptr);
      local_gradients.push_back(gradients[i].empty() ? nullptr : &gradients[i][rank]);
    }
    DifferentiateLocally(op, sizes_, local, output ? &(*output)[rank] : nullptr,
                         output_gradient[rank], local_gradients);
  }
  const auto mb = static_cast<std::size_t>(micro_batch_);
  Observe(incoming, expected_ ? &expected_->gradients[mb] : nullptr,
          recorded_ ? &recorded_->gradients[mb] : nullptr);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!gradients[i].empty()) Put(produced[i], std::move(gradients[i]), true);
  }
}

// What a gradient reads occupies memory: it is in the list of saved tensors, kept or replayed.
void ToyMachine::CheckListed(TensorId id) const {
  const TensorRole role = program_.tensor(id).role;
  if (role == TensorRole::kParameter || role == TensorRole::kData) return;
  for (const Saved& saved : derived_.saved) {
    if (saved.tensor == id) return;
  }
  throw Fault("read by a gradient, but not listed as saved: " + program_.tensor(id).name);
}

void ToyMachine::Update(const Step& step) {
  const Version weight = step.target, gradient{weight.tensor, true, weight.at, weight.host};
  Blocks updated = Get(weight);
  const Blocks& slope = Get(gradient);
  Observe(gradient, expected_ ? &expected_->parameter_gradients : nullptr,
          recorded_ ? &recorded_->parameter_gradients : nullptr);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (std::size_t i = 0; i < updated[rank].data.size(); ++i)
      updated[rank].data[i] -= kLearningRate * slope[rank].data[i];
  }
  // Copies in other placements are stale now, and the gradient is used up.
  std::erase_if(store_, [&](const auto& entry) { return entry.first.tensor == weight.tensor; });
  Put(weight, std::move(updated), false);
}

// --- collectives
// ------------------------------------------------------------------------------------------

// A collective changes the layout along every atom of its group, and along no other.
void ToyMachine::Check(const Step& step) const {
  const bool copies = step.collective == Collective::kHostCopy;
  if (copies != (step.source.host != step.target.host) && step.collective != Collective::kSlice)
    throw Fault(Describe(step.source) + " changes its memory by " + Name(step.collective));
  if (!copies && step.source.host) throw Fault(Describe(step.source) + " moves within the host");
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    const Layout from = step.source.at.at(a), to = step.target.at.at(a);
    const bool in_group = step.group >> a & 1;
    if (in_group != (from != to))
      throw Fault(Describe(step.source) + " moves to another group than its layouts say");
    if (in_group && !Does(step.collective, from, to)) {
      throw Fault(Describe(step.source) + " cannot move so by " + Name(step.collective));
    }
  }
}

void ToyMachine::Move(const Step& step) {
  if (step.target.tensor != step.source.tensor || step.target.gradient != step.source.gradient) {
    throw Fault("a move changes what it moves: " + Describe(step.source) + " -> " +
                Describe(step.target));
  }
  Check(step);
  Blocks moved = Collect(step.source, step.target.at, step.group, &step.collective);
  if (step.add) store_.erase(step.source);
  Put(step.target, std::move(moved), step.add);
  if (step.source.gradient || program_.tensor(step.source.tensor).role == TensorRole::kData) return;
  if (IsParameter(program_, step.source.tensor)) return;
  const auto mb = static_cast<std::size_t>(micro_batch_);
  Observe(step.target, expected_ ? &expected_->values[mb] : nullptr, nullptr);
}

ToyMachine::Blocks ToyMachine::Collect(const Version& from, const Placement& to, AtomMask group,
                                       const Collective* collective) {
  const Blocks& source = Get(from);
  Blocks result = Empty({from.tensor, from.gradient, to});
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    result[rank] = CollectOn(rank, source, from, to, *result[rank].shape, group, collective);
  }
  return result;
}

// What `rank` holds after the collective. Ranks that differ along a reduced atom hold parts of a
// sum (or of a maximum): one holder of each part is needed. Ranks that differ elsewhere hold
// copies, or other elements.
Block ToyMachine::CollectOn(std::size_t rank, const Blocks& source, const Version& from,
                            const Placement& to, const Shape& shape, AtomMask group,
                            const Collective* collective) {
  const auto fail = [&](const char* why) { throw Fault(Describe(from) + " " + why); };
  const AtomMask was_partial = Real(from.at.Partial()), is_partial = Real(to.Partial());
  const auto reduced = static_cast<AtomMask>(was_partial & ~is_partial);
  // A whole thing becomes a sum where its first holder keeps it and the others put zeros in its
  // place.
  const auto split = static_cast<AtomMask>(is_partial & ~was_partial);
  const AtomMask sums = to.Where([](Layout l) { return l.sum(); });
  const auto whole_or_sum =
      static_cast<AtomMask>(sums & from.at.Where([](Layout l) { return l.whole(); }));
  if ((split & ~whole_or_sum) != 0 ||
      (split != 0 && (!collective || *collective != Collective::kSlice))) {
    fail("becomes partial by a move that cannot do so");
  }
  if ((split & ~group) != 0) fail("becomes partial outside of its group");
  if ((reduced & ~group) != 0) fail("is reduced outside of its group");
  AtomMask maxima = Real(from.at.Where([](Layout l) { return l.max(); }));
  if ((reduced & maxima) != 0 && (reduced & ~maxima) != 0)
    fail("is reduced as sum and maximum at once");
  const bool maximum = (reduced & maxima) != 0;
  if (collective) {
    const bool reduces =
        *collective == Collective::kAllReduce || *collective == Collective::kReduceScatter;
    if (!reduces && reduced != 0) fail("is reduced by a collective that only copies");
    if (*collective == Collective::kSlice) group = 0;
    const Shape& before = *source[rank].shape;
    if (*collective == Collective::kAllReduce &&
        (shape.box != before.box || shape.flat != before.flat)) {
      fail("is held by others after an all-reduce");
    }
  }

  Block block{&shape, std::vector<double>(static_cast<std::size_t>(shape.flat.size()),
                                          maximum ? -HUGE_VAL : 0)};
  int parts = 1;
  for (std::size_t a = 0; a < degrees_.size(); ++a) {
    if (reduced >> a & 1) parts *= degrees_[a];
  }
  std::vector<std::size_t> missing(static_cast<std::size_t>(parts), block.data.size());
  std::vector<std::vector<bool>> has(static_cast<std::size_t>(parts),
                                     std::vector<bool>(block.data.size(), false));
  for (const std::size_t holder : GroupOf(rank, group)) {
    // A part of a sum that stays partial belongs to the ranks with the same coordinate only.
    const auto stays = static_cast<AtomMask>(was_partial & is_partial);
    if (CoordinatesOf(holder, stays) != CoordinatesOf(rank, stays)) continue;
    const auto part = static_cast<std::size_t>(CoordinatesOf(holder, reduced));
    if (missing[part] == 0) continue;
    EachCommon(*source[holder].shape, shape, [&](std::size_t theirs, std::size_t ours) {
      if (has[part][ours]) return;
      has[part][ours] = true;
      --missing[part];
      const double number = source[holder].data[theirs];
      block.data[ours] = maximum ? std::max(block.data[ours], number) : block.data[ours] + number;
    });
  }
  if (CoordinatesOf(rank, split) != 0) std::fill(block.data.begin(), block.data.end(), 0);
  for (const std::size_t count : missing) {
    if (count != 0) fail("has elements that are not in the group");
  }
  return block;
}

// --- comparing
// --------------------------------------------------------------------------------------------

void ToyMachine::Compare(double actual, double expected, const Version& version) {
  ++agreement_.numbers;
  double difference = std::abs(actual - expected);
  if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
  if (difference <= agreement_.worst) return;
  agreement_.worst = difference;
  agreement_.where = Describe(version);
}

void ToyMachine::Observe(const Version& version, const Trace::Arrays* expected,
                         Trace::Arrays* recorded) {
  if (recorded) (*recorded)[version.tensor.index()] = Get(version)[0].data;
  if (!expected) return;
  if (version.gradient) agreement_.gradients.insert(version.tensor);
  const std::vector<double>& truth = (*expected)[version.tensor.index()];
  const auto all = static_cast<AtomMask>(~0u);
  const bool partial = Real(version.at.Partial()) != 0;
  Blocks reduced;
  if (partial) reduced = Collect(version, Dual(version.at), all, nullptr);
  const std::vector<int> sizes = SizesOf(version.tensor);
  for (const Block& block : partial ? reduced : Get(version)) {
    const Range flat = block.shape->flat;
    EachElement(block.shape->box, [&](int offset, const std::vector<int>& index) {
      if (offset < flat.begin || offset >= flat.end) return;
      const std::size_t element = ElementIn(sizes, index);
      Compare(block.data[static_cast<std::size_t>(offset - flat.begin)], truth.at(element),
              version);
    });
  }
}

void ToyMachine::ObserveUpdated() {
  for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
    if (!IsParameter(program_, TensorId(t))) continue;
    const Version home = HomeOf(program_, TensorId(t));
    Observe(home, expected_ ? &expected_->updated : nullptr,
            recorded_ ? &recorded_->updated : nullptr);
  }
  for (const auto& [version, blocks] : store_) {
    if (version.gradient) throw Fault("a gradient was not used: " + Describe(version));
  }
}

Trace RunUnsharded(const Program& program, Job job) {
  Program placed = program;
  PlaceWork(placed);
  for (Tensor& tensor : placed.tensors) tensor.home = tensor.state = tensor.gradient = tensor.use;
  const Mesh mesh;
  const Derived derived = Derive(placed, mesh);
  Trace trace;
  ToyMachine(placed, mesh, derived, {}, job).Run(nullptr, &trace);
  return trace;
}

}  // namespace shardlab::oracle
