#pragma once
// Data types as data: which dtype each kind of number has. A recipe is a named set of these.
//
//   Precision p;                         // bf16 with 4-byte master weights and moments
//   p.BytesOf(DtypeSlot::kMaster);       // 4

#include <cstdint>
#include <string>
#include <string_view>

#include "base/export.h"

namespace shardlab {

enum class Dtype : std::uint8_t {
  kNone,
  kFp64,
  kFp32,
  kTf32,
  kBf16,
  kFp16,
  kFp8,
  kInt8,
  kFp4,
  kBool
};

SHARDLAB_EXPORT const char* Name(Dtype dtype);                       // "bf16"
SHARDLAB_EXPORT bool ParseDtype(std::string_view text, Dtype* out);  // false: no such dtype
SHARDLAB_EXPORT double BytesPerElement(Dtype dtype);                 // kNone 0, fp4 0.5

// What a tensor's elements are, before a scenario says which dtype that is.
enum class DtypeSlot : std::uint8_t {
  kParameters,
  kCompute,
  kGradients,       // accumulated in memory
  kGradientReduce,  // on the wire
  kMaster,
  kMoments,
  kStatistics,  // soft-max sums, normalisation factors: fp32 whatever the recipe
  kMask,        // one byte
  kIndex,       // token ids; not counted
};

struct Precision {
  std::string recipe;
  Dtype parameters = Dtype::kBf16;
  Dtype compute = Dtype::kBf16;
  Dtype gradients = Dtype::kBf16;
  Dtype gradient_reduce = Dtype::kBf16;
  Dtype master = Dtype::kFp32;  // kNone: the parameters are their own master copy
  Dtype moments = Dtype::kFp32;
  // Bytes for each element of a product's weight: copies of it in a narrower compute dtype.
  double weight_copies = 0;

  friend bool operator==(const Precision&, const Precision&) = default;
};

SHARDLAB_EXPORT Dtype DtypeOf(const Precision& precision, DtypeSlot slot);
SHARDLAB_EXPORT double BytesOf(const Precision& precision, DtypeSlot slot);

}  // namespace shardlab
