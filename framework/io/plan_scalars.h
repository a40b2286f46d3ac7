#pragma once
// The single values of a plan's report that differ from plan to plan of one composition, each with
// its key, in the order of the document. The document and the rows of sweeps are both made of them.
//
//   EachTimeScalar(summary, [&](const char* key, Json value) { ... });   // "exposed.data_seconds"
//
// A dot in a key is a table within the section. Bytes are whole, each account rounded once.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/make_plan.h"
#include "core/summarize.h"
#include "io/plan_document.h"

namespace shardlab {

// The section "plan" of any plan of the composition.
nlohmann::ordered_json PlanSection(const ComposedScenario& composed, const Plan& plan);
// The list "provenance"; `pipelined`: the plan has several pipeline ranks.
nlohmann::ordered_json ProvenanceOf(const Composition& composition, bool pipelined);

inline std::int64_t WholeBytes(double bytes) { return std::llround(bytes); }

// What adds up to a rank's bytes: those of the allocator, then those beside it.
inline constexpr std::array<Account, 6> kAllocatedAccounts = {
    Account::kParameters,  Account::kGradients, Account::kOptimizer,
    Account::kActivations, Account::kGathered,  Account::kTransient};
inline constexpr std::array<Account, 2> kBesideAccounts = {Account::kFragmentation,
                                                           Account::kOutsideAllocator};

inline std::int64_t TotalBytes(const RankMemory& memory) {
  std::int64_t total = 0;
  for (const Account account : kAllocatedAccounts)
    total += WholeBytes(memory.bytes[static_cast<std::size_t>(account)]);
  for (const Account account : kBesideAccounts)
    total += WholeBytes(memory.bytes[static_cast<std::size_t>(account)]);
  return total;
}

// Of the section "plan" what is a number of this plan. What strategies say of degrees comes last
// and takes the place of the neutral values.
template <class Put>
void EachPlanNumber(const Composition& c, const Plan& p, Put put) {
  const int data = DegreeOf(c, p, AxisRole::kData), context = DegreeOf(c, p, AxisRole::kContext),
            expert = DegreeOf(c, p, AxisRole::kExpert);
  put("tensor", DegreeOf(c, p, AxisRole::kTensor));
  put("context", context);
  put("pipeline", p.pipeline);
  put("chunks", p.chunks);
  put("data", data);
  put("expert", expert);
  put("expert_data", data * context / std::max(1, expert));
  put("replicate", data);
  put("micro_batch_size", p.micro_batch_size);
  put("micro_batches", p.micro_batches);
  put("global_batch_size", c.training.global_batch_size);
  for (const auto& [key, mask] : c.edited.plan_degrees) put(key.c_str(), p.Size(mask));
}

template <class Put>
void EachMemoryScalar(const Composition& c, const Summary& s, Put put) {
  const Evaluation& e = s.evaluation;
  const std::int64_t capacity = WholeBytes(e.capacity), peak = TotalBytes(s.worst);
  put("fits", e.fits);
  put("verdict", Verdict(e));
  put("capacity_bytes", capacity);
  put("peak_bytes", peak);
  put("headroom_bytes", capacity - peak);
  put("worst_rank", e.worst_rank);
  put("host.capacity_bytes", WholeBytes(c.hardware->machine().host_memory.value()));
  put("host.peak_bytes", WholeBytes(e.host_peak));
  put("host.fits", e.host_capacity == 0 || e.host_peak <= e.host_capacity);
}

namespace internal {
// "exposed.tensor_seconds" for each role.
inline const std::array<std::string, kAxisRoles>& RoleKeys(bool exposed) {
  const auto made = [](const char* table) {
    std::array<std::string, kAxisRoles> keys;
    for (std::size_t r = 0; r < kAxisRoles; ++r)
      keys[r] = std::string(table) + "." + Name(static_cast<AxisRole>(r)) + "_seconds";
    return keys;
  };
  static const std::array<std::string, kAxisRoles> shown = made("exposed"), hidden = made("hidden");
  return exposed ? shown : hidden;
}
}  // namespace internal

template <class Put>
void EachTimeScalar(const Summary& s, Put put) {
  const Evaluation& e = s.evaluation;
  const TimeParts& t = e.time;
  const double bubble = t.bubble - s.exposed_pipeline;
  const double busy_span =
      e.step - t.optimizer - t.exposed[static_cast<std::size_t>(AxisRole::kData)];
  put("step_seconds", e.step);
  put("rank", e.time_rank);
  put("forward_seconds", t.forward);
  put("backward_seconds", t.backward);
  put("recompute_seconds", t.recompute);
  put("optimizer_seconds", t.optimizer);
  put("bubble_seconds", bubble);
  put("bubble_fraction", busy_span > 0 ? bubble / busy_span : 0.0);
  put("own_bubble_seconds", s.own_bubble);
  for (std::size_t r = 0; r < kAxisRoles; ++r) {
    const bool pipeline = static_cast<AxisRole>(r) == AxisRole::kPipeline;
    put(internal::RoleKeys(true)[r].c_str(), t.exposed[r] + (pipeline ? s.exposed_pipeline : 0));
  }
  for (std::size_t r = 0; r < kAxisRoles; ++r) {
    const bool pipeline = static_cast<AxisRole>(r) == AxisRole::kPipeline;
    put(internal::RoleKeys(false)[r].c_str(), t.hidden[r] + (pipeline ? s.hidden_pipeline : 0));
  }
  put("approximate", e.approximate);
}

// By a convention of interface.md: "causal", "full" or "6p".
inline double ModelFlopsPerToken(const Composition& c, const std::string& convention) {
  const ModelFacts& f = c.edited.program.facts;
  if (convention == "6p") return 6 * f.active_parameters;
  const double attention = f.layers * f.attention_width * c.training.sequence_length;
  return 6 * (f.active_parameters - f.embedding_parameters) +
         (convention == "full" ? 12 : 6) * attention;
}

template <class Put>
void EachThroughputScalar(const Composition& c, const Summary& s, Put put) {
  const Machine& m = c.hardware->machine();
  const double tokens =
      c.training.global_batch_size * c.training.sequence_length / s.evaluation.step;
  const double per_token = ModelFlopsPerToken(c, c.rules.mfu_convention);
  const double per_device = per_token * tokens / m.devices;
  const double mfu = per_device / m.peak.value();
  put("tokens_per_second", tokens);
  put("tokens_per_second_per_device", tokens / m.devices);
  put("model_flops_per_token", per_token);
  put("model_flops_per_second_per_device", per_device);
  put("mfu", mfu);
  put("mfu_convention", c.rules.mfu_convention);
  put("hfu", mfu * (1 + s.recompute_flops_share));
}

}  // namespace shardlab
