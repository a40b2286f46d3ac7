#include "core/rows_memory.h"

#include <algorithm>
#include <utility>

#include "core/derive.h"

namespace shardlab {
namespace {

// A few hundred kilobytes each.
constexpr std::size_t kMost = 48;

}  // namespace

// How many of its layers a class treats is the split's business, and no row's: classes that share
// their layers have been copied by now.
std::vector<LayerClass> RowsMemory::Classes(const Program& program) {
  std::vector<LayerClass> classes = program.classes;
  for (LayerClass& row : classes) {
    row.per_rank = 0;
    row.every = 1;
  }
  return classes;
}

bool RowsMemory::Same(const Rows& rows, const Program& program,
                      const std::vector<LayerClass>& classes, const Mesh& mesh) {
  // What is short and most often another comes first.
  return rows.dimensions == program.dimensions && rows.mesh == mesh && rows.classes == classes &&
         rows.tensors == program.tensors && rows.ops == program.ops;
}

RowsMemory::Rows RowsMemory::RowsOf(const Program& program, std::vector<LayerClass> classes,
                                    const Mesh& mesh) {
  return {program.dimensions, program.tensors, program.ops, std::move(classes), mesh};
}

template <class Made>
RowsMemory::Known<Made> RowsMemory::All(const Known<Made>& known) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return known;
}

template <class Made>
void RowsMemory::Remember(Made made, Known<Made>* known) {
  auto entry = std::make_shared<const Made>(std::move(made));
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<const Made>> all = **known;
  if (all.size() == kMost) all.erase(all.begin());
  all.push_back(std::move(entry));
  *known = std::make_shared<const std::vector<std::shared_ptr<const Made>>>(std::move(all));
}

Derived RowsMemory::DeriveOf(const Program& program, const Mesh& mesh) {
  std::vector<LayerClass> classes = Classes(program);
  const Known<OfRows> known = All(derived_);
  for (auto entry = known->rbegin(); entry != known->rend(); ++entry) {
    if (Same((*entry)->rows, program, classes, mesh)) return (*entry)->derived;
  }
  Derived derived = Derive(program, mesh);
  Remember(OfRows{RowsOf(program, std::move(classes), mesh), derived}, &derived_);
  return derived;
}

Form RowsMemory::FormOf(const Edited& edited, const Precision& precision,
                        const OptimizerStates& states, const AccountingRules& rules,
                        const std::shared_ptr<const Optimizer>& optimizer) {
  std::vector<LayerClass> classes = Classes(edited.program);
  const Known<OfEdited> known = All(forms_);
  for (auto at = known->rbegin(); at != known->rend(); ++at) {
    const OfEdited& entry = **at;
    if (entry.optimizer == optimizer && entry.precision == precision &&
        Same(entry.rows, edited.program, classes, edited.mesh) && entry.states == states &&
        entry.rules == rules && entry.derived == edited.derived)
      return entry.form;
  }
  Form form = CompileForm(edited, precision, states, rules, *optimizer);
  Remember(OfEdited{RowsOf(edited.program, std::move(classes), edited.mesh), edited.derived,
                    precision, states, rules, optimizer, form},
           &forms_);
  return form;
}

}  // namespace shardlab
