#pragma once
// Quantities as people write and read them: "80 GB", "400 Gb/s", "989 TFLOP/s", "5 us". GB = 10^9
// and GiB = 2^30 bytes; a small b is a bit and stands only in rates.
//
//   QuantityResult memory = ParseQuantity("80 GB", Unit::kBytes);   // 8e10
//   if (!memory.ok()) diagnostics.Error("value.unit", place, "memory " + memory.problem,
//   memory.hint); FormatBytes(55505131520) == "55.505 GB";

#include <string>
#include <string_view>

#include "api/parameters.h"

namespace shardlab {

struct QuantityResult {
  double value = 0;     // in bytes, seconds, ...
  std::string problem;  // a clause that follows a name: "has no unit"; empty when all is well
  std::string hint;     // may be empty
  bool ok() const { return problem.empty(); }
};

// The whole text must be a number and a unit of the kind `unit`; Unit::kNone takes a bare number.
// Decimal prefixes are exact: "3.35 TB/s" is the double nearest to 3350000000000. Never negative,
// never infinite.
QuantityResult ParseQuantity(std::string_view text, Unit unit);

// "a number of bytes", "a time", ...; the symbol of the unit that values are held in: "B", "s",
// "B/s".
const char* UnitName(Unit unit);
const char* UnitSymbol(Unit unit);
// What a correct text looks like, with the user's own number in it: "\"80 GB\" or \"80 GiB\"".
std::string UnitExamples(Unit unit, const std::string& number);

// The shortest text that ParseQuantity reads as exactly this value: "81559 MiB". For files and
// JSON.
std::string ExactQuantity(double value, Unit unit);

// For people. Bytes to five significant digits, "55.505 GB"; the others to four, "17.14 s", "1.342
// ms", "450.0 GB/s", "989.0 TFLOP". A step of 1000 s and more is shown in min, h or d.
std::string FormatBytes(double bytes);
std::string FormatSeconds(double seconds);
std::string FormatRate(double bytes_per_second);
std::string FormatFlops(double flops);
std::string FormatFlopRate(double flops_per_second);
std::string FormatQuantity(double value, Unit unit);

}  // namespace shardlab
