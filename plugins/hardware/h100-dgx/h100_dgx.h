#pragma once
// DGX H100: servers of eight H100 SXM (80 GB) joined by NVLink, each GPU with one 400 Gb/s
// InfiniBand port. An op is priced in one of two ways: the classroom's lump of FLOPs at peak x
// efficiency, or a roofline for real ops, whose matrix products lose what tiles, waves of tiles and
// a short inner dimension cost.
//
//   [hardware]
//   plugin = "h100-dgx"
//   nodes = 4

#include <string>
#include <utility>
#include <vector>

#include "api/hardware.h"
#include "api/roofline.h"

namespace shardlab::h100_dgx {

inline constexpr int kDevicesPerNode = 8;

// Data sheet: NVIDIA H100 SXM, dense rates without sparsity.
inline constexpr double kPeakFp8 = 1979e12;
inline constexpr double kPeakBf16 = 989e12;
inline constexpr double kPeakTf32 = 494.5e12;
inline constexpr double kPeakFp32 = 67e12;  // outside the tensor cores: element-wise arithmetic
inline constexpr double kMemoryBandwidth = 3.35e12;

// Share of the memory bandwidth that long streams reach: Calculon's H100 file has 3,072 GB/s x 0.90
// for 100 MB and more, which is 2.76 of 3.35 TB/s.
inline constexpr double kMemoryEfficiency = 0.825;
// Gap and ramp of one kernel in a full stream. Assumed; it stands for Calculon's lower rates below
// 100 MB too.
inline constexpr double kLaunchSeconds = 3e-6;

// Ceiling of a matrix product. The best of all shapes reaches 794.5 of 989 (bf16) and 1402.6 of
// 1979 (fp8) TFLOP/s (MAMF, ml-engineering book).
inline constexpr double kSustained = 0.83;
inline constexpr double kProductCeiling = kSustained * 794.5 / 989.0;
inline constexpr double kProductCeilingFp8 = kSustained * 1402.6 / 1979.0;
// cuBLAS' usual Hopper tile, and the processors of an H100 SXM (data sheet).
inline constexpr double kTileShort = 128, kTileLong = 256;
inline constexpr double kProcessors = 132;

// Fused attention, head dimension 128, in bf16 whatever the recipe (FlashAttention-3, arXiv
// 2407.08608, figures 5 and 6, cuDNN's bars): forward causal 315, 410, 484, 518, 529, 539 TFLOP/s
// and backward (not causal) 305, 408, 465, 499, 518, 516 at 512 to 16k tokens, read from a
// transcript of the bars. Both follow ceiling x s / (s + 300).
inline constexpr double kAttentionForward = 545e12;
inline constexpr double kAttentionBackward = 525e12;
// Kernels of Ampere's instructions: FlashAttention-2 beside it in the same figures.
inline constexpr double kAmpereAttention = 0.6;
inline constexpr double kAttentionHalfLength = 300;
// Half a wave of thread blocks is idle at the end; a block makes 128 x 128 elements of the output.
// Assumed.
inline constexpr double kAttentionBlock = 128.0 * 128.0;

class H100Dgx final : public Hardware {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Integer(
        {.name = "nodes", .description = "servers of eight GPUs", .minimum = 1, .maximum = 1 << 20},
        &nodes_);
    v.Integer({.name = "devices",
               .description = "GPUs, instead of nodes",
               .minimum = 1,
               .maximum = 1 << 23,
               .automatic = "8 x nodes"},
              &devices_);
    v.Amount(
        {.name = "memory",
         .description = "capacity line of one GPU",
         .minimum = 0,
         .automatic = "81559 MiB, what the driver shows; 80 GB where memory is nominal (textbook)"},
        Unit::kBytes, &memory_);
    v.Amount({.name = "overhead",
              .description = "memory outside the allocator: CUDA context, communication libraries",
              .minimum = 0,
              .automatic = "2 GiB; 0 where memory is nominal (textbook)"},
             Unit::kBytes, &overhead_);
    v.Number(
        {.name = "fragmentation",
         .description = "share of the allocated bytes that the allocator reserves and does not use",
         .minimum = 0,
         .maximum = 1,
         .automatic = "0.04; 0 where memory is nominal (textbook)"},
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
  }

  void Init(const InitContext& context) override {
    CheckSize(context);
    const bool nominal = context.Fact("hardware.nominal_memory", false);
    if (!context.is_given("memory")) memory_ = nominal ? 80e9 : 81559.0 * 1024 * 1024;
    if (!context.is_given("overhead")) overhead_ = nominal ? 0 : 2.0 * 1024 * 1024 * 1024;
    if (!context.is_given("fragmentation")) fragmentation_ = nominal ? 0 : 0.04;
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
    BuildMachine(context);
  }

  const Machine& machine() const override { return machine_; }

  Seconds OpTime(const OpShape& shape) const noexcept override { return roofline_.OpTime(shape); }
  void OpTimes(const OpShape* shapes, std::size_t count, double* seconds) const noexcept override {
    roofline_.OpTimes(shapes, count, seconds);
  }

  std::vector<Constant> Constants() const override {
    const std::string sheet = "NVIDIA H100 SXM data sheet, dense";
    const std::string fit = "fitted on 109 A100 PCIe shapes of SimuMax's table";
    const std::string attention =
        "FlashAttention-3, arXiv 2407.08608, figures 5 and 6 (cuDNN), head dimension 128";
    const std::string sized = "set in the scenario or by the accounting";
    return {
        {"peak", machine_.peak.value(), "FLOP/s", sheet},
        {"memory bandwidth", kMemoryBandwidth, "B/s", sheet},
        {"memory efficiency", kMemoryEfficiency, "",
         "Calculon, H100 system file: 3072 GB/s x 0.90 over 3.35 TB/s"},
        {"launch", kLaunchSeconds, "s", "assumed"},
        {"product ceiling", ProductCeiling(), "",
         "0.83 x MAMF (ml-engineering book, MAMF table); 0.83 fitted on dgxc "
         "v25.02 and lf rows of validation/"},
        {"wave share", kWaveShare, "", fit},
        {"inner dimension at half rate", kInnerHalf, "", fit},
        {"weight gradient factor", kWeightGradientFactor, "", fit},
        {"tile", kTileShort * kTileLong, "elements", "cuBLAS on Hopper, 128 x 256"},
        {"processors", kProcessors, "", sheet},
        {"attention forward", kAttentionForward, "FLOP/s", attention},
        {"attention backward", kAttentionBackward, "FLOP/s", attention},
        {"attention by kernels of Ampere", kAmpereAttention, "", attention + ": FlashAttention-2"},
        {"attention length at half rate", kAttentionHalfLength, "tokens",
         "fitted on the same figures"},
        {"attention block", kAttentionBlock, "elements", "assumed"},
        {"vector peak", kPeakFp32, "FLOP/s", sheet},
        {"efficiency", efficiency_, "", "assumed; classroom only"},
        {"efficiency half tokens", half_tokens_, "tokens", "assumed; classroom only"},
        {"memory", memory_, "B", sized + ": 80 GB, or 81559 MiB as nvidia-smi shows it"},
        {"outside allocator", overhead_, "B",
         sized + ": about 0.5 GiB of CUDA context and 0.5 GiB for each of three communicators "
                 "(NCCL issue 964 measures "
                 "544 to 688 MB)"},
        {"fragmentation", fragmentation_, "",
         sized + ": median of 36 published runs, reserved over allocated - 1"},
        {"NVLink", kNvlink, "B/s", "NVIDIA H100 data sheet: 900 GB/s both directions together"},
        {"port", kPort, "B/s", "DGX H100 data sheet: one 400 Gb/s port a GPU"},
        {"NVLink hop", kNvlinkHop, "s", "NCCL src/graph/tuning.cc, ring, LL"},
        {"network hop", kNetworkHop, "s", "NCCL src/graph/tuning.cc, ring, LL"},
        {"host memory", kHostMemory, "B", "DGX H100 data sheet: 2 TB a server, over eight GPUs"},
        {"host link", kHostLink, "B/s",
         "assumed: PCIe 5.0 x16, 63 GB/s a direction, of which large pinned copies reach 0.87"},
        {"host memory bandwidth", kHostStream, "B/s",
         "assumed: 16 channels of DDR5-4800 over eight GPUs, of which an optimizer reaches 0.46 "
         "as the CPU-Adam of ZeRO-Offload did (arXiv 2101.06840)"},
    };
  }

 private:
  static constexpr double kNvlink = 450e9, kPort = 50e9;
  static constexpr double kNvlinkHop = 0.6e-6, kNetworkHop = 2.7e-6;
  static constexpr double kHostMemory = 2e12 / kDevicesPerNode;
  static constexpr double kHostLink = 55e9, kHostStream = 35e9;

  void CheckSize(const InitContext& context) {
    bool by_devices = context.is_given("devices");
    // Of two that differ, what was said last, on the command line, holds.
    const bool devices_set = by_devices && context.place_of("devices").file == "--set";
    const bool nodes_set = context.is_given("nodes") && context.place_of("nodes").file == "--set";
    if (nodes_set && !devices_set) by_devices = false;
    if (by_devices && context.is_given("nodes") && nodes_set == devices_set &&
        devices_ != kDevicesPerNode * nodes_) {
      Diagnostic d;
      d.code = "hardware.size";
      d.message = "nodes = " + std::to_string(nodes_) +
                  " and devices = " + std::to_string(devices_) +
                  " contradict each other (a server has 8 GPUs)";
      d.place = context.place_of("devices");
      d.hint = "state one of them; nodes = " + std::to_string(nodes_) +
               " is devices = " + std::to_string(kDevicesPerNode * nodes_);
      d.other_places = {context.place_of("nodes")};
      context.diagnostics->Add(std::move(d));
    }
    if (!by_devices) devices_ = kDevicesPerNode * nodes_;
    nodes_ = (devices_ + kDevicesPerNode - 1) / kDevicesPerNode;
  }

  void BuildMachine(const InitContext& context) {
    machine_.name = "H100 SXM 80GB (DGX)";
    machine_.devices = devices_;
    machine_.memory = Bytes(memory_);
    machine_.outside_allocator = Bytes(overhead_);
    machine_.fragmentation = fragmentation_;
    machine_.host_memory = Bytes(kHostMemory);
    machine_.host_bandwidth = BytesPerSecond(kHostLink);
    machine_.host_memory_bandwidth = BytesPerSecond(kHostStream);
    machine_.peak = FlopsPerSecond(Peak());
    machine_.memory_bandwidth = BytesPerSecond(kMemoryBandwidth);
    machine_.tiers = {
        Tier{.name = "nvlink",
             .devices = kDevicesPerNode,
             .bandwidth = BytesPerSecond(kNvlink),
             .latency = Seconds(kNvlinkHop),
             .ports = 1},
        Tier{.name = "infiniband",
             .devices = devices_,
             .bandwidth = BytesPerSecond(kPort),
             .latency = Seconds(kNetworkHop),
             .ports = 1},
    };
    machine_.price_per_device_hour = price_;
    roofline_.Set(WithSoftware({.peak = Peak(),
                                .vector_peak = kPeakFp32,
                                .memory_bandwidth = kMemoryBandwidth,
                                .memory_efficiency = kMemoryEfficiency,
                                .launch = kLaunchSeconds,
                                .product_ceiling = ProductCeiling(),
                                .tile_short = kTileShort,
                                .tile_long = kTileLong,
                                .processors = kProcessors,
                                .attention_forward = kAttentionForward,
                                .attention_backward = kAttentionBackward,
                                .ampere_attention = kAmpereAttention,
                                .attention_half_length = kAttentionHalfLength,
                                .attention_block = kAttentionBlock,
                                .efficiency = efficiency_,
                                .half_tokens = half_tokens_},
                               context));
  }

  double Peak() const {
    switch (compute_) {
      case Dtype::kFp8:
      case Dtype::kInt8:
        return kPeakFp8;
      case Dtype::kTf32:
        return kPeakTf32;
      case Dtype::kFp32:
      case Dtype::kFp64:
        return kPeakFp32;
      default:
        return kPeakBf16;
    }
  }
  double ProductCeiling() const {
    return Peak() == kPeakFp8 ? kProductCeilingFp8 : kProductCeiling;
  }

  int nodes_ = 4;
  int devices_ = 0;
  double memory_ = 0, overhead_ = 0, fragmentation_ = 0;
  double efficiency_ = 0.5, half_tokens_ = 0, price_ = 0;
  Dtype compute_ = Dtype::kBf16;
  Roofline roofline_;
  Machine machine_;
};

}  // namespace shardlab::h100_dgx
