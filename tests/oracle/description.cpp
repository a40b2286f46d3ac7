#include "oracle/description.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace shardlab::oracle {
namespace {

std::string Author(const Edited& edited, std::int16_t author) {
  return author < 0 ? "model" : edited.program.authors[static_cast<std::size_t>(author)];
}

std::string NameOf(const Edited& edited, Layout layout) {
  if (layout.whole()) return "whole";
  if (layout.sum()) return "sum";
  if (layout.max()) return "max";
  if (layout.flat()) return "flat";
  return edited.program.dimension(layout.dim()).name;
}

std::string DescribePlacement(const Edited& edited, const Placement& placement) {
  std::map<std::string, std::string> layouts;  // by atom's name
  for (std::size_t a = 0; a < edited.mesh.atoms().size(); ++a) {
    if (!placement.at(a).whole())
      layouts[edited.mesh.atoms()[a].name] = NameOf(edited, placement.at(a));
  }
  std::string text;
  for (const auto& [atom, layout] : layouts) absl::StrAppend(&text, " ", atom, ":", layout);
  return "[" + text + " ]";
}

std::string DescribeGroup(const Edited& edited, AtomMask group) {
  std::map<std::string, bool> names;
  for (std::size_t a = 0; a < edited.mesh.atoms().size(); ++a) {
    if (group >> a & 1) names[edited.mesh.atoms()[a].name] = true;
  }
  std::string text;
  for (const auto& [name, in] : names) absl::StrAppend(&text, " ", name);
  return text;
}

// "w_q@layer1" is "w_q" of its layer; a layer's input goes by that name, whichever layer made it.
std::string DescribeTensor(const Edited& edited, TensorId id, ClassId layer) {
  const Program& program = edited.program;
  if (layer.valid() && program.layer_class(layer).input == id) return "(input)";
  const std::string& name = program.tensor(id).name;
  return name.substr(0, name.find('@'));
}

std::string DescribeVersion(const Edited& edited, const Version& version, ClassId layer) {
  return absl::StrCat(version.gradient ? "d " : "", DescribeTensor(edited, version.tensor, layer),
                      DescribePlacement(edited, version.at));
}

}  // namespace

std::string Describe(const Edited& edited, const Step& step) {
  std::string text = absl::StrCat(Name(step.phase), step.when == When::kStep ? " (step): " : ": ");
  switch (step.kind) {
    case StepKind::kCompute:
      absl::StrAppend(&text, "compute ", edited.program.op(step.op).name);
      break;
    case StepKind::kGradient:
      absl::StrAppend(&text, "gradient ", edited.program.op(step.op).name, " ",
                      static_cast<int>(step.operands));
      break;
    case StepKind::kUpdate:
      absl::StrAppend(&text, "update ", DescribeVersion(edited, step.target, step.layer_class));
      break;
    case StepKind::kMove:
      absl::StrAppend(&text, Name(step.collective), " over", DescribeGroup(edited, step.group),
                      ": ", DescribeVersion(edited, step.source, step.layer_class), " -> ",
                      DescribeVersion(edited, step.target, step.layer_class),
                      step.add ? " added" : "", " by ", Author(edited, step.author));
  }
  return text;
}

std::string Describe(const Edited& edited, const Saved& saved) {
  return absl::StrCat("saved ", DescribeTensor(edited, saved.tensor, ClassId()),
                      DescribePlacement(edited, saved.at), " ", static_cast<int>(saved.residency));
}

std::vector<std::string> DescribeAll(const Edited& edited) {
  std::vector<std::string> all;
  for (const Step& step : edited.derived.steps) all.push_back(Describe(edited, step));
  for (const Saved& saved : edited.derived.saved) all.push_back(Describe(edited, saved));
  return all;
}

}  // namespace shardlab::oracle
