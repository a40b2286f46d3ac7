#pragma once
// A plan as PyTorch code: FSDP2's fully_shard over the blocks of a model of the transformers
// library, with the training loop around it.
//
//   shardlab export fsdp FILE > train.py
//
// fully_shard cuts all state over data ranks. Other degrees, and state that is cut in part, are
// refused, all of it at once.

#include <string>
#include <vector>

#include "api/exporter.h"

namespace shardlab::export_fsdp {

class ExportFsdp final : public Exporter {
 public:
  std::string framework() const override { return "PyTorch FSDP2"; }
  std::string version() const override { return "2.6.0"; }
  std::vector<ExportedFile> Files(const ExportInput& plan) const override;
};

// What the parameters that fully_shard keeps are held in, and what they are gathered in.
struct ShardedDtypes {
  std::string kept, gathered, reduced;
};

// Tells what FSDP2 cannot do, or does in another way.
ShardedDtypes Check(const ExportInput& plan);

}  // namespace shardlab::export_fsdp
