#include "io/validation_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace shardlab {

ErrorSummary Summarise(const std::vector<Judged>& judged) {
  ErrorSummary s;
  s.rows = static_cast<int>(judged.size());
  if (judged.empty()) return s;
  std::vector<double> absolute;
  for (const Judged& j : judged) {
    const double error = j.Error(), size = std::abs(error);
    absolute.push_back(size);
    s.mean_absolute += size / s.rows;
    s.bias += error / s.rows;
    s.within_5 += size <= 0.05 ? 1.0 / s.rows : 0;
    s.within_10 += size <= 0.10 ? 1.0 / s.rows : 0;
    s.within_20 += size <= 0.20 ? 1.0 / s.rows : 0;
    if (s.worst_id.empty() || size > std::abs(s.worst)) {
      s.worst = error;
      s.worst_id = j.id;
    }
  }
  std::sort(absolute.begin(), absolute.end());
  const std::size_t half = absolute.size() / 2;
  s.median_absolute =
      absolute.size() % 2 == 1 ? absolute[half] : (absolute[half - 1] + absolute[half]) / 2;
  return s;
}

double BestFactor(const std::vector<Judged>& judged) {
  std::vector<std::pair<double, double>> ratio_weight;
  double total = 0;
  for (const Judged& j : judged) {
    if (j.predicted <= 0) continue;
    ratio_weight.emplace_back(j.measured / j.predicted, j.predicted / j.measured);
    total += j.predicted / j.measured;
  }
  std::sort(ratio_weight.begin(), ratio_weight.end());
  double sum = 0;
  for (const auto& [ratio, weight] : ratio_weight) {
    sum += weight;
    if (sum >= total / 2) return ratio;
  }
  return 0;
}

double MeanAbsoluteError(const std::vector<Judged>& judged, double factor) {
  double sum = 0;
  for (const Judged& j : judged) sum += std::abs(factor * j.predicted / j.measured - 1);
  return judged.empty() ? 0 : sum / static_cast<double>(judged.size());
}

RankAgreement AgreementOf(const std::vector<std::vector<Judged>>& groups) {
  RankAgreement out;
  double regret = 0;
  for (const std::vector<Judged>& group : groups) {
    if (group.size() < 2) continue;
    ++out.groups;
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::size_t k = i + 1; k < group.size(); ++k) {
        const double measured = group[i].measured - group[k].measured;
        const double predicted = group[i].predicted - group[k].predicted;
        if (measured == 0) continue;
        ++out.pairs;
        if (measured * predicted > 0) ++out.concordant;
        if (measured * predicted < 0) ++out.discordant;
      }
    }
    const auto by_predicted = [](const Judged& a, const Judged& b) {
      return a.predicted < b.predicted;
    };
    const auto by_measured = [](const Judged& a, const Judged& b) {
      return a.measured < b.measured;
    };
    const Judged& chosen = *std::min_element(group.begin(), group.end(), by_predicted);
    const Judged& best = *std::min_element(group.begin(), group.end(), by_measured);
    regret += chosen.measured / best.measured - 1;
  }
  out.regret = out.groups == 0 ? 0 : regret / out.groups;
  return out;
}

int HalfOf(const std::string& id) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : id) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  // The low bit of FNV-1a is the parity of the characters' low bits; a high one is mixed.
  return static_cast<int>((hash >> 40) & 1u);
}

}  // namespace shardlab
