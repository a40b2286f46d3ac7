#pragma once
// Activation checkpointing (Chen et al. 2016, arXiv 1604.06174): a block keeps its input alone and
// replays its forward pass inside the backward pass; K blocks may share one kept input. Selective
// (Korthikanti et al. 2022, arXiv 2205.05198, section 5): only some ops are replayed, by need.
//
//   [strategy.checkpointing]
//   mode = "full"
//   segment = 2

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/strategy.h"

namespace shardlab::checkpointing {

class Checkpointing final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Text({"mode", "what is replayed in the backward pass", 0, 0, {"none", "full", "selective"}},
           &mode_);
    v.Integer(
        {"segment", "full: layers that share one kept input and are replayed together", 1, 4096},
        &segment_);
    v.Integer({"stride", "full: of so many layers the first alone is replayed", 1, 4096}, &stride_);
    v.IntegerOr({"layers", "full: so many layers of each pipeline rank are replayed", 1, 100000},
                "all", &layers_);
    v.Raw({"modules",
           "selective: which ops are not kept but replayed, by their names or kinds",
           0,
           0,
           {},
           "attention"},
          &modules_);
  }

  void Init(const InitContext& context) override {
    if (mode_ == "none" && context.is_given("segment") && segment_ != 1) {
      context.diagnostics->Error("checkpointing.segment", context.place_of("segment"),
                                 "segment has no meaning without recomputation (mode is \"none\")",
                                 "set mode = \"full\" or leave segment out");
    }
    CheckShares(context);
    ReadModules(context);
  }

  void Apply(Editor& edit) const override {
    if (mode_ == "none") return;
    Value recompute;
    recompute.kind = Value::kTable;
    recompute.table.emplace_back("mode", Value::Text(mode_));
    recompute.table.emplace_back("segment", Value::Integer(segment_));
    recompute.table.emplace_back("stride", Value::Integer(stride_));
    if (layers_ > 0) recompute.table.emplace_back("layers", Value::Integer(layers_));
    Value modules;
    modules.kind = Value::kArray;
    if (mode_ == "selective") {
      for (const std::string& name : names_) modules.array.push_back(Value::Text(name));
    }
    recompute.table.emplace_back("modules", std::move(modules));
    edit.PlanFact("recompute", std::move(recompute));
    if (mode_ == "selective") return Selective(edit);
    RecomputeEdit all;
    all.which = [](const OpView& op) { return op.InBlock(); };
    all.whole_block = true;
    all.segment = segment_;
    all.every = stride_;
    all.per_rank = layers_;
    if ((stride_ > 1 || layers_ > 0) && !edit.Fact("checkpointing.some_layers", true)) {
      edit.Refuse(stride_ > 1 ? "stride" : "layers", "this accounting replays all layers or none",
                  "leave stride and layers out, or choose another accounting");
      return;
    }
    edit.Recompute(all);
  }

 private:
  // Which layers are replayed is said in one way, and only where whole layers are.
  void CheckShares(const InitContext& context) const {
    const auto error = [&](const char* key, const std::string& message, const std::string& hint) {
      context.diagnostics->Error(std::string("checkpointing.") + key, context.place_of(key),
                                 message, hint);
    };
    const std::pair<const char*, bool> given[] = {{"stride", stride_ > 1}, {"layers", layers_ > 0}};
    for (const auto& [key, set] : given) {
      const std::string name = key;
      if (!set) continue;
      if (mode_ != "full") {
        error(key, name + " chooses layers for mode \"full\" (mode is \"" + mode_ + "\")",
              "set mode = \"full\" or leave " + name + " out");
      } else if (segment_ > 1) {
        error(key,
              name + " does not go with segment: beside a replayed layer is one that keeps all",
              "leave out " + name + " or segment");
      }
    }
    if (mode_ == "full" && stride_ > 1 && layers_ > 0) {
      error("layers", "stride and layers both say which layers are replayed",
            "leave one of them out");
    }
  }

  void ReadModules(const InitContext& context) {
    if (mode_ != "selective" && context.is_given("modules")) {
      context.diagnostics->Error("checkpointing.modules", context.place_of("modules"),
                                 "modules are for mode \"selective\" alone",
                                 "set mode = \"selective\" or leave modules out");
    }
    if (!context.is_given("modules")) return;
    names_.clear();
    for (const Value& item : modules_.array) {
      if (item.kind == Value::kText) names_.push_back(item.text);
    }
    if (names_.empty() || names_.size() != modules_.array.size()) {
      context.diagnostics->Error("checkpointing.modules", context.place_of("modules"),
                                 "modules must be a list of names of ops or of their kinds",
                                 "write modules = [\"attention\"]");
    }
  }

  static bool Is(const Op& op, const std::string& module) {
    return op.name == module || Name(op.kind) == module;
  }

  void Selective(Editor& edit) const {
    if (!edit.Fact("checkpointing.by_op", true)) {
      edit.Refuse("mode", "this accounting knows blocks and no ops: it cannot replay some of them",
                  "set mode = \"full\", or choose another accounting");
      return;
    }
    std::set<std::string> there;
    for (const Op& op : edit.program().ops) {
      if (!edit.program().layer_class(op.layer_class).block) continue;
      there.insert(op.name);
      there.insert(Name(op.kind));
    }
    for (const std::string& name : names_) {
      if (there.count(name) > 0) continue;
      std::string all;
      for (const std::string& one : there) all += (all.empty() ? "" : ", ") + one;
      edit.Refuse("modules", "no op of a block is \"" + name + "\"", "there are " + all);
      return;
    }
    std::set<std::string> ops;
    for (const Op& op : edit.program().ops) {
      for (const std::string& name : names_) {
        if (Is(op, name)) ops.insert(op.name);
      }
    }
    RecomputeEdit some;
    some.which = [ops](const OpView& op) { return op.InBlock() && ops.count(op.name()) > 0; };
    edit.Recompute(some);
  }

  std::string mode_ = "none";
  Value modules_;
  std::vector<std::string> names_ = {"attention"};
  int segment_ = 1, stride_ = 1;
  int layers_ = 0;  // of a pipeline rank; 0 = all
};

}  // namespace shardlab::checkpointing
