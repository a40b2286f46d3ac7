#pragma once
// What the compositions of a search have in common: rows that differ only in how many layers are
// treated in which way derive to the same steps, and compile to the same form. Each is made once.
// For all threads of a search; what has been made is found by comparing all that it is made of.
//
//   RowsMemory memory;
//   Derived derived = memory.DeriveOf(program, mesh);           // as Derive
//   Form form = memory.FormOf(edited, precision, states, rules, optimizer);  // as CompileForm
//
// It holds the last few dozen; a search goes through groups that are alike one after another.

#include <memory>
#include <mutex>
#include <vector>

#include "core/form.h"

namespace shardlab {

class RowsMemory final {
 public:
  Derived DeriveOf(const Program& program, const Mesh& mesh);
  // Optimizers are told apart by their address.
  Form FormOf(const Edited& edited, const Precision& precision, const OptimizerStates& states,
              const AccountingRules& rules, const std::shared_ptr<const Optimizer>& optimizer);

 private:
  struct Rows {
    std::vector<Dimension> dimensions;
    std::vector<Tensor> tensors;
    std::vector<Op> ops;
    std::vector<LayerClass> classes;  // without how many layers of a rank they treat
    Mesh mesh;
    friend bool operator==(const Rows&, const Rows&) = default;
  };
  struct OfRows {
    Rows rows;
    Derived derived;
  };
  struct OfEdited {
    Rows rows;
    Derived derived;  // as the strategies have edited it
    Precision precision;
    OptimizerStates states;
    AccountingRules rules;
    std::shared_ptr<const Optimizer> optimizer;
    Form form;
  };
  // Changed as a whole: who looks something up holds one of them, and no lock.
  template <class Made>
  using Known = std::shared_ptr<const std::vector<std::shared_ptr<const Made>>>;

  static std::vector<LayerClass> Classes(const Program& program);
  static bool Same(const Rows& rows, const Program& program, const std::vector<LayerClass>& classes,
                   const Mesh& mesh);
  static Rows RowsOf(const Program& program, std::vector<LayerClass> classes, const Mesh& mesh);
  template <class Made>
  Known<Made> All(const Known<Made>& known);
  template <class Made>
  void Remember(Made made, Known<Made>* known);

  std::mutex mutex_;
  Known<OfRows> derived_ = std::make_shared<Known<OfRows>::element_type>();
  Known<OfEdited> forms_ = std::make_shared<Known<OfEdited>::element_type>();
};

}  // namespace shardlab
