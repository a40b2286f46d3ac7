// The place of work: for each op and atom the rule picks one factor. Numbers cannot see waste, so
// each choice is held against every other one. Whatever is chosen, the derivation gives the right
// numbers or asks for a step that no group can do (cuts of one dimension nest, and one of them
// cannot always move alone); it is never silently wrong. And no other choice may move fewer bytes
// at real sizes, but for a list of known cases.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/derive.h"
#include "oracle/toy_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

bool Contains(const std::vector<std::uint8_t>& factors, int factor) {
  return std::find(factors.begin(), factors.end(), factor) != factors.end();
}

// Puts the op's work along this factor on this atom (-1: repeated work), with what that needs and
// makes. False where the op cannot work so, or a parameter would have to move.
bool WorkAlong(const Program& program, Op& op, std::size_t atom, int factor) {
  if (factor >= 0 && Contains(op.whole, factor)) return false;
  if (op.made.at(atom).partial() && op.work[atom] < 0)
    return false;  // a sum that is left open passes through
  const Layout cut =
      factor >= 0 ? Layout::Cut(op.factors[static_cast<std::size_t>(factor)].dim) : Layout::Whole();
  for (std::size_t j = 0; j < op.inputs.size(); ++j) {
    const Tensor& operand = program.tensor(op.inputs[j].tensor);
    const Layout need =
        factor >= 0 && Contains(op.inputs[j].factors, factor) ? cut : Layout::Whole();
    if (operand.role == TensorRole::kParameter && need != operand.use.at(atom)) return false;
    op.need[j].Set(atom, need);
  }
  const bool stays = factor >= 0 && Contains(op.output_factors, factor);
  const Layout partial = op.kind == OpKind::kMaxReduce ? Layout::Max() : Layout::Sum();
  op.made.Set(atom, stays ? cut : factor < 0 ? Layout::Whole() : partial);
  op.work[atom] = static_cast<std::int8_t>(factor);
  return true;
}

// One axis of one op that works along another factor than the rule says.
struct Alternative {
  OpId op;
  AtomMask atoms =
      0;  // of the axis, those that work along the same factor: nested cuts move together
  int rule = -1, factor = -1;
};

std::vector<Alternative> AlternativesOf(const Edited& edited) {
  std::vector<Alternative> alternatives;
  for (std::size_t o = 0; o < edited.program.ops.size(); ++o) {
    const Op& op = edited.program.ops[o];
    for (const Axis& axis : edited.mesh.axes()) {
      if (axis.borrows) continue;
      std::map<int, AtomMask> works;
      for (const AtomId atom : axis.order) {
        AtomMask& atoms = works[op.work[atom.index()]];
        atoms = static_cast<AtomMask>(atoms | Bit(atom));
      }
      for (const auto& [rule, atoms] : works) {
        for (int factor = -1; factor < static_cast<int>(op.factors.size()); ++factor) {
          if (factor != rule) alternatives.push_back({OpId(o), atoms, rule, factor});
        }
      }
    }
  }
  return alternatives;
}

// The derivation with that choice; nothing where it is not possible.
std::optional<Edited> With(const Edited& edited, const Alternative& alternative) {
  Edited other = edited;
  for (std::size_t a = 0; a < edited.mesh.atoms().size(); ++a) {
    if ((alternative.atoms >> a & 1) == 0) continue;
    if (!WorkAlong(edited.program, other.program.ops[alternative.op.index()], a,
                   alternative.factor))
      return std::nullopt;
  }
  other.derived = Derive(other.program, other.mesh);
  return other;
}

std::string Describe(const Edited& edited, const Alternative& alternative) {
  const Op& op = edited.program.op(alternative.op);
  const auto name = [&op](int f) {
    return std::string(1, f < 0 ? '-' : op.factors[static_cast<std::size_t>(f)].letter);
  };
  return absl::StrCat(op.name, " over ", edited.mesh.NameOf(alternative.atoms), ": ",
                      name(alternative.factor), " instead of ", name(alternative.rule));
}

const std::vector<Choices> kDense = {
    {DataParallel()},
    {TensorParallel({})},
    {TensorParallel({.sequence_parallel = true})},
    {ContextGather()},
    {ContextUlysses()},
    {DataParallel(), TensorParallel({.sequence_parallel = true}), ContextGather()},
};
const std::vector<Choices> kExperts = {
    {DataParallel(), ExpertParallel()},
    {TensorParallel({}), DataParallel(), ExpertParallel()},
    {TensorParallel({.sequence_parallel = true}), DataParallel(), ExpertParallel()},
    {TensorParallel({.sequence_parallel = true, .experts = ExpertTensor::kWhole}), DataParallel(),
     ExpertParallel()},
    {TensorParallel({.sequence_parallel = true, .experts = ExpertTensor::kSpread}), DataParallel(),
     ExpertParallel()},
};

// --- no choice is wrong
// --------------------------------------------------------------------------------

TEST(WorkTest, NoChoiceOfWorkGivesWrongNumbers) {
  if (kSanitized) GTEST_SKIP() << "takes minutes, and the worlds' tests run the same code";
  Tally tally;
  int impossible = 0;
  for (const bool experts : {false, true}) {
    const Setting setting(Unroll(ToyModel({.experts = experts, .layers = 1})), {});
    for (const Choices& choices : experts ? kExperts : kDense) {
      const std::optional<Edited> edited = Apply(setting.program, choices);
      ASSERT_TRUE(edited.has_value());
      ++tally.compositions;
      const std::vector<int> degrees(edited->mesh.atoms().size(), 2);
      for (const Alternative& alternative : AlternativesOf(*edited)) {
        const std::optional<Edited> other = With(*edited, alternative);
        if (!other) continue;
        const std::string wrong = WhatIsWrong(setting, *other, other->derived, degrees, tally);
        const bool noticed = wrong.find("not in the group") != std::string::npos ||
                             wrong.find("exists already") == 0;
        impossible += noticed;
        if (wrong.empty() || noticed) continue;
        ++tally.failures;
        ADD_FAILURE() << NameOf(choices) << " " << Describe(*edited, alternative) << ": " << wrong;
      }
    }
  }
  Conclude(tally, "work, alternatives");
  std::printf("of these, %d are impossible for nested cuts\n", impossible);
  EXPECT_LT(impossible, tally.worlds / 2);
}

// --- none is cheaper
// --------------------------------------------------------------------------------------

constexpr double kMicroBatches = 8;
constexpr ToySizes kRealSizes = {4096, 8192, 8, 8, 128, 28672, 128256, 64, 2048};

class Bytes final {
 public:
  Bytes(const Edited& edited, const std::vector<int>& degrees, double batch)
      : edited_(edited), degrees_(degrees), batch_(batch) {}

  // Elements that a rank sends in the step.
  double Moved() const {
    double moved = 0;
    for (const Step& step : edited_.derived.steps) {
      if (step.kind == StepKind::kMove)
        moved += Sent(step) * (step.when == When::kMicroBatch ? kMicroBatches : 1);
    }
    return moved;
  }

 private:
  double Sent(const Step& step) const {
    double ranks = 1;
    for (std::size_t a = 0; a < degrees_.size(); ++a)
      ranks *= step.group >> a & 1 ? degrees_[a] : 1;
    const double share = (ranks - 1) / ranks;
    switch (step.collective) {
      case Collective::kAllGather:
        return share * Local(step.target);
      case Collective::kReduceScatter:
      case Collective::kAllToAll:
        return share * Local(step.source);
      case Collective::kAllReduce:
        return 2 * share * Local(step.source);
      case Collective::kSlice:
      case Collective::kSendRecv:
      case Collective::kHostCopy:
        return 0;
    }
    return 0;
  }
  double Local(const Version& version) const {
    const Tensor& tensor = edited_.program.tensor(version.tensor);
    double elements = tensor.scale;
    for (const DimensionId dim : tensor.dims) {
      const Dimension& row = edited_.program.dimension(dim);
      elements *= row.kind == DimensionKind::kBatch ? batch_ : row.size;
    }
    for (std::size_t a = 0; a < degrees_.size(); ++a) {
      if (version.at.at(a).cut() || version.at.at(a).flat()) elements /= degrees_[a];
    }
    return elements;
  }

  const Edited& edited_;
  const std::vector<int>& degrees_;
  const double batch_;
};

struct Waste {
  int alternatives = 0;
  std::set<std::string> cheaper;
};

void FindWaste(const Choices& choices, bool experts, int tensor_kv, int tensor_rest, Waste& waste) {
  const Program program = ToyModel({.experts = experts, .layers = 2, .sizes = kRealSizes});
  const std::optional<Edited> edited = Apply(program, choices);
  ASSERT_TRUE(edited.has_value());
  std::vector<int> degrees;
  for (const Atom& atom : edited->mesh.atoms()) {
    degrees.push_back(atom.name == "tensor.kv_heads" ? tensor_kv
                      : atom.name == "tensor.rest"   ? tensor_rest
                                                     : 4);
  }
  const double batch = 16;  // of all replicas: one sequence each at most
  const double chosen = Bytes(*edited, degrees, batch).Moved();
  for (const Alternative& alternative : AlternativesOf(*edited)) {
    const std::optional<Edited> other = With(*edited, alternative);
    if (!other) continue;
    ++waste.alternatives;
    if (Bytes(*other, degrees, batch).Moved() >= chosen * (1 - 1e-9)) continue;
    waste.cheaper.insert(absl::StrCat(NameOf(choices),
                                      tensor_rest > 1 ? " more ranks than heads, " : " ",
                                      Describe(*edited, alternative)));
  }
}

// Gathering keys and values is the strategy's choice: with more ranks than key/value heads each
// rank's queries are so few that an all-to-all of everything (which is another strategy) sends 0.3
// % less.
const std::vector<std::string> kKnownWaste = {
    "{data, tensor+sequence, context gather} more ranks than heads, attention over context: b "
    "instead of s",
    "{data, tensor+sequence, context gather} more ranks than heads, attention over context: k "
    "instead of s",
};

TEST(WorkTest, NoOtherChoiceOfWorkMovesFewerBytes) {
  Waste waste;
  for (const auto& [kv, rest] : {std::pair(8, 1), std::pair(8, 2)}) {
    for (const Choices& choices : kDense) FindWaste(choices, false, kv, rest, waste);
    for (const Choices& choices : kExperts) FindWaste(choices, true, kv, rest, waste);
  }
  std::printf("work: %d alternatives priced, %zu cheaper\n", waste.alternatives,
              waste.cheaper.size());
  EXPECT_THAT(waste.cheaper, testing::UnorderedElementsAreArray(kKnownWaste));
}

}  // namespace
}  // namespace shardlab::oracle
