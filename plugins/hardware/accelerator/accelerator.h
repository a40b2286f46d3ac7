#pragma once
// A machine that is data: a preset of this folder or a file of the user's says what one device can
// do and how devices are joined; the roofline of api/roofline.h prices its ops.
//
//   [hardware]
//   plugin = "accelerator"
//   preset = "gb200-nvl72"            # or file = "machine.toml", beside the scenario
//   devices = 144

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/hardware.h"
#include "api/roofline.h"
#include "machine_file.h"

namespace shardlab::accelerator {

class Accelerator final : public Hardware {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Text({.name = "preset", .description = "a machine of this folder"}, &preset_);
    v.Text({.name = "file", .description = "a machine file of your own, beside the scenario"},
           &file_);
    v.Integer({.name = "nodes",
               .description = "domains of the innermost tier: servers, racks",
               .minimum = 1,
               .maximum = 1 << 20},
              &nodes_);
    v.Integer({.name = "devices",
               .description = "devices, instead of nodes",
               .minimum = 0,
               .maximum = 1 << 23,
               .automatic = "those of the nodes"},
              &devices_);
    v.Amount({.name = "memory",
              .description = "capacity line of one device",
              .minimum = 0,
              .automatic = "what the driver shows; nominal where memory is nominal (textbook)"},
             Unit::kBytes, &memory_);
    v.Amount({.name = "overhead",
              .description = "memory outside the allocator: context, communication libraries",
              .minimum = 0,
              .automatic = "the machine's; 0 where memory is nominal (textbook)"},
             Unit::kBytes, &overhead_);
    v.Number(
        {.name = "fragmentation",
         .description = "share of the allocated bytes that the allocator reserves and does not use",
         .minimum = 0,
         .maximum = 1,
         .automatic = "the machine's; 0 where memory is nominal (textbook)"},
        &fragmentation_);
    v.Number(
        {.name = "efficiency",
         .description = "share of the peak that the classroom's products reach (textbook only)",
         .minimum = 1e-6,
         .maximum = 1},
        &efficiency_);
    v.Number({.name = "efficiency_half_tokens",
              .description =
                  "tokens of a micro-batch at which the efficiency is half; 0 = the same for any",
              .minimum = 0},
             &half_tokens_);
    v.Number(
        {.name = "price_per_device_hour", .description = "for the objective cost", .minimum = 0},
        &price_);
    v.Raw({.name = "tiers",
           .description = "list of {name, devices, bandwidth, latency, ports, oversubscription}, "
                          "innermost first",
           .automatic = "the machine's"},
          &tiers_);
  }

  void Init(const InitContext& context) override {
    if (!ReadMachine(context)) return;
    if (tiers_.kind != Value::kNone) {
      own_tiers_ = true;
      if (!ReadTiers(tiers_, context, &file_of_.tiers)) return;
    }
    CheckSize(context);
    const bool nominal = context.Fact("hardware.nominal_memory", false);
    if (!context.is_given("memory")) memory_ = nominal ? file_of_.memory : file_of_.usable_memory;
    if (!context.is_given("overhead")) overhead_ = nominal ? 0 : file_of_.overhead;
    if (!context.is_given("fragmentation")) fragmentation_ = nominal ? 0 : file_of_.fragmentation;
    if (!nominal) {
      for (const char* name : {"efficiency", "efficiency_half_tokens"}) {
        if (!context.is_given(name)) continue;
        context.diagnostics->Warning(
            "hardware.ignored", context.place_of(name),
            std::string(name) + " is ignored (this accounting prices each op by its shape)",
            "remove it, or use accounting = \"textbook\"");
      }
    }
    if (context.precision != nullptr) compute_ = context.precision->compute;
    if (Peak() == 0) {
      context.diagnostics->Error("hardware.dtype",
                                 context.place_of(file_.empty() ? "preset" : "file"),
                                 file_of_.machine + " does not compute in " + Name(compute_),
                                 "choose another precision recipe, or a machine with peak_fp8");
      return;
    }
    BuildMachine(context);
  }

  const Machine& machine() const override { return machine_; }
  Seconds OpTime(const OpShape& shape) const noexcept override { return roofline_.OpTime(shape); }
  void OpTimes(const OpShape* shapes, std::size_t count, double* seconds) const noexcept override {
    roofline_.OpTimes(shapes, count, seconds);
  }

  std::vector<Constant> Constants() const override {
    std::vector<Constant> all = file_of_.constants;
    const std::string fit = "fitted on 109 A100 PCIe shapes of SimuMax's table";
    all.push_back({"peak", machine_.peak.value(), "FLOP/s", "of the compute dtype, see above"});
    all.push_back(
        {"product ceiling", Ceiling(), "", "0.953 x best product over peak; the factor as " + fit});
    all.push_back({"wave share", kWaveShare, "", fit});
    all.push_back({"inner dimension at half rate", kInnerHalf, "", fit});
    all.push_back({"weight gradient factor", kWeightGradientFactor, "", fit});
    all.push_back({"attention block", kBlock, "elements", "assumed"});
    all.push_back({"efficiency", efficiency_, "", "assumed; classroom only"});
    all.push_back({"efficiency half tokens", half_tokens_, "tokens", "assumed; classroom only"});
    const std::string sized = "set in the scenario, or as the machine and the accounting say";
    all.push_back({"memory of a device", memory_, "B", sized});
    all.push_back({"outside allocator", overhead_, "B", sized});
    all.push_back({"allocator's share", fragmentation_, "", sized});
    for (const TierLine& tier : file_of_.tiers) {
      const std::string source = own_tiers_            ? "set in the scenario"
                                 : tier.source.empty() ? "machine file, no source given"
                                                       : tier.source;
      all.push_back({tier.name, tier.bandwidth, "B/s", source});
      all.push_back({tier.name + " hop", tier.latency, "s", source});
      if (tier.oversubscription > 1)
        all.push_back({tier.name + " oversubscription", tier.oversubscription, "", source});
    }
    return all;
  }

 private:
  static constexpr double kBlock = 128.0 * 128.0;

  std::vector<std::string> PresetNames(const InitContext& context) const {
    std::vector<std::string> names;
    for (const std::string& file : context.list_files("presets")) {
      if (file.size() > 5 && file.substr(file.size() - 5) == ".toml")
        names.push_back(file.substr(0, file.size() - 5));
    }
    return names;
  }

  bool ReadMachine(const InitContext& context) {
    if (!file_.empty()) {
      if (context.is_given("preset") && !preset_.empty()) {
        Diagnostic d;
        d.code = "hardware.machine";
        d.message = "preset and file both name a machine";
        d.place = context.place_of("file");
        d.hint = "keep one of them";
        d.other_places = {context.place_of("preset")};
        context.diagnostics->Add(std::move(d));
        return false;
      }
      preset_.clear();
      return file_of_.Read(context.read_user_toml(file_), context);
    }
    const std::vector<std::string> names = PresetNames(context);
    if (std::find(names.begin(), names.end(), preset_) == names.end()) {
      const std::string near = Nearest(preset_, names);
      context.diagnostics->Error(
          "hardware.preset", context.place_of("preset"), "there is no preset \"" + preset_ + "\"",
          (near.empty() ? "the" : "did you mean \"" + near + "\"? The") + " presets are " +
              Enumerate(names) + "; or write file = \"machine.toml\"");
      return false;
    }
    return file_of_.Read(context.read_toml("presets/" + preset_ + ".toml"), context);
  }

  void CheckSize(const InitContext& context) {
    const int inner = file_of_.tiers[0].devices;
    const bool by_devices = context.is_given("devices") && devices_ > 0;
    if (inner == 0) {  // one tier that holds everything
      if (!by_devices) devices_ = nodes_;
      return;
    }
    const long long of_nodes = static_cast<long long>(inner) * nodes_;
    if (!by_devices && of_nodes > (1 << 23)) {
      context.diagnostics->Error("hardware.size", context.place_of("nodes"),
                                 std::to_string(nodes_) + " nodes of " + std::to_string(inner) +
                                     " devices are more than can be counted",
                                 "at most " + std::to_string((1 << 23) / inner) + " nodes");
      devices_ = inner;
      return;
    }
    if (by_devices && context.is_given("nodes") && devices_ != of_nodes) {
      Diagnostic d;
      d.code = "hardware.size";
      d.message = "nodes = " + std::to_string(nodes_) +
                  " and devices = " + std::to_string(devices_) + " contradict each other (a " +
                  file_of_.tiers[0].name + " domain has " + std::to_string(inner) + " devices)";
      d.place = context.place_of("devices");
      d.hint = "state one of them; nodes = " + std::to_string(nodes_) +
               " is devices = " + std::to_string(of_nodes);
      d.other_places = {context.place_of("nodes")};
      context.diagnostics->Add(std::move(d));
    }
    if (!by_devices) devices_ = static_cast<int>(of_nodes);
    nodes_ = (devices_ + inner - 1) / inner;
  }

  void BuildMachine(const InitContext& context) {
    machine_.name = file_of_.machine;
    machine_.devices = devices_;
    machine_.memory = Bytes(memory_);
    machine_.outside_allocator = Bytes(overhead_);
    machine_.fragmentation = fragmentation_;
    machine_.host_memory = Bytes(file_of_.host_memory);
    machine_.host_bandwidth = BytesPerSecond(file_of_.host_bandwidth);
    machine_.host_memory_bandwidth = BytesPerSecond(file_of_.host_memory_bandwidth);
    machine_.peak = FlopsPerSecond(Peak());
    machine_.memory_bandwidth = BytesPerSecond(file_of_.memory_bandwidth);
    machine_.price_per_device_hour = price_;
    int inner = 1;
    for (const TierLine& line : file_of_.tiers) {
      const bool last = &line == &file_of_.tiers.back();
      Tier tier;
      tier.name = line.name;
      // The last tier holds all, and no tier less than the one before it.
      tier.devices = std::max(
          inner, last || line.devices == 0 ? std::max(devices_, line.devices) : line.devices);
      // An oversubscribed tier is priced as if all devices used it at once.
      tier.bandwidth = BytesPerSecond(line.bandwidth / line.oversubscription);
      tier.latency = Seconds(line.latency);
      tier.ports = line.ports;
      inner = tier.devices;
      machine_.tiers.push_back(std::move(tier));
    }
    RooflineDevice device;
    device.peak = Peak();
    device.vector_peak = std::min(file_of_.peak_fp32, Peak());
    device.memory_bandwidth = file_of_.memory_bandwidth;
    device.memory_efficiency = file_of_.memory_efficiency;
    device.launch = file_of_.launch;
    device.product_ceiling = Ceiling();
    device.tile_short = file_of_.tile_short;
    device.tile_long = file_of_.tile_long;
    device.processors = file_of_.processors;
    device.attention_forward = std::min(file_of_.attention_forward, Peak());
    device.attention_backward = std::min(file_of_.attention_backward, Peak());
    device.attention_half_length = file_of_.attention_half_length;
    device.ampere_attention = file_of_.ampere_attention;
    device.attention_block = kBlock;
    device.efficiency = efficiency_;
    device.half_tokens = half_tokens_;
    roofline_.Set(WithSoftware(device, context));
  }

  bool Narrow() const { return compute_ == Dtype::kFp8 || compute_ == Dtype::kInt8; }
  double Peak() const {
    switch (compute_) {
      case Dtype::kFp8:
      case Dtype::kInt8:
        return file_of_.peak_fp8;
      case Dtype::kTf32:
        return file_of_.peak_tf32;
      case Dtype::kFp32:
      case Dtype::kFp64:
        return file_of_.peak_fp32;
      default:
        return file_of_.peak_bf16;
    }
  }
  double Ceiling() const {
    return file_of_.sustained * (Narrow() ? file_of_.best_product_fp8 / file_of_.peak_fp8
                                          : file_of_.best_product / file_of_.peak_bf16);
  }

  std::string preset_ = "h100-sxm", file_;
  int nodes_ = 4;
  int devices_ = 0;
  double memory_ = 0, overhead_ = 0, fragmentation_ = 0;
  double efficiency_ = 0.5, half_tokens_ = 0, price_ = 0;
  Value tiers_;
  bool own_tiers_ = false;
  MachineFile file_of_;
  Dtype compute_ = Dtype::kBf16;
  Roofline roofline_;
  Machine machine_;
};

}  // namespace shardlab::accelerator
