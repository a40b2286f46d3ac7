// What does a weight gradient that waits keep alive? The inputs of a layer's products and the
// gradients of their outputs (Qi et al. 2023, arXiv 2401.10241, section 2: M_W = 32 s b h of
// M_B = s b h (34 + 5 a s/h), for GPT with 16-bit activations, dropout and scores in memory).
// Counted for it is all that was saved: is that never less?

#include <set>

#include "core/waiting.h"
#include "formulas/planned.h"

namespace shardlab {
namespace {

struct Kept {
  double saved = 0;    // M_B: from the forward pass to the input gradient
  double waiting = 0;  // M_W: from there to the weight gradient
};

// Of a whole tensor.
double Bytes(const Composition& c, TensorId id) {
  const Program& program = c.edited.program;
  const Tensor& tensor = program.tensor(id);
  double elements = tensor.scale;
  for (const DimensionId dim : tensor.dims) {
    const Dimension& d = program.dimension(dim);
    elements *= d.kind == DimensionKind::kBatch ? c.plan.micro_batch_size : d.size;
  }
  return elements * BytesOf(c.precision, tensor.dtype);
}

// One layer of a class on one device, from its rows alone.
Kept KeptBy(const Composition& c, ClassId layer) {
  const Program& program = c.edited.program;
  const auto bytes = [&](TensorId id) { return Bytes(c, id); };
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
// by little: what is counted (all that was saved, until W) is a bound, and a close one. Experts
// whose outputs are not kept need a gradient as long as a token instead; there what waits is
// counted.
TEST(SplitBackward, WhatIsCountedIsNoLessThanWhatWaits) {
  int bound = 0, exact = 0;
  for (const char* model : {"plugin = \"gpt\"\npreset = \"gpt2-xl\"\n",
                            "plugin = \"llama\"\npreset = \"llama3.1-8b\"\n",
                            "plugin = \"llama\"\npreset = \"llama3.1-70b\"\n",
                            "plugin = \"moe\"\npreset = \"mixtral-8x7b\"\n",
                            "plugin = \"moe\"\npreset = \"deepseek-v3\"\n"}) {
    for (const char* software : {"generic", "megatron-bridge"}) {
      SCOPED_TRACE(absl::StrCat(model, software));
      const Planned plan =
          PlanText(Scenario(model, absl::StrCat("[software]\npreset = \"", software, "\"\n")));
      ASSERT_TRUE(plan.ok());
      const Composition& c = *plan.planned.composed.composition;
      for (std::size_t k = 0; k < c.edited.program.classes.size(); ++k) {
        if (!c.edited.program.classes[k].block) continue;
        const Kept kept = KeptBy(c, ClassId(k));
        std::cout << c.edited.program.classes[k].name << ": waiting / saved "
                  << kept.waiting / kept.saved << "\n";
        const std::vector<Waiting> rows =
            WaitingOf(c.edited.program, c.edited.derived, c.precision, c.rules, ClassId(k));
        EXPECT_EQ(!rows.empty(), kept.waiting > kept.saved);
        double counted = 0;
        for (const Waiting& row : rows) counted += Bytes(c, row.tensor);
        if (!rows.empty()) {
          EXPECT_DOUBLE_EQ(counted, kept.waiting);
        }
        EXPECT_GE(kept.waiting, 0.9 * kept.saved);
        EXPECT_LE(kept.waiting, 1.25 * kept.saved);
        ++(rows.empty() ? bound : exact);
      }
    }
  }
  EXPECT_GE(bound, 3);
  EXPECT_GE(exact, 2);
}

// A plan whose weight gradients wait holds them: one micro-batch whose W comes last.
TEST(SplitBackward, APlanHoldsWhatWaits) {
  const auto plan = [](const std::string& software) {
    return PlanText(
        Scenario("plugin = \"moe\"\nlayers = 4\nhidden = 512\nheads = 8\nexperts = 8\n"
                 "top_k = 2\nexpert_ffn = 256\nvocabulary = 512\n",
                 "[schedule]\nplugin = \"pipeline-zb-h1\"\ndegree = 4\n" + software));
  };
  const Planned planned = plan("[software]\npreset = \"megatron-bridge\"\n");
  ASSERT_TRUE(planned.ok());
  const Explanation& x = planned.planned.explanation;
  int told = 0;
  for (const RankExplanation& rank : x.ranks) {
    double sum = 0;
    for (const MemoryEntry& entry : rank.entries) {
      if (entry.account != Account::kActivations) continue;
      sum += entry.bytes;
      told += entry.row.find("weight gradients need") != std::string::npos ? 1 : 0;
    }
    const double bytes = rank.memory.bytes[static_cast<std::size_t>(Account::kActivations)];
    EXPECT_NEAR(sum, bytes, 1e-9 * bytes);
  }
  EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace shardlab
