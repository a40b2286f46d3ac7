#include "io/plugin_template_texts.h"

namespace shardlab {

const TemplateTexts kExportTemplate = {
    R"TEXT(// @NAME@: the degrees of a plan as variables of a shell script.
//
//   shardlab export @NAME@ example.toml

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/exporter.h"

namespace {

class @CLASS@ final : public shardlab::Exporter {
 public:
  std::string framework() const override { return "shell variables"; }
  std::string version() const override { return "1"; }

  // What the framework cannot do is told at the scenario's key, with a remedy; then no file comes out.
  std::vector<shardlab::ExportedFile> Files(const shardlab::ExportInput& plan) const override {
    if (plan.Integer("plan.context") > 1)
      plan.Cannot("strategy.context.degree", "a sequence is not cut here", "set strategy.context.degree = 1");
    return {{"plan.sh", absl::StrCat("TENSOR=", plan.Integer("plan.tensor"), "\nPIPELINE=",
                                     plan.Integer("plan.pipeline"), "\nDATA=", plan.Integer("plan.data"), "\n")}};
  }
};

}  // namespace

SHARDLAB_PLUGIN("@NAME@", @CLASS@, "the degrees of a plan as shell variables")
)TEXT",
    "Reads the document of `shardlab plan --format json` and writes a file from it.",
    "TENSOR x PIPELINE x DATA = the devices of the machine.",
    "Context parallelism is refused, as an example.",
    R"TEXT(name = "an 8B model, for @NAME@"
accounting = "textbook"

[model]
plugin = "llama"
preset = "llama3.1-8b"

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 4096
micro_batch_size = 1
global_batch_size = 8

[strategy.tensor]
degree = 8

[expect]
"plan.tensor" = 8
)TEXT",
    "shardlab export @NAME@ example.toml --plugins build/plugins\n",
};

}  // namespace shardlab
