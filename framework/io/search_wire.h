#pragma once
// What a search found in one group as bytes, for another process of the same program on a machine
// of the same kind: numbers are as they lie in memory.
//
//   absl::StatusOr<SearchResult> part = FoundFromBytes(FoundToBytes(result));

#include <string>

#include "absl/status/statusor.h"
#include "io/search_run.h"

namespace shardlab {

std::string FoundToBytes(const SearchResult& result);
// Fails for bytes that no FoundToBytes wrote.
absl::StatusOr<SearchResult> FoundFromBytes(const std::string& bytes);

}  // namespace shardlab
