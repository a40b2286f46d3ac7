#pragma once
// What every part of compiling a Form writes with: masks, local sizes, products of them and blocks,
// each once, and prices of transfers. All of it is kept in the Form, so that parts share it.
// Internal to form.cpp and the parts beside it.
//
//   class FormMemory final : FormTables { ... form_.state.push_back({layer, account,
//     TensorBlock(w, w.home, bytes_an_element), ...}); };

#include <cstdint>
#include <utility>
#include <vector>

#include "core/form.h"

namespace shardlab {

// What a Form is compiled from; all outlive the compiling.
struct FormInput {
  const Edited& edited;
  const Precision& precision;
  const OptimizerStates& states;
  const AccountingRules& rules;
  const Optimizer& optimizer;
};

class FormTables {
 protected:
  FormTables(const FormInput& input, Form* form)
      : input_(input),
        edited_(input.edited),
        program_(input.edited.program),
        precision_(input.precision),
        rules_(input.rules),
        form_(*form) {}

  std::uint8_t Mask(AtomMask mask);
  std::uint8_t Local(DimensionId dim, AtomMask cut);
  std::uint16_t AddBlock(const Block& block);
  std::uint16_t Product(std::vector<std::uint8_t> locals);
  // A tensor in a placement; per_element in bytes.
  std::uint16_t TensorBlock(const Tensor& tensor, const Placement& at, double per_element);
  std::uint16_t PriceOf(TransferPrice price);

  // With the classes that hold them: a copy at the other end has a class of its own.
  std::vector<std::pair<TensorId, std::size_t>> Parameters() const;
  static bool IsCopy(const LayerClass& row);
  // Weights that are not where they are used.
  static bool Fetched(const Tensor& w) { return w.home.Flat() != 0 || w.home_on_host; }
  int Unit(const Tensor& w) const;  // layers whose weights are fetched as one
  // A weight of products, and not of a lookup.
  bool IsMatrix(const Tensor& w) const;
  static bool Has(const std::vector<std::uint8_t>& factors, std::size_t f);
  static Bucket BucketOf(Phase phase);
  double Width(DtypeSlot slot) const { return BytesOf(precision_, slot); }

  const FormInput input_;
  const Edited& edited_;
  const Program& program_;
  const Precision& precision_;
  const AccountingRules& rules_;
  Form& form_;
};

}  // namespace shardlab
