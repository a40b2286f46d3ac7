#pragma once
// A plan as DeepSpeed's JSON, the line that starts it and the training loop that reads it.
//
//   shardlab export deepspeed FILE -o DIR     ds_config.json, train.py, launch.sh
//
// DeepSpeed splits data, state and pipeline; what it leaves to a model's own code (tensor and
// expert parallelism) or does in another way is refused, all of it at once.

#include <string>
#include <vector>

#include "api/exporter.h"

namespace shardlab::export_deepspeed {

class ExportDeepspeed final : public Exporter {
 public:
  std::string framework() const override { return "DeepSpeed"; }
  std::string version() const override { return "0.17.0"; }
  std::vector<ExportedFile> Files(const ExportInput& plan) const override;
};

// Tells what DeepSpeed cannot do.
void Refuse(const ExportInput& plan);

std::string ConfigText(const ExportInput& plan);  // ds_config.json
std::string TrainText(const ExportInput& plan);   // train.py
std::string LaunchText(const ExportInput& plan);  // launch.sh

}  // namespace shardlab::export_deepspeed
