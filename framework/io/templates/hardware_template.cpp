#include "io/plugin_template_texts.h"

namespace shardlab {

const TemplateTexts kHardwareTemplate = {
    R"TEXT(// @NAME@: servers of eight devices, each op a roofline: arithmetic or memory.
//
//   [hardware]
//   plugin = "@NAME@"
//   nodes = 4

#include <algorithm>
#include <vector>

#include "api/hardware.h"

namespace {

using shardlab::Bytes;
using shardlab::BytesPerSecond;
using shardlab::FlopsPerSecond;
using shardlab::OpKind;
using shardlab::OpShape;
using shardlab::Seconds;
using shardlab::Unit;

class @CLASS@ final : public shardlab::Hardware {
 public:
  void Visit(shardlab::ParameterVisitor& v) override {
    v.Integer({.name = "nodes", .description = "servers of eight devices", .minimum = 1, .maximum = 1 << 20},
              &nodes_);
    v.Amount({.name = "memory", .description = "of one device", .minimum = 0}, Unit::kBytes, &memory_);
    v.Amount({.name = "peak", .description = "dense, in bf16", .minimum = 1}, Unit::kFlopsPerSecond, &peak_);
    v.Amount({.name = "bandwidth", .description = "of the memory", .minimum = 1}, Unit::kBytesPerSecond,
             &bandwidth_);
    v.Number({.name = "efficiency",
              .description = "share of peak and bandwidth that is reached",
              .minimum = 1e-6,
              .maximum = 1},
             &efficiency_);
  }

  void Init(const shardlab::InitContext&) override {
    machine_.name = "@NAME@";
    machine_.devices = 8 * nodes_;
    machine_.memory = Bytes(memory_);
    machine_.peak = FlopsPerSecond(peak_);
    machine_.memory_bandwidth = BytesPerSecond(bandwidth_);
    // Innermost first: the links inside a server, then one network port a device.
    machine_.tiers = {{.name = "server",
                       .devices = 8,
                       .bandwidth = BytesPerSecond(400e9),
                       .latency = Seconds(1e-6)},
                      {.name = "network",
                       .devices = 8 * nodes_,
                       .bandwidth = BytesPerSecond(50e9),
                       .latency = Seconds(3e-6)}};
  }

  const shardlab::Machine& machine() const override { return machine_; }

  // Called millions of times: arithmetic alone, and never less for more work.
  Seconds OpTime(const OpShape& shape) const noexcept override {
    if (shape.kind == OpKind::kLump) return Seconds(0);  // the classroom's FLOPs are rows of kind kWork
    const double arithmetic = shape.flops / (peak_ * efficiency_);
    const double memory = shape.bytes / (bandwidth_ * efficiency_);
    return Seconds(shape.kind == OpKind::kWork ? arithmetic : std::max(arithmetic, memory));
  }

  // Every number that an answer depends on, with its source.
  std::vector<shardlab::Constant> Constants() const override {
    return {{"peak", peak_, "FLOP/s", "assumed"},        {"memory bandwidth", bandwidth_, "B/s", "assumed"},
            {"efficiency", efficiency_, "", "assumed"},  {"memory", memory_, "B", "assumed"},
            {"server link", 400e9, "B/s", "assumed"},    {"network port", 50e9, "B/s", "assumed"},
            {"server latency", 1e-6, "s", "assumed"},    {"network latency", 3e-6, "s", "assumed"}};
  }

 private:
  int nodes_ = 1;
  double memory_ = 64e9;
  double peak_ = 500e12;
  double bandwidth_ = 2e12;
  double efficiency_ = 0.6;
  shardlab::Machine machine_;
};

}  // namespace

SHARDLAB_PLUGIN("@NAME@", @CLASS@, "servers of eight devices, each op a roofline")
)TEXT",
    "A server has eight devices. An op takes as long as its arithmetic or its memory traffic, "
    "whichever is\n"
    "longer.",
    "Seconds = max(FLOPs / peak, bytes / bandwidth) / efficiency; the classroom's compute:\n"
    "FLOPs / (peak x efficiency).",
    "One efficiency for every shape; no launch time.",
    R"TEXT(name = "an 8B model on @NAME@"
accounting = "textbook"

[model]
plugin = "llama"
preset = "llama3.1-8b"

[hardware]
plugin = "@NAME@"
nodes = 2

[training]
sequence_length = 4096
micro_batch_size = 1
global_batch_size = 16

[strategy.tensor]
degree = 8

[expect]
"hardware.devices" = 16
"memory.capacity_bytes" = 64000000000
)TEXT",
    "",
};

}  // namespace shardlab
