#include "io/plan_document.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "io/parameter_io.h"
#include "io/render_diagnostics.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t Whole(double bytes) { return std::llround(bytes); }

constexpr std::array<Account, 6> kAllocated = {Account::kParameters, Account::kGradients,
                                               Account::kOptimizer,  Account::kActivations,
                                               Account::kGathered,   Account::kTransient};
constexpr std::array<Account, 2> kBeside = {Account::kFragmentation, Account::kOutsideAllocator};

std::string KeyOf(Account account) { return absl::StrCat(Name(account), "_bytes"); }

class Document {
 public:
  Document(const PlannedScenario& planned, const Diagnostics& diagnostics)
      : planned_(planned),
        c_(*planned.composed.composition),
        x_(planned.explanation),
        diagnostics_(diagnostics) {}

  Json Make() {
    Json doc;
    doc["schema"] = "shardlab.plan/1";
    doc["scenario"] = planned_.composed.name;
    doc["accounting"] = c_.rules.name;
    doc["resolved"] = planned_.composed.resolved;
    doc["model"] = Model();
    doc["hardware"] = Hardware();
    doc["plan"] = Plan();
    doc["memory"] = Memory();
    doc["time"] = Time();
    doc["throughput"] = Throughput();
    if (c_.training.total_tokens > 0) doc["totals"] = Totals();
    doc["communication"] = Communication();
    doc["diagnostics"] = Json::array();
    for (const Diagnostic& d : diagnostics_.all())
      doc["diagnostics"].push_back(DiagnosticToJson(d));
    doc["provenance"] = Provenance();
    return doc;
  }

 private:
  Json Model() const {
    const ModelFacts& facts = c_.edited.program.facts;
    return {{"name", facts.name},
            {"parameters", Whole(facts.parameters)},
            {"active_parameters", Whole(facts.active_parameters)},
            {"layers", facts.layers}};
  }

  Json Hardware() const {
    const Machine& m = c_.hardware->machine();
    Json tiers = Json::array();
    for (const Tier& tier : m.tiers) {
      tiers.push_back({{"name", tier.name},
                       {"devices", tier.devices},
                       {"bandwidth_bytes_per_second", tier.bandwidth.value()},
                       {"latency_seconds", tier.latency.value()},
                       {"ports", tier.ports}});
    }
    return {{"name", m.name},
            {"devices", m.devices},
            {"memory_bytes", Whole(m.memory.value())},
            {"peak_flops_per_second", m.peak.value()},
            {"tiers", tiers}};
  }

  Json Plan() const {
    const shardlab::Plan& p = c_.plan;
    const int data = DegreeOf(c_, p, AxisRole::kData), expert = DegreeOf(c_, p, AxisRole::kExpert);
    Json plan;
    plan["tensor"] = DegreeOf(c_, p, AxisRole::kTensor);
    plan["sequence_parallel"] = false;
    plan["context"] = DegreeOf(c_, p, AxisRole::kContext);
    plan["pipeline"] = p.pipeline;
    plan["chunks"] = p.chunks;
    plan["data"] = data;
    plan["expert"] = expert;
    plan["expert_tensor"] = 1;
    plan["expert_data"] = data * DegreeOf(c_, p, AxisRole::kContext) / std::max(1, expert);
    plan["zero_stage"] = 0;
    plan["fsdp_shard"] = 1;
    plan["offload"] = "none";
    plan["replicate"] = data;
    plan["mesh_order"] = planned_.composed.mesh_order;
    plan["micro_batch_size"] = p.micro_batch_size;
    plan["micro_batches"] = p.micro_batches;
    plan["global_batch_size"] = c_.training.global_batch_size;
    plan["sequence_length"] = Whole(c_.training.sequence_length);
    plan["schedule"] = c_.schedule_name;
    plan["layers"] = c_.splits[static_cast<std::size_t>(p.split)].layers;
    plan["recompute"] = {{"mode", "none"},
                         {"segment", 1},
                         {"stride", 1},
                         {"layers", nullptr},
                         {"modules", Json::array()}};
    plan["precision"] = planned_.composed.resolved["precision"];
    plan["optimizer"] = c_.optimizer_name;
    plan["software"] = planned_.composed.software;
    // What the strategies say of themselves takes the place of the neutral values.
    for (const auto& [key, mask] : c_.edited.plan_degrees) plan[key] = p.Size(mask);
    for (const auto& [key, value] : c_.edited.plan_facts) {
      Json fact = ValueToJson(value);
      if (fact.is_object() && plan.contains(key) && plan[key].is_object()) {
        plan[key].update(fact);
      } else {
        plan[key] = std::move(fact);
      }
    }
    return plan;
  }

  Json Rank(int rank) const {
    const RankExplanation& r = x_.ranks[static_cast<std::size_t>(rank)];
    Json json = {{"pipeline_rank", rank}, {"stages", r.stages}};
    std::int64_t allocated = 0, beside = 0;
    for (const Account account : kAllocated) {
      const std::int64_t bytes = Whole(r.memory.bytes[static_cast<std::size_t>(account)]);
      json[KeyOf(account)] = bytes;
      allocated += bytes;
    }
    json["allocated_bytes"] = allocated;
    for (const Account account : kBeside) {
      const std::int64_t bytes = Whole(r.memory.bytes[static_cast<std::size_t>(account)]);
      json[KeyOf(account)] = bytes;
      beside += bytes;
    }
    json["total_bytes"] = allocated + beside;
    json["host_bytes"] = Whole(r.memory.host);
    json["in_flight_micro_batches"] = r.memory.in_flight;
    return json;
  }

  Json Memory() const {
    const Evaluation& e = x_.evaluation;
    Json ranks = Json::array();
    for (int r = 0; r < c_.plan.pipeline; ++r) ranks.push_back(Rank(r));
    const auto peak =
        ranks[static_cast<std::size_t>(e.worst_rank)]["total_bytes"].get<std::int64_t>();
    const std::int64_t capacity = Whole(e.capacity);
    return {{"fits", e.fits},
            {"verdict", Verdict(e)},
            {"capacity_bytes", capacity},
            {"peak_bytes", peak},
            {"headroom_bytes", capacity - peak},
            {"worst_rank", e.worst_rank},
            {"host",
             {{"capacity_bytes", Whole(c_.hardware->machine().host_memory.value())},
              {"peak_bytes", Whole(e.host_peak)},
              {"fits", e.host_capacity == 0 || e.host_peak <= e.host_capacity}}},
            {"ranks", ranks}};
  }

  static Json ByRole(const std::array<double, kAxisRoles>& seconds, double pipeline) {
    Json json;
    for (std::size_t r = 0; r < kAxisRoles; ++r) {
      const auto role = static_cast<AxisRole>(r);
      json[absl::StrCat(Name(role), "_seconds")] =
          seconds[r] + (role == AxisRole::kPipeline ? pipeline : 0);
    }
    return json;
  }

  Json Time() const {
    const Evaluation& e = x_.evaluation;
    const TimeParts& t = e.time;
    const double bubble = t.bubble - x_.exposed_pipeline;
    const double busy_span =
        e.step - t.optimizer - t.exposed[static_cast<std::size_t>(AxisRole::kData)];
    return {{"step_seconds", e.step},
            {"rank", e.time_rank},
            {"forward_seconds", t.forward},
            {"backward_seconds", t.backward},
            {"recompute_seconds", t.recompute},
            {"optimizer_seconds", t.optimizer},
            {"bubble_seconds", bubble},
            {"bubble_fraction", busy_span > 0 ? bubble / busy_span : 0.0},
            {"own_bubble_seconds", x_.own_bubble},
            {"exposed", ByRole(t.exposed, x_.exposed_pipeline)},
            {"hidden", ByRole(t.hidden, 0)},
            {"approximate", e.approximate}};
  }

  double FlopsPerToken(const std::string& convention) const {
    const ModelFacts& f = c_.edited.program.facts;
    if (convention == "6p") return 6 * f.active_parameters;
    const double attention = f.layers * f.attention_width * c_.training.sequence_length;
    return 6 * (f.active_parameters - f.embedding_parameters) +
           (convention == "full" ? 12 : 6) * attention;
  }

  Json Throughput() const {
    const Machine& m = c_.hardware->machine();
    const double tokens =
        c_.training.global_batch_size * c_.training.sequence_length / x_.evaluation.step;
    const double per_token = FlopsPerToken(c_.rules.mfu_convention);
    const double per_device = per_token * tokens / m.devices;
    const double mfu = per_device / m.peak.value();
    return {{"tokens_per_second", tokens},
            {"tokens_per_second_per_device", tokens / m.devices},
            {"model_flops_per_token", per_token},
            {"model_flops_per_second_per_device", per_device},
            {"mfu", mfu},
            {"mfu_convention", c_.rules.mfu_convention},
            {"hfu", mfu * (1 + x_.recompute_flops_share)}};
  }

  // Of the whole run: whole steps, at the pace of this one.
  Json Totals() const {
    const Machine& m = c_.hardware->machine();
    const double step_tokens = c_.training.global_batch_size * c_.training.sequence_length;
    const double steps = std::ceil(c_.training.total_tokens / step_tokens);
    const double seconds = steps * x_.evaluation.step, hours = seconds / 3600 * m.devices;
    Json totals = {{"tokens", c_.training.total_tokens},
                   {"steps", Whole(steps)},
                   {"days", seconds / 86400},
                   {"device_hours", hours}};
    if (m.price_per_device_hour > 0) totals["cost"] = hours * m.price_per_device_hour;
    return totals;
  }

  Json Communication() const {
    Json list = Json::array();
    for (const TransferEntry& t : x_.transfers) {
      Json spans = Json::array();
      for (std::size_t tier = 0; tier < c_.hardware->machine().tiers.size(); ++tier)
        spans.push_back(t.span.ranks[tier]);
      list.push_back({{"axis", t.axis},
                      {"collective", t.collective},
                      {"tensor", t.tensor},
                      {"phase", t.phase},
                      {"author", t.author},
                      {"count", t.count},
                      {"bytes_per_call", Whole(t.bytes_per_call)},
                      {"bytes", Whole(t.bytes)},
                      {"group_size", t.group_size},
                      {"spans", spans},
                      {"tier", t.tier},
                      {"algorithm", t.algorithm},
                      {"declared", t.declared},
                      {"realised", t.realised},
                      {"seconds", t.seconds},
                      {"exposed_seconds", t.exposed_seconds}});
    }
    return list;
  }

  Json Provenance() const {
    Json list = Json::array();
    const auto add = [&](const std::string& name, Json value, const std::string& source) {
      list.push_back({{"name", name}, {"value", std::move(value)}, {"source", source}});
    };
    const auto add_all = [&](const std::vector<Constant>& constants) {
      for (const Constant& k : constants) {
        add(k.unit.empty() ? k.name : absl::StrCat(k.name, " (", k.unit, ")"), k.value, k.source);
      }
    };
    const ModelFacts& facts = c_.edited.program.facts;
    add("model.parameters", Whole(facts.parameters), facts.source);
    add("accounting", c_.rules.name, "scenario, or the default");
    add("precision.recipe", c_.precision.recipe, "scenario, or the accounting's default");
    add("optimizer", c_.optimizer_name, c_.optimizer->source());
    if (c_.schedule != nullptr && c_.plan.pipeline > 1)
      add("schedule", c_.schedule_name, c_.schedule->source());
    add_all(c_.hardware->Constants());
    add_all(c_.network->Constants());
    for (const auto& [name, number] : c_.rules.numbers) {
      const bool kept = name.rfind("saved.", 0) == 0;  // the recipe's
      add(absl::StrCat(kept ? "precision." : "software.", name), number.value, number.source);
    }
    return list;
  }

  const PlannedScenario& planned_;
  const Composition& c_;
  const Explanation& x_;
  const Diagnostics& diagnostics_;
};

}  // namespace

const char* Verdict(const Evaluation& e) {
  if (!e.fits) return "does_not_fit";
  const bool host = e.host_capacity > 0 && e.host_peak > 0.9 * e.host_capacity;
  return host || e.peak > 0.9 * e.capacity ? "tight" : "fits";
}

PlannedScenario PlanScenario(const PluginRegistry& registry, const Scenario& scenario,
                             Diagnostics* diagnostics) {
  PlannedScenario planned;
  planned.composed = ComposeScenario(registry, scenario, diagnostics);
  if (planned.composed.composition == nullptr) return planned;
  const Composition& c = *planned.composed.composition;
  if (c.plan.pipeline > 1) {
    absl::StatusOr<CompiledOrder> order =
        CompileOrder(*c.schedule, {c.plan.pipeline, c.plan.chunks, c.plan.micro_batches});
    if (!order.ok()) {
      diagnostics->Error("schedule.order", planned.composed.request.pipeline_place,
                         absl::StrCat("schedule \"", c.schedule_name,
                                      "\" gives an impossible order: ", order.status().message()));
      planned.composed.composition = nullptr;
      return planned;
    }
    const auto replays = [](const Form::ClassRow& row) { return row.replays; };
    if (order->splits_backward &&
        std::any_of(c.form.classes.begin(), c.form.classes.end(), replays)) {
      diagnostics->Warning("schedule.recompute", planned.composed.request.schedule_place,
                           absl::StrCat(c.schedule_name,
                                        " puts weight gradients off, and each keeps all that was "
                                        "recomputed for it: recomputation saves little here"),
                           "schedules with a whole backward free it at once");
    }
    planned.order = std::move(*order);
  }
  planned.explanation = Explain(c, c.plan, planned.order ? &*planned.order : nullptr);
  return planned;
}

nlohmann::ordered_json PlanDocument(const PlannedScenario& planned,
                                    const Diagnostics& diagnostics) {
  return Document(planned, diagnostics).Make();
}

}  // namespace shardlab
