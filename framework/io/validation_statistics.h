#pragma once
// Errors of predictions, as numbers: no rows, no files. Errors are predicted / measured - 1.
//
//   ErrorSummary s = Summarise({{"a", 1.0, 1.1}, {"b", 2.0, 1.8}});   // mean_absolute 0.1

#include <string>
#include <vector>

namespace shardlab {

struct Judged {
  std::string id;
  double measured = 0, predicted = 0;
  double Error() const { return predicted / measured - 1; }
};

struct ErrorSummary {
  int rows = 0;
  double mean_absolute = 0, median_absolute = 0;
  double bias = 0;   // mean of the signed errors
  double worst = 0;  // signed
  std::string worst_id;
  double within_5 = 0, within_10 = 0, within_20 = 0;  // shares of the rows
};
ErrorSummary Summarise(const std::vector<Judged>& judged);

// The factor c that makes the mean of |c x predicted / measured - 1| least: a weighted median of
// measured / predicted with weights predicted / measured. 0 for no rows.
double BestFactor(const std::vector<Judged>& judged);
// Mean of |factor x predicted / measured - 1|.
double MeanAbsoluteError(const std::vector<Judged>& judged, double factor = 1);

// Of pairs of rows of one group: those in the same order as measured, and the other way round.
// tau = (concordant - discordant) / pairs (Kendall's a); pairs of equal measurements do not count.
struct RankAgreement {
  int groups = 0, pairs = 0, concordant = 0, discordant = 0;
  double tau() const {
    return pairs == 0 ? 0 : static_cast<double>(concordant - discordant) / pairs;
  }
  // What choosing the row that is predicted best costs over the best one measured; mean over
  // groups.
  double regret = 0;
};
RankAgreement AgreementOf(const std::vector<std::vector<Judged>>& groups);

// 0 or 1 by the id alone (FNV-1a), so that a row is in the same half in every file.
int HalfOf(const std::string& id);

}  // namespace shardlab
