#pragma once
// A piece of a sweep as bytes (CBOR), for another process of the same program. What is read is
// equal to what was written, to the last digit.
//
//   absl::StatusOr<SweepPiece> piece = PieceFromBytes(PieceToBytes(played));

#include <string>

#include "absl/status/statusor.h"
#include "io/sweep_run.h"

namespace shardlab {

std::string PieceToBytes(const SweepPiece& piece);
// Fails for bytes that no PieceToBytes wrote.
absl::StatusOr<SweepPiece> PieceFromBytes(const std::string& bytes);

}  // namespace shardlab
