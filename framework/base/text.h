#pragma once
// Text helpers shared by every floor: the nearest name for "did you mean", joining, and the bridge
// between std::string_view and Debian's absl::string_view, which are two different types there.
//
//   std::string near = Nearest("tensr", {"tensor", "zero"});   // "tensor"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/export.h"

namespace shardlab {

inline absl::string_view AbslSv(std::string_view s) {
  return absl::string_view(s.data(), s.size());
}
inline std::string_view StdSv(absl::string_view s) { return std::string_view(s.data(), s.size()); }

// The candidate with the least edit distance (insert, delete, replace, swap of neighbours), or ""
// when none is near enough to be meant: at most a third of the longer word, at least 1. A candidate
// of several words of which `word` is one, "h100" of "h100-dgx", is near too.
SHARDLAB_EXPORT std::string Nearest(std::string_view word,
                                    const std::vector<std::string>& candidates);

// "a, b and c"; "" for none.
SHARDLAB_EXPORT std::string Enumerate(const std::vector<std::string>& words,
                                      std::string_view last = "and");
SHARDLAB_EXPORT std::string Enumerate(const std::vector<int>& numbers,
                                      std::string_view last = "and");

// "there is a", "there are a, b and c", "there is none".
SHARDLAB_EXPORT std::string ThereAre(const std::vector<std::string>& words);

// The divisors of n in ascending order; empty for n < 1.
SHARDLAB_EXPORT std::vector<int> Divisors(long long n);

// Shortest decimal that reads back as the same double; integers without a point.
SHARDLAB_EXPORT std::string ShortNumber(double value);
// `value` to `digits` significant digits, without exponent where that is readable: 55.505,
// 0.0154, 1.2e+15.
SHARDLAB_EXPORT std::string Significant(double value, int digits);
// 1234567 -> "1,234,567"
SHARDLAB_EXPORT std::string WithThousands(long long value);

// Lines of at most `width` columns; all but the first begin with `indent` blanks, which the first
// is taken to have.
SHARDLAB_EXPORT std::string Wrapped(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace shardlab
