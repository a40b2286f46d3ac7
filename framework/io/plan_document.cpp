#include "io/plan_document.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/short_order.h"
#include "io/parameter_io.h"
#include "io/plan_scalars.h"
#include "io/render_diagnostics.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t Whole(double bytes) { return WholeBytes(bytes); }

std::string KeyOf(Account account) { return absl::StrCat(Name(account), "_bytes"); }

// Puts scalars into a section; "host.fits" is in the table "host".
auto Into(Json* section) {
  return [section](const std::string& key, Json value) {
    const std::size_t dot = key.find('.');
    Json& at = dot == std::string::npos ? (*section)[key]
                                        : (*section)[key.substr(0, dot)][key.substr(dot + 1)];
    at = std::move(value);
  };
}

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
    doc["plan"] = PlanSection(planned_.composed, c_.plan);
    doc["memory"] = Memory();
    doc["time"] = Time();
    doc["throughput"] = Throughput();
    if (c_.training.total_tokens > 0) doc["totals"] = Totals();
    doc["communication"] = Communication();
    doc["diagnostics"] = Json::array();
    for (const Diagnostic& d : diagnostics_.all())
      doc["diagnostics"].push_back(DiagnosticToJson(d));
    doc["provenance"] = ProvenanceOf(c_, c_.plan.pipeline > 1);
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

  Summary Summed() const {
    const auto worst = static_cast<std::size_t>(x_.evaluation.worst_rank);
    return {x_.evaluation, x_.exposed_pipeline,      x_.hidden_pipeline,
            x_.own_bubble, x_.recompute_flops_share, x_.ranks[worst].memory};
  }

  Json Rank(int rank) const {
    const RankExplanation& r = x_.ranks[static_cast<std::size_t>(rank)];
    Json json = {{"pipeline_rank", rank}, {"stages", r.stages}};
    std::int64_t allocated = 0, beside = 0;
    for (const Account account : kAllocatedAccounts) {
      const std::int64_t bytes = Whole(r.memory.bytes[static_cast<std::size_t>(account)]);
      json[KeyOf(account)] = bytes;
      allocated += bytes;
    }
    json["allocated_bytes"] = allocated;
    for (const Account account : kBesideAccounts) {
      const std::int64_t bytes = Whole(r.memory.bytes[static_cast<std::size_t>(account)]);
      json[KeyOf(account)] = bytes;
      beside += bytes;
    }
    json["total_bytes"] = allocated + beside;
    json["host_bytes"] = Whole(r.memory.host);
    json["initialisation_peak_bytes"] = Whole(r.first.initialisation);
    json["first_step_peak_bytes"] = Whole(r.first.first_step);
    json["in_flight_micro_batches"] = r.memory.in_flight;
    return json;
  }

  Json Memory() const {
    Json memory;
    EachMemoryScalar(c_, Summed(), Into(&memory));
    memory["ranks"] = Json::array();
    for (int r = 0; r < c_.plan.pipeline; ++r) memory["ranks"].push_back(Rank(r));
    return memory;
  }

  Json Time() const {
    Json time;
    EachTimeScalar(Summed(), Into(&time));
    return time;
  }

  Json Throughput() const {
    Json throughput;
    EachThroughputScalar(c_, Summed(), Into(&throughput));
    return throughput;
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

  const PlannedScenario& planned_;
  const Composition& c_;
  const Explanation& x_;
  const Diagnostics& diagnostics_;
};

}  // namespace

Json ProvenanceOf(const Composition& c, bool pipelined) {
  Json list = Json::array();
  const auto add = [&](const std::string& name, Json value, const std::string& source) {
    list.push_back({{"name", name}, {"value", std::move(value)}, {"source", source}});
  };
  const auto add_all = [&](const std::vector<Constant>& constants) {
    for (const Constant& k : constants) {
      add(k.unit.empty() ? k.name : absl::StrCat(k.name, " (", k.unit, ")"), k.value, k.source);
    }
  };
  const ModelFacts& facts = c.edited.program.facts;
  add("model.parameters", Whole(facts.parameters), facts.source);
  add("accounting", c.rules.name, "scenario, or the default");
  add("precision.recipe", c.precision.recipe, "scenario, or the accounting's default");
  add("optimizer", c.optimizer_name, c.optimizer->source());
  if (c.schedule != nullptr && pipelined) add("schedule", c.schedule_name, c.schedule->source());
  add_all(c.hardware->Constants());
  add_all(c.network->Constants());
  for (const auto& [name, number] : c.rules.numbers) {
    const bool kept = name.rfind("saved.", 0) == 0;  // the recipe's
    add(absl::StrCat(kept ? "precision." : "software.", name), number.value, number.source);
  }
  return list;
}

Json PlanSection(const ComposedScenario& composed, const Plan& p) {
  const Composition& c = *composed.composition;
  Json plan;
  // In this order; numbers are put in behind.
  plan["tensor"] = 1;
  plan["sequence_parallel"] = false;
  for (const char* key : {"context", "pipeline", "chunks", "data", "expert"}) plan[key] = 1;
  plan["expert_tensor"] = 1;
  plan["expert_data"] = 1;
  plan["zero_stage"] = 0;
  plan["fsdp_shard"] = 1;
  plan["offload"] = "none";
  plan["replicate"] = 1;
  plan["mesh_order"] = composed.mesh_order;
  for (const char* key : {"micro_batch_size", "micro_batches", "global_batch_size"}) plan[key] = 1;
  plan["sequence_length"] = Whole(c.training.sequence_length);
  plan["schedule"] = c.schedule_name;
  plan["layers"] = c.splits[static_cast<std::size_t>(p.split)].layers;
  plan["recompute"] = {{"mode", "none"},
                       {"segment", 1},
                       {"stride", 1},
                       {"layers", nullptr},
                       {"modules", Json::array()}};
  plan["precision"] = composed.resolved["precision"];
  plan["optimizer"] = c.optimizer_name;
  plan["software"] = composed.software;
  EachPlanNumber(c, p, [&](const char* key, int value) { plan[key] = value; });
  // What the strategies say of themselves takes the place of the neutral values.
  for (const auto& [key, value] : c.edited.plan_facts) {
    Json fact = ValueToJson(value);
    if (fact.is_object() && plan.contains(key) && plan[key].is_object()) {
      plan[key].update(fact);
    } else {
      plan[key] = std::move(fact);
    }
  }
  return plan;
}

const char* Verdict(const Evaluation& e) {
  if (!e.fits) return "does_not_fit";
  const bool host = e.host_capacity > 0 && e.host_peak > 0.9 * e.host_capacity;
  return host || e.peak > 0.9 * e.capacity ? "tight" : "fits";
}

PlannedScenario PlanScenario(const PluginRegistry& registry, const Scenario& scenario,
                             Diagnostics* diagnostics, PlannedOrder kind) {
  PlannedScenario planned;
  planned.composed = ComposeScenario(registry, scenario, diagnostics);
  if (planned.composed.composition == nullptr) return planned;
  const Composition& c = *planned.composed.composition;
  if (c.plan.pipeline > 1) {
    const ScheduleShape shape{c.plan.pipeline, c.plan.chunks, c.plan.micro_batches};
    absl::StatusOr<CompiledOrder> order = kind == PlannedOrder::kWhole
                                              ? CompileOrder(*c.schedule, shape)
                                              : CompileShortOrder(*c.schedule, shape);
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
