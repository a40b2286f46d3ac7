#include "core/explain_transfers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/overlapped_pairs.h"

namespace shardlab {

// Atoms of size one change no group: an axis is named as a whole with them, and an axis of one
// rank not at all.
std::string ExplainTransfers::AxisName(AtomMask mask) const {
  AtomMask with = 0;
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    if ((mask >> a & 1) && plan_.atom[a] > 1) with = static_cast<AtomMask>(with | (1u << a));
  }
  AtomMask absent = 0;
  for (const Axis& axis : c_.edited.mesh.axes()) {
    if (!axis.borrows && plan_.Size(axis.atoms) == 1) absent |= axis.atoms;
  }
  mask = static_cast<AtomMask>(mask & ~absent);
  for (const Axis& axis : c_.edited.mesh.axes()) {
    if (axis.borrows && (mask & axis.atoms & ~axis.spans) != 0 && (mask & ~axis.atoms) == 0 &&
        plan_.Size(mask) == plan_.Size(axis.atoms))
      return axis.name;
  }
  for (const Axis& axis : c_.edited.mesh.axes()) {
    if (!axis.borrows && plan_.Size(axis.atoms) > 1 &&
        plan_.Size(axis.atoms) == plan_.Size(axis.atoms & mask))
      with |= axis.atoms;
  }
  AtomMask whole = 0;
  for (const Axis& axis : c_.edited.mesh.axes()) {
    if (!axis.borrows && (axis.atoms & ~with) == 0) whole |= axis.atoms;
  }
  // A borrower of part of an axis may have atoms of one rank, of axes that are not there.
  for (const Axis& axis : c_.edited.mesh.axes()) {
    const auto own = static_cast<AtomMask>(axis.atoms & ~axis.spans & ~whole);
    if (axis.borrows && plan_.Size(own) > 1 && plan_.Size(own) == plan_.Size(own & mask))
      with |= axis.atoms & ~axis.spans;
  }
  return c_.edited.mesh.NameOf(with, absent);
}

TransferEntry ExplainTransfers::Transfer(const TransferRow& row, double layers) const {
  TransferEntry entry;
  const TransferPrice& price = c_.form.transfer_prices[row.price];
  const double payload = CallBytes(c_, plan_, price, w_);
  const bool copy = price.collective == Collective::kHostCopy;
  const double transfers = layers * (row.when == When::kMicroBatch ? Passes() : 1) / row.unit;
  entry.axis = copy         ? Name(AxisRole::kHost)
               : price.ends ? Name(AxisRole::kPipeline)
                            : AxisName(c_.form.masks[price.mask]);
  entry.role = row.role;
  entry.collective = Name(price.collective);
  entry.phase = Name(row.phase);
  entry.count = price.bucket > 0 ? transfers * Payload(price, w_) / payload : transfers;
  if (price.ends) {
    entry.span = w_.spans.PipelineHop();
  } else if (!copy) {
    entry.span = w_.span_of[price.mask];
  }
  entry.group_size = entry.span.size;
  const TransferShape shape{price.collective, Bytes(payload), price.copies, price.domains};
  entry.bytes_per_call = SentShare(price.collective, entry.group_size) * payload;
  entry.bytes = entry.count * entry.bytes_per_call;
  entry.tier = copy ? "host" : c_.hardware->machine().tiers[Size(entry.span.outermost)].name;
  entry.algorithm = copy ? "copy" : c_.network->Algorithm(shape, entry.span);
  entry.seconds = entry.exposed_seconds = transfers * w_.transfer_seconds[row.price];
  if (row.step >= 0) {
    const Step& step = c_.edited.derived.steps[Size(row.step)];
    entry.tensor = program_.tensor(step.source.tensor).name;
    if (row.tensors > 1)
      entry.tensor = absl::StrCat(program_.classes[row.layer_class].name, " weights");
    if (step.source.gradient) entry.tensor += " gradient";
    entry.author = Author(step.author);
    entry.realised = step.realised;
  } else if (row.update_of.valid()) {
    entry.tensor = absl::StrCat(program_.classes[row.layer_class].name,
                                row.phase == Phase::kUpdate ? " matrices, whole to their ranks"
                                                            : " updates, back to their shards");
    entry.why = "the optimizer works on whole matrices, of which each rank has a part";
    entry.author = c_.optimizer_name;
  } else {
    const Declared& declared = c_.edited.derived.declared[Size(row.declared)];
    entry.tensor = declared.name;
    entry.why = declared.why;
    entry.author = Author(declared.author);
    entry.declared = true;
  }
  return entry;
}

// Overlapped pairs hide so much of what blocks a pass; each takes its share of it.
void ExplainTransfers::HideInPairs(int rank, const std::vector<bool>& in_pass,
                                   std::vector<TransferEntry>& transfers) const {
  if (!PairsOverlap(c_, order_)) return;
  const std::array<double, kAxisRoles> hidden = HiddenInPairs(c_, plan_, rank, *order_, w_);
  std::array<double, kAxisRoles> all{};
  const auto role = [&](std::size_t i) { return static_cast<std::size_t>(transfers[i].role); };
  for (std::size_t i = 0; i < in_pass.size(); ++i)
    all[role(i)] += in_pass[i] ? transfers[i].exposed_seconds : 0;
  for (std::size_t i = 0; i < in_pass.size(); ++i) {
    TransferEntry& t = transfers[i];
    if (in_pass[i] && all[role(i)] > 0)
      t.exposed_seconds *= 1 - std::min(1.0, hidden[role(i)] / all[role(i)]);
  }
}

void ExplainTransfers::Pipeline(int rank, double exposed,
                                std::vector<TransferEntry>& transfers) const {
  if (plan_.pipeline == 1) return;
  const auto add = [&](double sends, const char* tensor, Phase phase) {
    if (sends == 0) return;
    TransferEntry entry;
    entry.axis = "pipeline";
    entry.role = AxisRole::kPipeline;
    entry.collective = Name(Collective::kSendRecv);
    entry.tensor = tensor;
    entry.phase = Name(phase);
    entry.author = c_.schedule_name;
    entry.count = sends;
    entry.span = w_.spans.PipelineHop();
    entry.group_size = plan_.pipeline;
    entry.bytes_per_call = w_.blocks[c_.form.boundary];
    entry.bytes = entry.count * entry.bytes_per_call;
    entry.tier = c_.hardware->machine().tiers[Size(entry.span.outermost)].name;
    entry.algorithm =
        c_.network->Algorithm({Collective::kSendRecv, Bytes(entry.bytes_per_call)}, entry.span);
    entry.seconds = entry.count * HopSeconds(c_, w_);
    transfers.push_back(std::move(entry));
  };
  add(order_->sends[2 * Size(rank)], "activations", Phase::kForward);
  add(order_->sends[2 * Size(rank) + 1], "gradients", Phase::kInputGradient);
  double sent = 0;
  const auto message = [](const TransferEntry& t) {
    return t.role == AxisRole::kPipeline && !t.declared;
  };
  for (const TransferEntry& t : transfers) sent += message(t) ? t.seconds : 0;
  for (TransferEntry& t : transfers) {
    if (message(t) && sent > 0) t.exposed_seconds = exposed * t.seconds / sent;
  }
  if (order_->copies > 1) transfers.push_back(Copies(rank));
}

TransferEntry ExplainTransfers::Copies(int rank) const {
  TransferEntry entry;
  const double payload = CopiedBytes(c_, plan_, rank, *order_, w_);
  const TransferShape shape{Collective::kAllReduce, Bytes(payload)};
  entry.axis = "pipeline";
  entry.role = AxisRole::kPipeline;
  entry.collective = Name(shape.collective);
  entry.tensor = "gradients of stages held twice";
  entry.phase = Name(Phase::kReduce);
  entry.author = c_.schedule_name;
  entry.count = 1;
  entry.span = CopiesSpan(*order_, w_);
  entry.group_size = order_->copies;
  entry.bytes_per_call = entry.bytes = SentShare(shape.collective, entry.group_size) * payload;
  entry.tier = c_.hardware->machine().tiers[Size(entry.span.outermost)].name;
  entry.algorithm = c_.network->Algorithm(shape, entry.span);
  entry.seconds = c_.network->TransferTime(shape, entry.span).value();
  entry.exposed_seconds = c_.exposed_transfers ? entry.seconds : 0;
  return entry;
}

}  // namespace shardlab
