// Any bytes as a scenario with overrides: nothing may crash, hang, throw or fall silent. The first
// line is also tried as a --set, and what was read is put through a parameter reader and all the
// ways of writing.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/parameter_io.h"
#include "io/quantity.h"
#include "io/render_diagnostics.h"
#include "io/scenario.h"
#include "io/toml_value.h"

namespace {

using namespace shardlab;  // NOLINT: one program of one file

// abort() and not assert: the promise holds in release builds too.
void Require(bool holds) {
  if (!holds) std::abort();
}

void ReadParameters(const Value& table, Diagnostics* diagnostics) {
  bool boolean = false;
  int integer = 1;
  double number = 0;
  std::string text;
  std::vector<int> integers;
  Value raw;
  ParameterReader reader(&table, table.place, {"plugin"}, diagnostics);
  reader.Boolean({"b", ""}, &boolean);
  reader.Integer({"degree", "", 1, 8}, &integer);
  reader.Number({"n", "", 0, 1}, &number);
  reader.Text({"name", "", 0, 0, {"one", "two"}}, &text);
  reader.Amount({"memory", "", 1e9}, Unit::kBytes, &number);
  reader.Amount({"latency", ""}, Unit::kSeconds, &number);
  reader.Amount({"bandwidth", ""}, Unit::kBytesPerSecond, &number);
  reader.Integers({"layers", "", 0, 100}, &integers);
  reader.IntegerOr({"shard", "", 1}, "all", &integer);
  reader.Raw({"tiers", ""}, &raw);
  reader.Finish();
  Require(integer >= 0 && number >= 0);
}

void ReadAll(const Value& value, Diagnostics* diagnostics) {
  ReadParameters(value, diagnostics);
  for (const auto& [name, child] : value.table) {
    if (child.kind == Value::kTable) ReadAll(child, diagnostics);
    if (child.kind == Value::kText) {
      for (const Unit unit : {Unit::kNone, Unit::kBytes, Unit::kSeconds, Unit::kBytesPerSecond,
                              Unit::kFlopsPerSecond, Unit::kFlops}) {
        const QuantityResult quantity = ParseQuantity(child.text, unit);
        if (!quantity.ok()) continue;
        // The exact text is a fixed point.
        Require(ParseQuantity(ExactQuantity(quantity.value, unit), unit).value == quantity.value);
        Require(!FormatQuantity(quantity.value, unit).empty());
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> sets;
  if (size > 0) sets.push_back(text.substr(0, text.find('\n')));
  Diagnostics diagnostics;
  const Scenario scenario = ScenarioFromText(text, "fuzz.toml", sets, diagnostics);
  Require(scenario.root.kind == Value::kTable || diagnostics.HasErrors());
  if (scenario.root.kind == Value::kTable) {
    ReadAll(scenario.root, &diagnostics);
    const std::string written = ToToml(scenario.root);
    Diagnostics again;
    const auto back = ParseTomlValue(written, "fuzz.toml", "k", again);
    // Dates are left out and inline tables nest one level deeper, so only sound and flat ones must
    // come back.
    Require(back.has_value() || diagnostics.HasErrors() || written.find('[') != std::string::npos ||
            written.find('{', 1) != std::string::npos);
    (void)ValueToJson(scenario.root).dump();
  }
  diagnostics.Sort();
  const Sources sources = {{scenario.file, scenario.text}};
  const std::string shown = RenderDiagnostics(diagnostics, sources, (size & 1) != 0);
  Require(shown.empty() == diagnostics.empty());
  for (const char c : shown) Require(c == '\n' || c == '\x1b' || (c & 0xE0) != 0);
  (void)DiagnosticsToJson(diagnostics).dump();
  return 0;
}
