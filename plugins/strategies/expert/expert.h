#pragma once
// Expert parallelism (Lepikhin et al. 2020, arXiv 2006.16668): each rank holds some of the experts
// and tokens travel to theirs and back. Its ranks are those of the other axes: the tensor ranks
// that do not share an expert, then those of context and data parallelism (parallel folding: Liu et
// al. 2025, arXiv 2504.14960).
//
//   [strategy.expert]
//   degree = 8

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "api/strategy.h"

namespace shardlab::expert {

class Expert final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Integer({"degree", "ranks over which the experts are spread", 1, 1 << 16}, &degree_);
    v.Integer({"tensor_degree", "neighbouring tensor ranks that share each expert", 1, 1 << 16},
              &tensor_degree_);
    v.Number({"capacity_factor",
              "tokens of an expert over the mean, to which it is padded and beyond which they are "
              "dropped",
              1,
              64,
              {},
              "nothing is padded or dropped"},
             &capacity_factor_);
    v.Number({"imbalance",
              "tokens of the busiest rank over the mean, without a capacity",
              1,
              64,
              {},
              {},
              /*assumption=*/true},
             &imbalance_);
    v.Text({"dispatch",
            "how a token is sent: to each of its experts, or once to each server, where it is "
            "passed on",
            0,
            0,
            {"each-expert", "each-server"}},
           &dispatch_);
    v.Integer({"servers_per_token",
               "servers that a token's experts are on, at most: routing by "
               "groups; with dispatch = \"each-server\"",
               1,
               1 << 16,
               {},
               "any number"},
              &servers_per_token_);
  }

  void Init(const InitContext& context) override {
    if (capacity_factor_ > 0 && imbalance_ > 1) {
      context.diagnostics->Error("expert.imbalance", context.place_of("imbalance"),
                                 "with a capacity_factor every expert works on that many tokens, "
                                 "whatever the imbalance",
                                 "leave out imbalance or capacity_factor");
    }
    if (servers_per_token_ > 0 && dispatch_ != "each-server") {
      context.diagnostics->Error("expert.servers_per_token", context.place_of("servers_per_token"),
                                 "a token that is sent to each of its experts by itself crosses as "
                                 "often, however few servers they are on",
                                 "add dispatch = \"each-server\", or leave servers_per_token out");
    }
  }

  void Apply(Editor& edit) const override {
    edit.PlanFact("expert_tensor", Value::Integer(tensor_degree_));
    Load(edit);
    if (degree_ > 1 && !edit.program().FindDimension("expert").valid()) {
      edit.Warn("degree", "the model has no experts: the degree changes nothing",
                "leave out this table");
    }
    const std::set<TensorId> weights = ExpertWeights(edit.program());
    const TensorFilter spread = [weights](const TensorView& t) {
      return IsRouted(t) || weights.count(t.id()) > 0;
    };
    AxisPart axis;
    if (degree_ > 1 || tensor_degree_ > 1) {
      AxisSpec spec;
      spec.name = "expert";
      spec.role = AxisRole::kExpert;
      spec.degree = degree_;
      // All tensor ranks but those that share an expert.
      spec.spans = {AxisRole::kTensor};
      spec.borrow_from = {AxisRole::kContext, AxisRole::kData};
      axis = edit.Axis(spec);
      edit.Shard(axis, "expert", spread);
      edit.Require(axis, {"expert"}, "experts");
      if (dispatch_ == "each-server")
        edit.SendOnce(
            {IsRouted, Density(edit.program()) * Experts(edit.program()), servers_per_token_});
    }
    if (tensor_degree_ > 1) {
      AxisSpec spec;
      spec.name = "expert_tensor";
      spec.role = AxisRole::kTensor;
      spec.parameter = "tensor_degree";
      spec.degree = tensor_degree_;
      spec.borrow_from = {AxisRole::kTensor};
      const AxisPart slices = edit.Axis(spec);
      edit.Shard(slices, "expert_ffn", spread);
      edit.Require(slices, {"expert_ffn"}, "units of an expert");
    }
    edit.PlanDegree("expert_data", {AxesOf(AxisRole::kData), AxesOf(AxisRole::kContext)},
                    axis.axis.empty() ? std::vector<AxisPart>{} : std::vector<AxisPart>{axis});
    if (degree_ > 1) {
      edit.RequireCut(
          {AxisRole::kTensor, "sequence",
           [](const TensorView& t) { return t.role() == TensorRole::kStream && t.Has("expert"); },
           "with tensor parallelism the ranks must have different tokens to send to "
           "the experts",
           "set sequence_parallel = true"});
    }
  }

 private:
  // What works on routed tokens, and makes such. A router has a dimension of experts too.
  static std::set<TensorId> ExpertWeights(const Program& program) {
    const DimensionId expert = program.FindDimension("expert");
    std::set<TensorId> weights;
    for (const Op& op : program.ops) {
      if (program.tensor(op.output).role != TensorRole::kRouted) continue;
      for (const Operand& operand : op.inputs) {
        const Tensor& input = program.tensor(operand.tensor);
        if (input.role == TensorRole::kParameter && expert.valid() && input.Has(expert))
          weights.insert(operand.tensor);
      }
    }
    return weights;
  }
  static bool IsRouted(const TensorView& t) {
    return t.role() == TensorRole::kRouted && t.Has("expert");
  }

  // Of the busiest rank, on which the others wait. No expert can have more than all tokens, and of
  // one rank none is busier.
  void Load(Editor& edit) const {
    const double load = capacity_factor_ > 0 ? capacity_factor_ : degree_ > 1 ? imbalance_ : 1;
    if (load == 1) return;
    edit.Scale(IsRouted, std::min(load, 1 / Density(edit.program())));
  }

  // Of the experts those that work on a token.
  static double Density(const Program& program) {
    double density = 1;
    for (const Tensor& t : program.tensors) {
      if (t.role == TensorRole::kRouted) density = std::min(density, t.scale);
    }
    return density;
  }
  static double Experts(const Program& program) {
    const DimensionId expert = program.FindDimension("expert");
    return expert.valid() ? program.dimension(expert).size : 0;
  }

  int degree_ = 1;
  int tensor_degree_ = 1;
  double capacity_factor_ = 0;
  double imbalance_ = 1;
  std::string dispatch_ = "each-expert";
  int servers_per_token_ = 0;
};

}  // namespace shardlab::expert
