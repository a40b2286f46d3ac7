#include "core/place.h"

#include <algorithm>

#include "domain/derived.h"

namespace shardlab {
namespace {

constexpr int kNoFactor = -1;

bool Contains(const std::vector<std::uint8_t>& factors, int factor) {
  return std::find(factors.begin(), factors.end(), static_cast<std::uint8_t>(factor)) !=
         factors.end();
}

// The op's factor along which `layout` cuts a tensor with these dimensions, or kNoFactor.
int FactorOfCut(const Tensor& tensor, const std::vector<std::uint8_t>& factors, Layout layout) {
  if (!layout.cut()) return kNoFactor;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] == layout.dim()) return factors[i];
  }
  return kNoFactor;
}

class Rule {
 public:
  Rule(const Program& program, const Op& op) : program_(program), op_(op) {}

  int Choose(std::size_t atom) const {
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      const int cut = CutOf(i, atom);
      if (Input(i).role == TensorRole::kParameter && cut != kNoFactor) return cut;
    }
    if (op_.anchor >= 0) {
      const int cut = CutOf(static_cast<std::size_t>(op_.anchor), atom);
      if (cut != kNoFactor && !Contains(op_.whole, cut)) return cut;
    }
    const Tensor& output = program_.tensor(op_.output);
    const int wanted = FactorOfCut(output, op_.output_factors, output.use.at(atom));
    if (wanted != kNoFactor) return Contains(op_.whole, wanted) ? kNoFactor : wanted;
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      const int cut = CutOf(i, atom);
      if (cut != kNoFactor && !Contains(op_.whole, cut) && !Contains(op_.output_factors, cut) &&
          AllAgree(cut, atom)) {
        return cut;
      }
    }
    return kNoFactor;
  }

  // A sum may stay open through an op that is linear in it and not cut along this atom.
  bool PassesSum(std::size_t atom, int factor) const {
    const bool linear = op_.kind == OpKind::kProduct || op_.kind == OpKind::kSum;
    if (!linear || factor != kNoFactor) return false;
    return std::any_of(op_.inputs.begin(), op_.inputs.end(), [&](const Operand& o) {
      return program_.tensor(o.tensor).use.at(atom).sum();
    });
  }

 private:
  const Tensor& Input(std::size_t i) const { return program_.tensor(op_.inputs[i].tensor); }
  int CutOf(std::size_t i, std::size_t atom) const {
    return FactorOfCut(Input(i), op_.inputs[i].factors, Input(i).use.at(atom));
  }
  bool AllAgree(int factor, std::size_t atom) const {
    for (std::size_t j = 0; j < op_.inputs.size(); ++j) {
      const int other = CutOf(j, atom);
      if (Contains(op_.inputs[j].factors, factor) && other != factor && other != kNoFactor)
        return false;
    }
    return true;
  }

  const Program& program_;
  const Op& op_;
};

// The layout in which a tensor with these factors is needed (or made) when the op works along
// `factor`.
Layout Along(const Tensor& tensor, const std::vector<std::uint8_t>& factors, int factor,
             Layout otherwise) {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] == factor) return Layout::Cut(tensor.dims[i]);
  }
  return otherwise;
}

}  // namespace

void PlaceWork(Program& program) {
  for (Op& op : program.ops) {
    op.need.assign(op.inputs.size(), Placement());
    op.made = Placement();
    op.work.fill(kNoFactor);
    const Rule rule(program, op);
    for (std::size_t atom = 0; atom < kMaxAtoms; ++atom) {
      const int factor = rule.Choose(atom);
      if (rule.PassesSum(atom, factor)) {
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
          if (program.tensor(op.inputs[i].tensor).use.at(atom).sum())
            op.need[i].Set(atom, Layout::Sum());
        }
        op.made.Set(atom, Layout::Sum());
        continue;
      }
      if (factor == kNoFactor) continue;
      op.work[atom] = static_cast<std::int8_t>(factor);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        op.need[i].Set(atom, Along(program.tensor(op.inputs[i].tensor), op.inputs[i].factors,
                                   factor, Layout::Whole()));
      }
      const Layout reduced = op.kind == OpKind::kMaxReduce ? Layout::Max() : Layout::Sum();
      op.made.Set(atom, Along(program.tensor(op.output), op.output_factors, factor, reduced));
    }
  }
}

AtomMask PartialGradient(const Program& program, TensorId parameter) {
  AtomMask mask = 0;
  for (const Op& op : program.ops) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i].tensor == parameter)
        mask = static_cast<AtomMask>(mask | Produced(op, i).Partial());
    }
  }
  return mask;
}

}  // namespace shardlab
