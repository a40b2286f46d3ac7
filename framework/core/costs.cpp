// The costs of each layer class: sizes on a rank, bytes, seconds of ops and transfers. The first
// half of Evaluate, see core/evaluate.h.

#include <algorithm>

#include "core/evaluate.h"
#include "core/evaluate_memory.h"

namespace shardlab {
namespace {

std::size_t Index(AxisRole role) { return static_cast<std::size_t>(role); }
std::size_t Index(Bucket bucket) { return static_cast<std::size_t>(bucket); }
std::size_t Size(int n) { return static_cast<std::size_t>(n); }

void FillSizes(const Composition& c, const Plan& plan, Workspace& w, bool all_blocks) {
  const Form& form = c.form;
  for (std::size_t i = 0; i < form.masks.size(); ++i) w.degrees[i] = plan.Size(form.masks[i]);
  // Plain pointers: writes of doubles may alias the vectors' own.
  const double* const degrees = w.degrees.data();
  double* const locals = w.locals.data();
  double* const products = w.products.data();
  double* const filled = w.blocks.data();
  const double batch = plan.micro_batch_size * static_cast<double>(plan.Size(form.batch_atoms));
  const bool ceiling = c.rules.ceiling_division;
  const std::size_t sizes = form.locals.size(), nodes = form.products.size();
  for (std::size_t i = 0; i < sizes; ++i) {
    const LocalSize& local = form.locals[i];
    double cut = (local.batch ? batch : local.size) / degrees[local.mask];
    if (ceiling) {
      const double floor = static_cast<double>(static_cast<std::int64_t>(cut));
      cut = floor < cut ? floor + 1 : floor;
    }
    locals[i] = cut;
  }
  products[0] = 1;
  const ProductNode* const node = form.products.data();
  for (std::size_t i = 1; i < nodes; ++i)
    products[i] = products[node[i].parent] * locals[node[i].local];
  const std::size_t blocks = all_blocks ? form.blocks.size() : form.hot_blocks;
  const Block* const block = form.blocks.data();
  for (std::size_t i = 0; i < blocks; ++i) {
    const double whole = block[i].coefficient * products[block[i].product];
    filled[i] = block[i].flat == 0 ? whole : whole / degrees[block[i].flat];
  }
}

// What of a shape no plan changes.
OpShape Unsized(const OpPrice& price) {
  OpShape shape;
  shape.kind = price.kind;
  shape.phase = price.phase;
  shape.scores_in_memory = price.scores_in_memory;
  return shape;
}

inline void FillShape(const OpPrice& price, const double* blocks, double tokens, OpShape* shape) {
  const double m = blocks[price.m], n = blocks[price.n], k = blocks[price.k];
  shape->m = m;
  shape->n = n;
  shape->k = k;
  shape->flops = price.flops * m * n * k;
  double bytes = 0;
  for (std::uint8_t i = 0; i < price.bytes; ++i) bytes += blocks[price.block[i]];
  shape->bytes = bytes;
  shape->tokens = tokens;
}

// The costs of all classes as one array, which Slots index.
double* Numbers(Workspace& w) { return reinterpret_cast<double*>(w.costs.data()); }

void AddOps(const Composition& c, Workspace& w) {
  const double* const blocks = w.blocks.data();
  const double tokens = blocks[c.form.tokens];
  OpShape* const shapes = w.shapes.data();
  double* const seconds = w.op_seconds.data();
  const OpPrice* const prices = c.form.op_prices.data();
  const std::size_t count = w.shapes.size();
  for (std::size_t i = 0; i < count; ++i) FillShape(prices[i], blocks, tokens, &shapes[i]);
  c.hardware->OpTimes(shapes, count, seconds);
  double* const at = Numbers(w);
  // Sums stay in a register: a sum that goes through memory waits for its last write each time.
  const OpSlot* slot = w.slots.ops.data();
  for (const SlotRun& run : w.slots.op_runs) {
    double sum = 0;
    for (const OpSlot* const end = slot + run.count; slot != end; ++slot)
      sum += slot->count * seconds[slot->price];
    at[run.at] += sum;
  }
}

void AddMemory(Workspace& w) {
  double* const at = Numbers(w);
  const double* const blocks = w.blocks.data();
  const double* const degrees = w.degrees.data();
  const MemorySlot* slot = w.slots.memory.data();
  for (const SlotRun& run : w.slots.memory_runs) {
    double sum = 0;
    for (const MemorySlot* const end = slot + run.count; slot != end; ++slot) {
      if (slot->when == 0 || degrees[slot->when] > 1) sum += blocks[slot->block];
    }
    at[run.at] += sum;
  }
}

// Between the first and the last pipeline rank, which are as far apart as neighbours at the most.
double EndsSeconds(const Composition& c, const Plan& plan, const TransferPrice& price,
                   const Workspace& w) {
  if (plan.pipeline == 1) return 0;
  return c.network
      ->TransferTime({price.collective, Bytes(Payload(price, w))}, w.spans.PipelineHop())
      .value();
}

// How many calls the reductions of a layer are, and what the largest copied bucket holds.
void AddPieces(const Composition& c, const Plan& plan, Workspace& w) {
  w.bucket_bytes = 0;
  for (ClassCosts& cost : w.costs) cost.pieces = 0;
  for (const TransferTerm& term : c.form.transfer_terms) {
    const TransferPrice& price = c.form.transfer_prices[term.row.price];
    if (price.bucket == 0 || term.row.phase != Phase::kReduce || w.degrees[price.mask] <= 1)
      continue;
    const double call = CallBytes(c, plan, price, w);
    w.costs[term.row.layer_class].pieces += term.count * Payload(price, w) / call;
    if (price.copied) w.bucket_bytes = std::max(w.bucket_bytes, call);
  }
}

void AddTransfers(const Composition& c, const Plan& plan, Workspace& w) {
  const std::size_t count = c.form.transfer_prices.size();
  for (std::size_t i = 0; i < count; ++i) {
    const TransferPrice& price = c.form.transfer_prices[i];
    if (price.collective == Collective::kHostCopy) {
      w.transfer_seconds[i] = Payload(price, w) / c.hardware->machine().host_bandwidth.value();
      continue;
    }
    if (price.ends) {
      w.transfer_seconds[i] = EndsSeconds(c, plan, price, w);
      continue;
    }
    if (w.degrees[price.mask] <= 1) {
      w.transfer_seconds[i] = 0;
      continue;
    }
    const double call = price.bucket > 0 ? CallBytes(c, plan, price, w) : Payload(price, w);
    w.transfer_seconds[i] =
        c.network
            ->TransferTime({price.collective, Bytes(call), price.copies, price.domains},
                           w.span_of[price.mask])
            .value();
    if (price.bucket > 0) w.transfer_seconds[i] *= Payload(price, w) / call;
  }
  if (c.form.buckets) AddPieces(c, plan, w);
  std::fill(w.ring_seconds.begin(), w.ring_seconds.end(), 0.0);
  double* const at = Numbers(w);
  const double* const took = w.transfer_seconds.data();
  const int each = plan.micro_batches / w.copies;
  const double passes = each;
  for (const TransferSlot& slot : w.slots.transfers) {
    double seconds = slot.count * took[slot.price];
    if (slot.ring >= 0) {
      w.ring_seconds[static_cast<std::size_t>(slot.ring)] += seconds;
    } else if (seconds > 0) {
      if (slot.each_pass) seconds *= passes;
      at[slot.at] += slot.scale * seconds;
      at[slot.rest] += slot.rest_scale * seconds;
      at[slot.calls_at] += slot.calls;
    }
  }
}

// The op works on one piece after another while the next is on its way; its first piece is there
// from the start, so that n - 1 of n pieces of its time cover the n - 1 pieces that travel.
void AddRings(const Composition& c, Workspace& w) {
  for (std::size_t i = 0; i < c.form.rings.size(); ++i) {
    const Ring& ring = c.form.rings[i];
    const double seconds = w.ring_seconds[i];
    if (seconds == 0) continue;
    const double cover = (1 - 1 / w.degrees[ring.mask]) * w.op_seconds[ring.op_price];
    double shown = std::max(0.0, seconds - cover);
    shown += (1 - c.overlap_share) * (seconds - shown);
    ClassCosts& cost = w.costs[ring.layer_class];
    (ring.forward ? cost.blocking_forward : cost.blocking_backward)[Index(ring.role)] += shown;
    cost.hidden[Index(ring.role)] += seconds - shown;
  }
}

// Kernels are started by the host one after another: a pass never takes less than starting them
// all. What the device waits is compute of the pass.
void WaitForHost(double host_seconds, const Form::ClassRow& row, ClassCosts& cost) {
  cost.calls_forward += row.calls_forward;
  cost.calls_backward += row.calls_backward;
  cost.wait_forward = std::max(0.0, cost.calls_forward * host_seconds - cost.slot_forward);
  // Apart, so that a split backward never gets shorter where the weights' part gets longer.
  double& weight = cost.seconds[Index(Bucket::kWeightGradient)];
  cost.wait_backward =
      std::max(0.0, cost.calls_backward * host_seconds - (cost.slot_backward - weight));
  cost.wait_weight = std::max(0.0, row.calls_weight * host_seconds - weight);
  weight += cost.wait_weight;
  cost.slot_forward += cost.wait_forward;
  cost.slot_backward += cost.wait_backward + cost.wait_weight;
  cost.seconds[Index(Bucket::kForward)] += cost.wait_forward;
  cost.seconds[Index(Bucket::kInputGradient)] += cost.wait_backward;
}

void SumUp(const Composition& c, Workspace& w) {
  const auto sum = [&c](const std::array<double, kAxisRoles>& values) {
    double total = 0;
    for (const std::uint8_t r : c.form.roles) total += values[r];
    return total;
  };
  for (std::size_t k = 0, classes = w.costs.size(); k < classes; ++k) {
    ClassCosts& cost = w.costs[k];
    cost.slot_forward = cost.seconds[Index(Bucket::kForward)] + sum(cost.blocking_forward);
    cost.slot_backward = cost.seconds[Index(Bucket::kInputGradient)] +
                         cost.seconds[Index(Bucket::kWeightGradient)] +
                         cost.seconds[Index(Bucket::kReplay)] + sum(cost.blocking_backward);
    if (c.host_seconds > 0 && k < c.form.classes.size())
      WaitForHost(c.host_seconds, c.form.classes[k], cost);
    cost.step_now = sum(cost.step_blocking);
    cost.step_late = sum(cost.step_trailing);
  }
}

}  // namespace

Workspace::Workspace(const Composition& c)
    : slots(c),
      spans(c.edited.mesh, c.hardware->machine().tiers),
      degrees(c.form.masks.size()),
      locals(c.form.locals.size()),
      products(c.form.products.size()),
      blocks(c.form.blocks.size()),
      op_seconds(c.form.op_prices.size()),
      transfer_seconds(c.form.transfer_prices.size()),
      ring_seconds(c.form.rings.size()),
      span_of(c.form.masks.size()),
      costs(c.form.classes.size() + 1) {
  for (const OpPrice& price : c.form.op_prices) shapes.push_back(Unsized(price));
}

OpShape ShapeOf(const Composition& c, const OpPrice& price, const Workspace& w) noexcept {
  OpShape shape = Unsized(price);
  FillShape(price, w.blocks.data(), w.blocks[c.form.tokens], &shape);
  return shape;
}

double Payload(const TransferPrice& price, const Workspace& w) noexcept {
  double bytes = 0;
  for (const std::uint16_t block : price.payload) bytes += w.blocks[block];
  return bytes;
}

double CallBytes(const Composition& c, const Plan& plan, const TransferPrice& price,
                 const Workspace& w) noexcept {
  if (price.bucket == 0) return Payload(price, w);
  double together = 0;
  const int stages = static_cast<int>(c.splits[Size(plan.split)].layers.size());
  for (const TransferTerm& term : c.form.transfer_terms) {
    const TransferPrice& other = c.form.transfer_prices[term.row.price];
    if (other.bucket != price.bucket || other.collective != price.collective ||
        other.mask != price.mask)
      continue;
    for (int stage = 0; stage < stages; ++stage)
      together += term.count * Payload(other, w) * LayersOn(c, plan, stage, term.row.layer_class);
  }
  return std::min(price.bucket, together / plan.pipeline);
}

void ComputeCosts(const Composition& c, const Plan& plan, int pipeline_rank, Workspace& w,
                  bool all_blocks) noexcept {
  FillSizes(c, plan, w, all_blocks);
  for (std::size_t i = 0; i < c.form.masks.size(); ++i) {
    if (w.degrees[i] > 1) w.span_of[i] = w.spans.Of(c.form.masks[i], pipeline_rank);
  }
  double* const at = Numbers(w);
  for (const std::uint16_t slot : w.slots.added) at[slot] = 0;
  AddMemory(w);
  for (const UpdateRow& row : c.form.updates)
    w.costs[row.layer_class].update += UpdateSeconds(c, row, w);
  for (const BufferRow& row : c.form.buffers) {
    double bytes = 0;
    for (const BufferRow::Part& part : row.parts)
      bytes += w.degrees[part.when] > 1 ? w.blocks[part.block] : 0;
    double& most = w.costs[row.layer_class].bytes[kBufferSlot];
    most = std::max(most, bytes);
  }
  AddOps(c, w);
  AddTransfers(c, plan, w);
  AddRings(c, w);
  SumUp(c, w);
}

}  // namespace shardlab
