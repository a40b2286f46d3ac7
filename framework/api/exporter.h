#pragma once
// An exporter: a plan in the spelling of one version of a training framework. It reads the plan's
// document and answers with whole files; what the framework cannot do is a diagnostic with reason
// and remedy, all of them at once, and no file comes out then.
//
//   std::vector<ExportedFile> Files(const ExportInput& plan) const override {
//     if (plan.Integer("plan.pipeline") > 1)
//       plan.Cannot("schedule.degree", "it has no pipeline", "set schedule.degree = 1");
//     return {{"train.sh", absl::StrCat("train --devices ", plan.Integer("hardware.devices"))}};
//   }

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/plugin.h"
#include "api/value.h"
#include "base/diagnostic.h"

namespace shardlab {

struct ExportedFile {
  std::string name;  // without folder: "train.sh"
  std::string text;  // whole, ends with a newline
};

// The document of `shardlab plan --format json` (schema shardlab.plan/1) with accessors: "plan.*"
// is what holds, "resolved.*" the scenario with every default filled in, "model.*" the model's
// size. A path that is absent or null reads as `otherwise`.
class SHARDLAB_EXPORT ExportInput final {
 public:
  // `place_of`: where the user wrote a scenario key, or the file where it is not written.
  ExportInput(const Value& document, std::function<Place(const std::string& key)> place_of,
              Diagnostics* diagnostics);

  const Value* Find(const std::string& path) const;  // nullptr: absent or null
  std::int64_t Integer(const std::string& path, std::int64_t otherwise = 0) const;
  double Number(const std::string& path, double otherwise = 0) const;
  bool Boolean(const std::string& path, bool otherwise = false) const;
  std::string Text(const std::string& path, const std::string& otherwise = "") const;
  std::vector<std::int64_t> Integers(const std::string& path) const;
  // The scenario's name, on one line and without quotes: it goes into comments of other languages.
  std::string Title() const;

  // An error at a scenario key: what the framework cannot do, why, and what to set instead.
  void Cannot(const std::string& key, const std::string& message, const std::string& remedy) const;
  // What it does in another way than the plan counts it.
  void Differs(const std::string& key, const std::string& message, const std::string& hint) const;

 private:
  const Value& document_;
  std::function<Place(const std::string&)> place_of_;
  Diagnostics* diagnostics_;
};

class SHARDLAB_EXPORT Exporter : public Plugin {
 public:
  static constexpr const char* kKind = "export";
  static constexpr int kInterfaceVersion = 1;
  ~Exporter() override;
  virtual std::string framework() const = 0;  // "Megatron-LM"
  virtual std::string version() const = 0;    // whose spelling and defaults are meant
  virtual std::vector<ExportedFile> Files(const ExportInput& plan) const = 0;
};

}  // namespace shardlab
