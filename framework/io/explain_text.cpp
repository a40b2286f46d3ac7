#include "io/explain_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

bool Wants(const std::string& account, const char* name) {
  return account.empty() || account == name;
}

void ExplainMemoryText(const PlannedScenario& planned, const std::string& account,
                       const TextStyle& style, std::string* out) {
  for (std::size_t r = 0; r < planned.explanation.ranks.size(); ++r) {
    const RankExplanation& rank = planned.explanation.ranks[r];
    for (std::size_t i = 0; i <= kAccounts; ++i) {
      const auto own = static_cast<Account>(i);
      const double total = own == Account::kHost ? rank.memory.host : rank.memory.bytes[i];
      if (!Wants(account, Name(own)) || (total == 0 && account.empty())) continue;
      absl::StrAppend(
          out,
          style.Bold(absl::StrCat("pipeline rank ", r, ": ", Name(own), " ", FormatBytes(total))),
          "\n");
      std::vector<const MemoryEntry*> rows;
      for (const MemoryEntry& e : rank.entries) {
        if (e.account == own) rows.push_back(&e);
      }
      std::stable_sort(rows.begin(), rows.end(),
                       [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
      for (const MemoryEntry* e : rows) {
        absl::StrAppend(out, absl::StrFormat("  %11s  %-34s by %s\n", FormatBytes(e->bytes), e->row,
                                             e->author));
        absl::StrAppend(out, "               = ", e->formula, "\n");
        absl::StrAppend(out, style.Dim(absl::StrCat("               ", e->source)), "\n");
      }
    }
  }
}

constexpr const char* kInitialisation = "initialisation_peak";
constexpr const char* kFirstStep = "first_step_peak";

// Peaks of their own beside the accounts of a step: shown when they are asked for.
void ExplainFirstText(const PlannedScenario& planned, const std::string& account,
                      const TextStyle& style, std::string* out) {
  const bool initialisation = account == kInitialisation;
  if (!initialisation && account != kFirstStep) return;
  for (std::size_t r = 0; r < planned.explanation.ranks.size(); ++r) {
    const FirstPeaks& first = planned.explanation.ranks[r].first;
    const double total = initialisation ? first.initialisation : first.first_step;
    absl::StrAppend(out,
                    style.Bold(absl::StrCat("pipeline rank ", r, ": ",
                                            initialisation ? "initialisation" : "first step",
                                            " peak ", FormatBytes(total))),
                    "\n");
    for (const FirstEntry& e : first.entries) {
      if (e.initialisation != initialisation) continue;
      absl::StrAppend(
          out, absl::StrFormat("  %11s  %-34s by %s\n", FormatBytes(e.bytes), e.row, e.author));
      absl::StrAppend(out, style.Dim(absl::StrCat("               ", e.source)), "\n");
    }
  }
}

}  // namespace

std::vector<std::string> ExplainableAccounts() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kAccounts; ++i) names.emplace_back(Name(static_cast<Account>(i)));
  names.insert(names.end(),
               {Name(Account::kHost), kInitialisation, kFirstStep, "time", "communication"});
  return names;
}

std::string ExplainText(const PlannedScenario& planned, const std::string& account,
                        const TextStyle& style) {
  const Explanation& x = planned.explanation;
  std::string out;
  ExplainMemoryText(planned, account, style, &out);
  ExplainFirstText(planned, account, style, &out);
  if (Wants(account, "time")) {
    absl::StrAppend(
        &out,
        style.Bold(absl::StrCat("time of pipeline rank ", x.evaluation.time_rank, ", per step")),
        "\n");
    for (const TimeEntry& e : x.times) {
      absl::StrAppend(&out, absl::StrFormat("  %11s  %-9s  %-30s by %s\n", FormatSeconds(e.seconds),
                                            e.part, e.row, e.author));
      absl::StrAppend(&out, "               = ", e.formula, "\n");
    }
  }
  if (Wants(account, "communication")) {
    absl::StrAppend(&out,
                    style.Bold(absl::StrCat("communication of a device of pipeline rank ",
                                            x.transfer_rank, ", per step")),
                    "\n");
    for (const TransferEntry& t : x.transfers) {
      absl::StrAppend(
          &out, absl::StrFormat("  %11s  %-15s %-30s over %s %d, by %s%s\n", FormatBytes(t.bytes),
                                t.collective, t.tensor, t.axis, t.group_size, t.author,
                                t.declared ? " (declared)" : ""));
      absl::StrAppend(&out, "               = ", ShortNumber(t.count), " calls x ",
                      FormatBytes(t.bytes_per_call), " sent, ", t.phase, ", ", t.algorithm, " on ",
                      t.tier, ": ", FormatSeconds(t.seconds), ", ",
                      FormatSeconds(t.exposed_seconds), " exposed\n");
      if (!t.why.empty())
        absl::StrAppend(&out, style.Dim(absl::StrCat("               ", t.why)), "\n");
    }
  }
  return out;
}

Json ExplainDocument(const PlannedScenario& planned, const std::string& account) {
  const Explanation& x = planned.explanation;
  Json doc = {{"schema", "shardlab.explanation/1"}, {"scenario", planned.composed.name}};
  doc["ranks"] = Json::array();
  for (std::size_t r = 0; r < x.ranks.size(); ++r) {
    Json entries = Json::array();
    for (const MemoryEntry& e : x.ranks[r].entries) {
      if (!Wants(account, Name(e.account))) continue;
      entries.push_back({{"account", Name(e.account)},
                         {"author", e.author},
                         {"row", e.row},
                         {"formula", e.formula},
                         {"source", e.source},
                         {"bytes", e.bytes}});
    }
    for (const FirstEntry& e : x.ranks[r].first.entries) {
      // Peaks of their own, and no part of a step's accounts.
      if (account != (e.initialisation ? kInitialisation : kFirstStep)) continue;
      entries.push_back({{"account", account},
                         {"author", e.author},
                         {"row", e.row},
                         {"formula", e.formula},
                         {"source", e.source},
                         {"bytes", e.bytes}});
    }
    doc["ranks"].push_back({{"pipeline_rank", r}, {"entries", entries}});
  }
  if (Wants(account, "time")) {
    doc["time"] = Json::array();
    for (const TimeEntry& e : x.times) {
      doc["time"].push_back({{"part", e.part},
                             {"author", e.author},
                             {"row", e.row},
                             {"formula", e.formula},
                             {"seconds", e.seconds}});
    }
  }
  if (Wants(account, "communication")) {
    doc["communication"] = Json::array();
    for (const TransferEntry& t : x.transfers) {
      doc["communication"].push_back({{"axis", t.axis},
                                      {"collective", t.collective},
                                      {"tensor", t.tensor},
                                      {"phase", t.phase},
                                      {"author", t.author},
                                      {"count", t.count},
                                      {"bytes", t.bytes},
                                      {"seconds", t.seconds},
                                      {"exposed_seconds", t.exposed_seconds},
                                      {"declared", t.declared},
                                      {"why", t.why}});
    }
  }
  return doc;
}

}  // namespace shardlab
