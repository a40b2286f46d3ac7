#pragma once
// Data parallelism: every rank of the axis runs the whole model on its own sequences, and gradients
// are summed.
//
//   [strategy.data]
//   degree = 4            # left out: what the other axes leave of the machine

#include <string>

#include "api/strategy.h"

namespace shardlab::data {

class Data final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Integer({"degree",
               "replicas; checked against what the other axes leave of the machine",
               1,
               1 << 20,
               {},
               "what is left of the machine"},
              &degree_);
    v.Text({"overlap",
            "what the gradient reduction hides behind: \"full\" the last backward pass, \"none\" "
            "nothing, \"ignore\" "
            "not counted in the step",
            0,
            0,
            {"full", "none", "ignore"},
            "by the accounting",
            /*assumption=*/true},
           &overlap_);
  }

  void Apply(Editor& edit) const override {
    AxisSpec spec;
    spec.name = "data";
    spec.role = AxisRole::kData;
    spec.degree = degree_;
    const AxisPart axis = edit.Axis(spec);
    // Fill, not shard: ranks that another strategy has borrowed for something else keep that cut.
    edit.Fill(axis, "batch", [](const TensorView&) { return true; });
    const HideBehind behind = overlap_ == "full"     ? HideBehind::kLastBackward
                              : overlap_ == "ignore" ? HideBehind::kIgnored
                                                     : HideBehind::kNothing;
    edit.Hide({[](const TransferView& t) { return t.parameter && t.role == AxisRole::kData; },
               behind, 0, false});
  }

 private:
  int degree_ = 0;
  std::string overlap_ = "none";
};

}  // namespace shardlab::data
