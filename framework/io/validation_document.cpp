#include "io/render_diagnostics.h"
#include "io/validation_report.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

Json Summary(const ErrorSummary& s) {
  if (s.rows == 0) return {{"rows", 0}};
  return {{"rows", s.rows},
          {"mean_absolute_error", s.mean_absolute},
          {"median_absolute_error", s.median_absolute},
          {"bias", s.bias},
          {"worst", s.worst},
          {"worst_id", s.worst_id},
          {"within_5_percent", s.within_5},
          {"within_10_percent", s.within_10},
          {"within_20_percent", s.within_20}};
}

Json Quantity(const QuantityErrors& q) {
  Json sources = Json::array();
  for (const SourceErrors& s : q.sources) {
    Json source = {{"source", s.name}, {"title", s.title}};
    source.update(Summary(s.errors));
    source["half_a"] = Summary(s.first_half);
    source["half_b"] = Summary(s.second_half);
    source["baselines"] = {{"constant", s.constant},
                           {"own_constant", s.own_constant},
                           {"other_half_constant", s.other_half_constant},
                           {"roofline", s.roofline}};
    source["order"] = {{"groups", s.order.groups},
                       {"pairs", s.order.pairs},
                       {"tau", s.order.tau()},
                       {"regret", s.order.regret}};
    sources.push_back(std::move(source));
  }
  return {{"fitted_constant", q.constant}, {"fitted_on", "all rows judged"}, {"sources", sources}};
}

Json Half(double predicted, const std::optional<double>& measured, const std::string& unit,
          double work, double roofline, const std::string& skip) {
  Json half = {{"predicted_" + unit, predicted}};
  half["measured_" + unit] = measured ? Json(*measured) : Json();
  half["error"] = measured ? Json(predicted / *measured - 1) : Json();
  half["work_" + unit] = work;
  half["roofline_" + unit] = roofline;
  if (!skip.empty()) half["not_judged"] = skip;
  return half;
}

Json Row(const ValidatedRow& row) {
  Json json = {{"id", row.scenario.filled.id},
               {"line", row.scenario.filled.place.line},
               {"source", row.scenario.source},
               {"half", HalfOf(row.scenario.filled.id) == 0 ? "a" : "b"}};
  if (!row.prediction) {
    json["skipped"] = row.skip;
    Json list = Json::array();
    for (const Diagnostic& d : row.diagnostics.all()) list.push_back(DiagnosticToJson(d));
    json["diagnostics"] = std::move(list);
    return json;
  }
  const RowPrediction& p = *row.prediction;
  json["step"] =
      Half(p.step, row.measured_step, "seconds", p.step_work, p.step_roofline, row.skip_step);
  if (row.step_derived) json["step"]["derived_from"] = "tokens_per_s_per_gpu";
  json["memory"] = Half(p.memory, row.measured_memory, "bytes", p.memory_work, p.memory_roofline,
                        row.skip_memory);
  json["memory"]["of"] = row.scenario.memory.of;
  json["memory"]["rank"] = row.scenario.memory.rank;
  json["memory"]["unit"] = row.scenario.memory.unit;
  json["fits"] = p.fits;
  json["parameters"] = p.parameters;
  json["hardware_flops"] = p.hardware_flops;
  return json;
}

}  // namespace

nlohmann::ordered_json ValidationDocument(const Validation& v, const std::string& file) {
  Json doc = {{"schema", "shardlab.validation/1"}, {"file", file}};
  std::size_t planned = 0;
  Json rows = Json::array();
  for (const ValidatedRow& row : v.rows) {
    planned += row.prediction ? 1 : 0;
    rows.push_back(Row(row));
  }
  doc["counts"] = {
      {"rows", v.rows.size()}, {"planned", planned}, {"skipped", v.rows.size() - planned}};
  doc["memory"] = Quantity(v.memory);
  doc["step"] = Quantity(v.step);
  Json checks = Json::array();
  for (const SlopeResult& result : v.checks) {
    Json pairs = Json::array();
    for (const SlopePair& pair : result.pairs) {
      Json both = {pair.row};
      if (!pair.other.empty()) both.push_back(pair.other);
      pairs.push_back({{"rows", both},
                       {"predicted", pair.predicted},
                       {"measured", pair.measured == 0 ? Json() : Json(pair.measured)}});
    }
    checks.push_back({{"name", result.check.name},
                      {"unit", "bytes a parameter"},
                      {"least", result.check.least},
                      {"most", result.check.most},
                      {"holds", result.pairs.empty() ? Json() : Json(result.holds)},
                      {"pairs", pairs}});
  }
  doc["checks"] = std::move(checks);
  doc["rows"] = std::move(rows);
  return doc;
}

}  // namespace shardlab
