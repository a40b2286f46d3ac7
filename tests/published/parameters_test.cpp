// Parameters of known models, to the element: the totals that model cards and public audits of
// checkpoints give for the presets' dimensions (parameters.csv; what a card counts differently is
// said in the preset's source).

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "api/model.h"
#include "laws/made.h"

namespace shardlab {
namespace {

struct Published {
  std::string plugin, preset;
  double parameters = 0, active = 0;
};

std::vector<Published> ReadPublished() {
  std::vector<Published> all;
  std::ifstream file(SHARDLAB_SOURCE_DIR "/tests/published/parameters.csv");
  std::string line;
  std::getline(file, line);  // names of the columns
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    Published row;
    std::string parameters, active;
    std::getline(cells, row.plugin, ',');
    std::getline(cells, row.preset, ',');
    std::getline(cells, parameters, ',');
    std::getline(cells, active, ',');
    row.parameters = std::stod(parameters);
    row.active = std::stod(active);
    all.push_back(std::move(row));
  }
  return all;
}

// Counted from the rows: over all layers, and of routed experts top-k of them.
std::pair<double, double> Counted(const Program& program) {
  const DimensionId expert = program.FindDimension("expert");
  double top_k = 0, sum = 0, active = 0;
  for (const Op& op : program.ops) top_k = std::max<double>(top_k, op.top_k);
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role != TensorRole::kParameter) continue;
    double elements = tensor.scale * program.layer_class(tensor.layer_class).repeat;
    for (const DimensionId dim : tensor.dims) elements *= program.dimension(dim).size;
    sum += elements;
    // The router sees every expert's score.
    const bool routed = expert.valid() && tensor.Has(expert) && tensor.name.rfind("router", 0) != 0;
    active += routed ? elements * top_k / program.dimension(expert).size : elements;
  }
  return {sum, active};
}

TEST(PublishedParameters, EveryPresetToTheElement) {
  std::set<std::string> seen;
  for (const Published& row : ReadPublished()) {
    SCOPED_TRACE(row.preset);
    EXPECT_TRUE(seen.insert(row.preset).second) << "twice";
    const auto model = Made<Model>(row.plugin, {"preset = \"" + row.preset + "\"\n"});
    ASSERT_NE(model, nullptr);
    ProgramBuilder builder;
    ASSERT_TRUE(model->Describe(builder, {false, 4096}).ok());
    const absl::StatusOr<Program> program = builder.Take();
    ASSERT_TRUE(program.ok()) << program.status();
    const auto counted = Counted(*program);
    EXPECT_EQ(std::llround(counted.first), std::llround(row.parameters));
    EXPECT_EQ(std::llround(counted.second), std::llround(row.active));
    EXPECT_EQ(program->facts.parameters, row.parameters);
    EXPECT_EQ(program->facts.active_parameters, row.active);
  }
  EXPECT_GE(seen.size(), 80u);
  for (const std::string& name : BuiltPlugins().Names(Model::kKind)) {
    for (const std::string& preset : PresetsOf(name)) {
      EXPECT_EQ(seen.count(preset), 1u) << "parameters.csv has no row for " << preset;
    }
  }
}

}  // namespace
}  // namespace shardlab
