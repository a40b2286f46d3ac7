#pragma once
// A machine as a TOML file says it: one device, its tiers innermost first, and where each number is
// from. What a file leaves out has a default that is said to be assumed.
//
//   MachineFile machine;
//   if (machine.Read(table, context)) use(machine.memory, machine.tiers);

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/hardware.h"
#include "api/roofline.h"
#include "base/text.h"

namespace shardlab::accelerator {

// A tier as written; devices = 0: all of the machine.
struct TierLine {
  std::string name;
  int devices = 0;
  double bandwidth = 0, latency = 0, oversubscription = 1;
  int ports = 1;
  std::string source;
  Place place;

  void Visit(ParameterVisitor& v) {
    v.Text({.name = "name", .description = "of the interconnect"}, &name);
    v.Integer({.name = "devices",
               .description = "devices that share a domain",
               .minimum = 1,
               .maximum = 1 << 23,
               .automatic = "all of the machine; the last tier only"},
              &devices);
    v.Amount({.name = "bandwidth",
              .description = "of one port and direction",
              .minimum = 1,
              .maximum = 1e18},
             Unit::kBytesPerSecond, &bandwidth);
    v.Amount({.name = "latency", .description = "of one hop", .minimum = 0, .maximum = 1},
             Unit::kSeconds, &latency);
    v.Integer({.name = "ports", .description = "of a device", .minimum = 1, .maximum = 1 << 10},
              &ports);
    v.Number({.name = "oversubscription",
              .description = "what the bandwidth is divided by when all talk at once",
              .minimum = 1,
              .maximum = 1e6},
             &oversubscription);
    v.Text({.name = "source", .description = "where the numbers are from"}, &source);
  }
};

// The tiers of a list, false after a mistake.
inline bool ReadTiers(const Value& list, const InitContext& context, std::vector<TierLine>* tiers) {
  Diagnostics& diagnostics = *context.diagnostics;
  const auto wrong = [&](const Place& place, std::string message, std::string hint) {
    diagnostics.Error("hardware.tiers", place, std::move(message), std::move(hint));
    return false;
  };
  const std::string example =
      "write tiers = [{ name = \"nvlink\", devices = 8, bandwidth = \"450 GB/s\" }, { name = "
      "\"infiniband\", bandwidth = \"50 GB/s\" }]";
  if (list.kind != Value::kArray)
    return wrong(list.place,
                 std::string("tiers must be a list of tables, not ") + Value::Name(list.kind),
                 example);
  if (list.array.empty()) return wrong(list.place, "tiers is empty", example);
  if (list.array.size() > static_cast<std::size_t>(kMaxTiers))
    return wrong(list.place,
                 "there are " + std::to_string(list.array.size()) + " tiers, at most " +
                     std::to_string(kMaxTiers) + " are counted",
                 "merge the outermost");
  bool good = true;
  tiers->clear();
  for (const Value& item : list.array) {
    if (item.kind != Value::kTable) {
      good = wrong(item.place, std::string("a tier must be a table, not ") + Value::Name(item.kind),
                   example);
      continue;
    }
    TierLine tier;
    tier.place = item.place;
    context.read_table(item, {}, [&](ParameterVisitor& v) { tier.Visit(v); });
    const bool last = &item == &list.array.back();
    if (tier.name.empty() && item.Find("name") == nullptr)
      good = wrong(item.place, "a tier needs name", "write name = \"nvlink\"");
    if (tier.bandwidth == 0 && item.Find("bandwidth") == nullptr)
      good = wrong(item.place, "a tier needs bandwidth", "write bandwidth = \"50 GB/s\"");
    if (tier.devices == 0 && !last && item.Find("devices") == nullptr)
      good = wrong(item.place, "a tier needs devices",
                   "only the last tier may leave it out: it then holds the whole machine");
    if (!tiers->empty() && tier.devices > 0 && tiers->back().devices > 0 &&
        tier.devices % tiers->back().devices != 0) {
      good = wrong(item.place,
                   "a domain of " + std::to_string(tier.devices) +
                       " devices does not hold whole domains of " +
                       std::to_string(tiers->back().devices),
                   "devices must be a multiple of the tier before it");
    }
    tiers->push_back(std::move(tier));
  }
  return good;
}

struct MachineFile {
  std::string machine;
  double memory = 0, usable_memory = 0, overhead = 2.0 * 1024 * 1024 * 1024, host_memory = 0;
  double host_bandwidth = 55e9, host_memory_bandwidth = 24e9;
  double fragmentation = 0.04;
  double memory_bandwidth = 0, memory_efficiency = 0.825, launch = 3e-6;
  double peak_bf16 = 0, peak_fp8 = 0, peak_tf32 = 0, peak_fp32 = 0;
  double best_product = 0, best_product_fp8 = 0, sustained = kRecordShare;
  double ampere_attention = 1;
  int tile_short = 128, tile_long = 256, processors = 132;
  double attention_forward = 0, attention_backward = 0, attention_half_length = 300;
  std::vector<TierLine> tiers;
  std::vector<Constant> constants;  // those above, with their sources

  void Visit(ParameterVisitor& v) {
    v.Text({.name = "machine", .description = "how it is called"}, &machine);
    const auto amount = [&](const char* name, const char* what, Unit unit, double* value) {
      // Positive: what it is divided by.
      v.Amount({.name = name, .description = what, .minimum = 1e-12, .maximum = 1e24}, unit, value);
    };
    const auto zero = [&](const char* name, const char* what, Unit unit, double* value) {
      v.Amount({.name = name, .description = what, .minimum = 0, .maximum = 1e24}, unit, value);
    };
    const auto share = [&](const char* name, const char* what, double* value) {
      v.Number({.name = name, .description = what, .minimum = 0, .maximum = 1}, value);
    };
    const auto whole = [&](const char* name, const char* what, int* value) {
      v.Integer({.name = name, .description = what, .minimum = 1, .maximum = 1 << 20}, value);
    };
    constexpr Unit kRate = Unit::kFlopsPerSecond;
    amount("memory", "nominal, of one device", Unit::kBytes, &memory);
    amount("usable_memory", "what the driver shows", Unit::kBytes, &usable_memory);
    zero("overhead", "outside the allocator", Unit::kBytes, &overhead);
    zero("host_memory", "of the host, for each device", Unit::kBytes, &host_memory);
    amount("host_bandwidth", "of a device to its host, one direction", Unit::kBytesPerSecond,
           &host_bandwidth);
    amount("host_memory_bandwidth", "what an optimizer on the host reaches, for each device",
           Unit::kBytesPerSecond, &host_memory_bandwidth);
    share("fragmentation", "reserved and not used, of what is allocated", &fragmentation);
    amount("memory_bandwidth", "data sheet", Unit::kBytesPerSecond, &memory_bandwidth);
    v.Number({.name = "memory_efficiency",
              .description = "share of it that long streams reach",
              .minimum = 1e-3,
              .maximum = 1},
             &memory_efficiency);
    zero("launch", "gap and ramp of a kernel", Unit::kSeconds, &launch);
    amount("peak_bf16", "dense", kRate, &peak_bf16);
    amount("peak_fp8", "dense; without it the machine computes nothing in fp8", kRate, &peak_fp8);
    amount("peak_tf32", "dense", kRate, &peak_tf32);
    amount("peak_fp32", "outside the tensor cores", kRate, &peak_fp32);
    amount("best_product", "the best matrix product of any shape, bf16", kRate, &best_product);
    amount("best_product_fp8", "the same in fp8", kRate, &best_product_fp8);
    share("sustained", "share of the best product that large ones reach hour after hour",
          &sustained);
    share("ampere_attention", "share of the attention rates for kernels of Ampere's instructions",
          &ampere_attention);
    whole("tile_short", "of a matrix product", &tile_short);
    whole("tile_long", "of a matrix product", &tile_long);
    whole("processors", "that take a tile each", &processors);
    amount("attention_forward", "fused, causal, long sequences", kRate, &attention_forward);
    amount("attention_backward", "fused, long sequences", kRate, &attention_backward);
    v.Number({.name = "attention_half_length",
              .description = "tokens at which attention runs at half that rate",
              .minimum = 0,
              .maximum = 1e9},
             &attention_half_length);
  }

  // False after a mistake, which is told at its place in the file.
  bool Read(const Value& table, const InitContext& context) {
    if (table.kind != Value::kTable) return false;  // said already
    Diagnostics& diagnostics = *context.diagnostics;
    const std::size_t before = diagnostics.all().size();
    context.read_table(table, {"tiers", "sources", "source"},
                       [&](ParameterVisitor& v) { Visit(v); });
    const auto need = [&](const char* key, double value, const char* example) {
      if (value > 0 || table.Find(key) != nullptr) return;
      diagnostics.Error("hardware.machine", FilePlace(table), std::string("a machine needs ") + key,
                        std::string("write ") + key + " = \"" + example + "\"");
    };
    need("memory", memory, "80 GB");
    need("memory_bandwidth", memory_bandwidth, "3.35 TB/s");
    need("peak_bf16", peak_bf16, "989 TFLOP/s");
    const Value* list = table.Find("tiers");
    if (list == nullptr) {
      diagnostics.Error("hardware.machine", FilePlace(table), "a machine needs tiers",
                        "write [[tiers]] with name, devices and bandwidth, innermost first");
    } else {
      ReadTiers(*list, context, &tiers);
    }
    CheckSources(table, diagnostics);
    if (diagnostics.all().size() != before) return false;
    if (best_product > peak_bf16) TooFast("best_product", "peak_bf16", table, diagnostics);
    if (peak_fp8 > 0 && best_product_fp8 > peak_fp8)
      TooFast("best_product_fp8", "peak_fp8", table, diagnostics);
    if (diagnostics.all().size() != before) return false;
    Assume(table);
    List(table);
    return true;
  }

 private:
  static Place FilePlace(const Value& table) { return {table.place.file, 1, 1, ""}; }

  static void TooFast(const char* key, const char* peak, const Value& table,
                      Diagnostics& diagnostics) {
    diagnostics.Error("hardware.machine", table.Find(key)->place,
                      std::string(key) + " is more than " + peak, "a product cannot beat the peak");
  }

  void CheckSources(const Value& table, Diagnostics& diagnostics) const {
    const Value* sources = table.Find("sources");
    if (sources == nullptr) return;
    if (sources->kind != Value::kTable) {
      diagnostics.Error("hardware.sources", sources->place,
                        std::string("sources must be a table, not ") + Value::Name(sources->kind),
                        "write [sources] with the keys above and a text each");
      return;
    }
    std::vector<std::string> keys;
    for (const auto& [key, value] : table.table) keys.push_back(key);
    for (const auto& [key, value] : sources->table) {
      if (value.kind != Value::kText) {
        diagnostics.Error(
            "hardware.sources", value.place,
            "the source of " + key + " must be a string, not " + Value::Name(value.kind));
      } else if (table.Find(key) == nullptr) {
        const std::string near = Nearest(key, keys);
        diagnostics.Error("hardware.sources", value.key_place,
                          "a source for \"" + key + "\", which the machine does not state",
                          near.empty() ? "" : "did you mean \"" + near + "\"?");
      }
    }
  }

  // What follows from the rest where the file is silent.
  void Assume(const Value& table) {
    if (machine.empty()) machine = "machine of " + table.place.file;
    if (usable_memory == 0) usable_memory = memory;
    if (peak_tf32 == 0) peak_tf32 = peak_bf16 / 2;
    if (peak_fp32 == 0) peak_fp32 = peak_bf16 / 16;
    if (best_product == 0) best_product = 0.75 * peak_bf16;
    if (best_product_fp8 == 0) best_product_fp8 = best_product / peak_bf16 * peak_fp8;
    if (attention_forward == 0) attention_forward = 0.65 * best_product;
    if (attention_backward == 0) attention_backward = 0.55 * best_product;
  }

  void List(const Value& table) {
    const Value* sources = table.Find("sources");
    const auto add = [&](const char* key, double value, const char* unit, const char* otherwise) {
      const Value* source = sources != nullptr ? sources->Find(key) : nullptr;
      std::string text = std::string("assumed: ") + otherwise;
      if (source != nullptr) {
        text = source->text;
      } else if (table.Find(key) != nullptr) {
        text = "machine file, no source given";
      }
      constants.push_back({key, value, unit, std::move(text)});
    };
    add("memory", memory, "B", "");
    add("usable_memory", usable_memory, "B", "the nominal memory");
    add("overhead", overhead, "B", "a context and three communicators of about 0.5 GiB");
    add("fragmentation", fragmentation, "", "median of 36 published runs");
    add("host_memory", host_memory, "B", "not stated");
    add("host_bandwidth", host_bandwidth, "B/s", "PCIe 5.0 x16, of 63 GB/s");
    add("host_memory_bandwidth", host_memory_bandwidth, "B/s",
        "16 channels of DDR4-3200 over eight, of which an optimizer reaches 0.46");
    add("memory_bandwidth", memory_bandwidth, "B/s", "");
    add("memory_efficiency", memory_efficiency, "", "as on H100");
    add("launch", launch, "s", "as on H100");
    add("peak_bf16", peak_bf16, "FLOP/s", "");
    add("peak_fp8", peak_fp8, "FLOP/s", "the machine has none");
    add("peak_tf32", peak_tf32, "FLOP/s", "half of bf16");
    add("peak_fp32", peak_fp32, "FLOP/s", "a sixteenth of bf16");
    add("best_product", best_product, "FLOP/s", "0.75 of the peak");
    add("sustained", sustained, "", "0.953, as on A100 PCIe, the one device with record and table");
    add("ampere_attention", ampere_attention, "", "1: all kernels alike");
    add("best_product_fp8", best_product_fp8, "FLOP/s", "the same share of the peak as in bf16");
    add("tile_short", tile_short, "elements", "128 x 256");
    add("tile_long", tile_long, "elements", "128 x 256");
    add("processors", processors, "", "132");
    add("attention_forward", attention_forward, "FLOP/s", "0.65 of the best product");
    add("attention_backward", attention_backward, "FLOP/s", "0.55 of the best product");
    add("attention_half_length", attention_half_length, "tokens", "as on H100");
  }
};

}  // namespace shardlab::accelerator
