#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace shardlab {
namespace {

// Optimal string alignment distance: Damerau-Levenshtein without edits inside a swapped pair.
std::size_t Distance(std::string_view a, std::string_view b) {
  const std::size_t n = b.size();
  std::vector<std::size_t> before_last(n + 1), last(n + 1), row(n + 1);
  for (std::size_t j = 0; j <= n; ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= n; ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = row;
  }
  return last[n];
}

template <class T, class ToText>
std::string Join(const std::vector<T>& items, std::string_view last, ToText to_text) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      if (i + 1 == items.size()) {
        out.append(" ").append(last).append(" ");
      } else {
        out += ", ";
      }
    }
    out += to_text(items[i]);
  }
  return out;
}

}  // namespace

std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = Distance(word, candidate);
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t allowed = std::max<std::size_t>(1, longer / 3);
    if (distance <= allowed && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty() || word.empty()) return best;
  const std::string part = "-" + std::string(word) + "-";
  for (const std::string& candidate : candidates) {
    if (("-" + candidate + "-").find(part) != std::string::npos) return candidate;
  }
  return best;
}

std::string ThereAre(const std::vector<std::string>& words) {
  if (words.empty()) return "there is none";
  return (words.size() == 1 ? "there is " : "there are ") + Enumerate(words);
}

std::string Enumerate(const std::vector<std::string>& words, std::string_view last) {
  return Join(words, last, [](const std::string& w) { return w; });
}

std::string Enumerate(const std::vector<int>& numbers, std::string_view last) {
  return Join(numbers, last, [](int n) { return std::to_string(n); });
}

std::vector<int> Divisors(long long n) {
  std::vector<int> low, high;
  for (long long d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(static_cast<int>(d));
    if (d * d != n) high.push_back(static_cast<int>(n / d));
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::string ShortNumber(double value) {
  char buffer[40];
  // Integers up to 2^53 read better without an exponent, and are exact.
  if (std::abs(value) < 9007199254740992.0 && value == std::floor(value)) {
    const auto whole = std::to_chars(buffer, buffer + sizeof buffer, static_cast<long long>(value));
    return std::string(buffer, whole.ptr);
  }
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

std::string Significant(double value, int digits) {
  char buffer[64];
  if (value == 0 || !std::isfinite(value)) {
    std::snprintf(buffer, sizeof buffer, "%g", value);
    return buffer;
  }
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (magnitude > 12 || magnitude < -6) {
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  } else {
    std::snprintf(buffer, sizeof buffer, "%.*f", std::max(0, digits - 1 - magnitude), value);
  }
  return buffer;
}

std::string WithThousands(long long value) {
  const std::string digits = std::to_string(std::llabs(value));
  std::string out = value < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out.push_back(',');
    out.push_back(digits[i]);
  }
  return out;
}

std::string Wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out, line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      out += (out.empty() ? "" : std::string(indent, ' ')) + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return out + (out.empty() ? "" : std::string(indent, ' ')) + line + "\n";
}

}  // namespace shardlab
