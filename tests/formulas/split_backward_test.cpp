// What does a weight gradient that waits keep alive? The inputs of a layer's products and the
// gradients of their outputs (Qi et al. 2023, arXiv 2401.10241, section 2: M_W = 32 s b h of
// M_B = s b h (34 + 5 a s/h), for GPT with 16-bit activations, dropout and scores in memory).
// Counted for it is all that was saved: is that never less?

#include <set>

#include "formulas/planned.h"

namespace shardlab {
namespace {

struct Kept {
  double saved = 0;    // M_B: from the forward pass to the input gradient
  double waiting = 0;  // M_W: from there to the weight gradient
};

// One layer of a class on one device, from its rows alone.
Kept KeptBy(const Composition& c, ClassId layer) {
  const Program& program = c.edited.program;
  const auto bytes = [&](TensorId id) {
    const Tensor& tensor = program.tensor(id);
    double elements = tensor.scale;
    for (const DimensionId dim : tensor.dims) {
      const Dimension& d = program.dimension(dim);
      elements *= d.kind == DimensionKind::kBatch ? c.plan.micro_batch_size : d.size;
    }
    return elements * BytesOf(c.precision, tensor.dtype);
  };
  Kept kept;
  std::set<TensorId> saved, inputs, gradients;
  for (const Saved& row : c.edited.derived.saved) {
    if (program.op(row.reader).layer_class == layer) saved.insert(row.tensor);
  }
  for (const Op& op : program.ops) {
    if (op.layer_class != layer || op.kind != OpKind::kProduct) continue;
    for (std::size_t j = 0; j < op.inputs.size(); ++j) {
      if (program.tensor(op.inputs[j].tensor).role != TensorRole::kParameter) continue;
      for (const int read : op.reads[j]) {
        EXPECT_NE(read, kReadsOutput);
        inputs.insert(op.inputs[static_cast<std::size_t>(read)].tensor);
      }
      gradients.insert(op.output);
    }
  }
  for (const TensorId id : saved) kept.saved += bytes(id);
  for (const TensorId id : inputs) {
    EXPECT_TRUE(saved.count(id)) << "W reads what is not kept: " << program.tensor(id).name;
    kept.waiting += bytes(id);
  }
  for (const TensorId id : gradients) kept.waiting += bytes(id);
  return kept;
}

std::string Scenario(const std::string& model, const std::string& training) {
  return "[model]\n" + model +
         "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
         "[precision]\nrecipe = \"megatron-bf16\"\n"
         "[training]\nsequence_length = 256\nmicro_batch_size = 2\nglobal_batch_size = 16\n" +
         training;
}

TEST(SplitBackward, GptKeepsWhatThePaperSays) {
  const double s = 256, b = 2, h = 512, a = 8;
  const Planned plan = PlanText(Scenario(
      "plugin = \"gpt\"\nlayers = 2\nhidden = 512\nheads = 8\nffn = 2048\nvocabulary = 512\n",
      "attention = \"eager\"\ndropout = 0.1\n"));
  ASSERT_TRUE(plan.ok());
  const Composition& c = *plan.planned.composed.composition;
  int layers = 0;
  for (std::size_t k = 0; k < c.edited.program.classes.size(); ++k) {
    if (!c.edited.program.classes[k].block) continue;
    ++layers;
    const Kept kept = KeptBy(c, ClassId(k));
    EXPECT_DOUBLE_EQ(kept.saved, s * b * h * (34 + 5 * a * s / h));
    EXPECT_DOUBLE_EQ(kept.waiting, 32 * s * b * h);
  }
  EXPECT_EQ(layers, 1);
}

// Every product turns an input of the next into a gradient of its own output, so the two differ
// by little: what is counted (all that was saved, until W) is a bound, and a close one.
TEST(SplitBackward, WhatIsSavedIsNoLessThanWhatWaits) {
  for (const char* model : {"plugin = \"gpt\"\npreset = \"gpt2-xl\"\n",
                            "plugin = \"llama\"\npreset = \"llama3.1-8b\"\n",
                            "plugin = \"llama\"\npreset = \"llama3.1-70b\"\n",
                            "plugin = \"moe\"\npreset = \"mixtral-8x7b\"\n",
                            "plugin = \"moe\"\npreset = \"deepseek-v3\"\n"}) {
    SCOPED_TRACE(model);
    const Planned plan = PlanText(Scenario(model, ""));
    ASSERT_TRUE(plan.ok());
    const Composition& c = *plan.planned.composed.composition;
    for (std::size_t k = 0; k < c.edited.program.classes.size(); ++k) {
      if (!c.edited.program.classes[k].block) continue;
      const Kept kept = KeptBy(c, ClassId(k));
      std::cout << c.edited.program.classes[k].name << ": waiting / saved "
                << kept.waiting / kept.saved << "\n";
      EXPECT_LE(kept.waiting, kept.saved);
      EXPECT_GE(kept.waiting, 0.9 * kept.saved);
    }
  }
}

}  // namespace
}  // namespace shardlab
