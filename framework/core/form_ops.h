#pragma once
// Rows of compute: each pass of each op with its price, casts to a narrower dtype, and what an
// optimizer does with whole matrices. Internal to form.cpp.

#include <set>
#include <utility>
#include <vector>

#include "core/form_tables.h"

namespace shardlab {

class FormOps final : FormTables {
 public:
  FormOps(const FormInput& input, Form* form);

  void AddForward(const Step& step);
  void AddGradient(const Step& step);
  void Updates();  // of whole matrices, with their traffic, and of copies in a narrower dtype

 private:
  std::uint8_t FactorLocal(const Op& op, std::size_t f);
  void AddBytes(OpPrice& price, TensorId id, const Placement& at);
  void AddScores(OpPrice& price, const Op& op);
  void Shape(OpPrice& price, const Op& op, int result);
  OpPrice NewPrice(const Op& op, Phase phase) const;
  bool Narrows(const Op& op) const;
  bool MadeByNorm(TensorId id) const;
  void AddCast(const Op& op, OpId id, Phase phase, TensorId tensor, const Placement& at);
  void CastOperands(const Op& op, OpId id, Phase phase);
  void AddOp(const Op& op, OpId id, const OpPrice& price, bool cast = false);
  double Density(const Op& op) const;
  static double CastBytes(const Precision& precision);
  void MoveMatrix(const Tensor& w, TensorId id, std::size_t layer);
  void CastWeight(const Tensor& w, TensorId id, std::size_t layer);

  const double cast_bytes_;  // of each element that products in a narrower dtype multiply
  std::set<std::pair<Version, Phase>> cast_;
};

}  // namespace shardlab
