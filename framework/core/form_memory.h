#pragma once
// Rows of memory: where weights, gradients and optimizer state lie, what is kept for the backward
// pass, and what stands gathered between two ops. Internal to form.cpp.

#include "core/form_tables.h"

namespace shardlab {

class FormMemory final : FormTables {
 public:
  FormMemory(const FormInput& input, Form* form) : FormTables(input, form) {}

  void States();                      // Form::state
  void AddSaved(const Saved& saved);  // Form::saved
  void Buffers();                     // Form::buffers
  // Bytes of optimizer state of one parameter, where all have the same; else 0.
  double StateWidth() const;

 private:
  double StateBytes(std::int16_t state) const;
  void Spare(const Tensor& w, std::uint8_t layer, TensorId id);
  bool IsOfRouted(TensorId id) const;
  static bool HoldsSpares(const AccountingRules& rules);
  void Unsharded(const Tensor& w, std::uint8_t layer, TensorId id);
  AtomMask ApartFrom(const Saved& saved) const;
  bool IsSaved(const Version& version) const;
  void AddBuffer(const BufferRow& row);
};

}  // namespace shardlab
