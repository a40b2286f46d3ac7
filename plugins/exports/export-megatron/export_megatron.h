#pragma once
// A plan as a shell script that starts pretrain_gpt.py of Megatron-LM.
//
//   shardlab export megatron FILE > train.sh
//
// Every default of Megatron-LM that would change the plan is written out, and what the plan does
// not know (paths, learning rate, rotary base of an unknown model) is a variable to fill in.

#include <string>
#include <vector>

#include "api/exporter.h"

namespace shardlab::export_megatron {

using Flags = std::vector<std::string>;  // "--seq-length 4096", one an entry

class ExportMegatron final : public Exporter {
 public:
  void Init(const InitContext& context) override;
  std::string framework() const override { return "Megatron-LM"; }
  std::string version() const override { return "core_v0.13.0"; }
  std::vector<ExportedFile> Files(const ExportInput& plan) const override;

 private:
  Value models_;  // models.toml: by preset what no plan needs to know
};

// The model's dimensions; `known`: its entry of models.toml, or null. Variables that the user must
// fill in are appended to `fill`, "NAME=${NAME:?what it is}".
Flags ModelFlags(const ExportInput& plan, const Value* known, std::vector<std::string>* fill);
Flags PrecisionFlags(const ExportInput& plan);
Flags ParallelFlags(const ExportInput& plan);
Flags RecomputeFlags(const ExportInput& plan);

}  // namespace shardlab::export_megatron
