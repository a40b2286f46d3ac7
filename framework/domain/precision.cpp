#include "domain/precision.h"

#include <array>

namespace shardlab {
namespace {

struct DtypeFacts {
  Dtype dtype;
  const char* name;
  double bytes;
};

constexpr std::array<DtypeFacts, 10> kDtypes = {{{Dtype::kNone, "none", 0},
                                                 {Dtype::kFp64, "fp64", 8},
                                                 {Dtype::kFp32, "fp32", 4},
                                                 {Dtype::kTf32, "tf32", 4},
                                                 {Dtype::kBf16, "bf16", 2},
                                                 {Dtype::kFp16, "fp16", 2},
                                                 {Dtype::kFp8, "fp8", 1},
                                                 {Dtype::kInt8, "int8", 1},
                                                 {Dtype::kFp4, "fp4", 0.5},
                                                 {Dtype::kBool, "bool", 1}}};

}  // namespace

const char* Name(Dtype dtype) {
  for (const DtypeFacts& facts : kDtypes) {
    if (facts.dtype == dtype) return facts.name;
  }
  return "none";
}

bool ParseDtype(std::string_view text, Dtype* out) {
  for (const DtypeFacts& facts : kDtypes) {
    if (text == facts.name) {
      *out = facts.dtype;
      return true;
    }
  }
  return false;
}

double BytesPerElement(Dtype dtype) {
  for (const DtypeFacts& facts : kDtypes) {
    if (facts.dtype == dtype) return facts.bytes;
  }
  return 0;
}

Dtype DtypeOf(const Precision& precision, DtypeSlot slot) {
  switch (slot) {
    case DtypeSlot::kParameters:
      return precision.parameters;
    // Saved tensors of an fp8 run stay in bf16 unless an op says otherwise; products alone run in
    // fp8.
    case DtypeSlot::kCompute:
      return precision.compute == Dtype::kFp8 ? Dtype::kBf16 : precision.compute;
    case DtypeSlot::kGradients:
      return precision.gradients;
    case DtypeSlot::kGradientReduce:
      return precision.gradient_reduce;
    case DtypeSlot::kMaster:
      return precision.master;
    case DtypeSlot::kMoments:
      return precision.moments;
    case DtypeSlot::kStatistics:
      return Dtype::kFp32;
    case DtypeSlot::kMask:
      return Dtype::kBool;
    case DtypeSlot::kIndex:
      return Dtype::kNone;
  }
  return Dtype::kNone;
}

double BytesOf(const Precision& precision, DtypeSlot slot) {
  return BytesPerElement(DtypeOf(precision, slot));
}

}  // namespace shardlab
