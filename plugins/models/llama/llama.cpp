#include "llama.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab::llama {

void Llama::Visit(ParameterVisitor& v) {
  constexpr int kMost = 1 << 30;
  v.Text({"preset", "named dimensions; keys beside it override them"}, &preset_);
  const char* from_preset = "the preset's";
  v.Integer({"layers", "transformer blocks", 1, 100000, {}, from_preset}, &dims_.layers);
  v.Integer({"hidden", "width of the residual stream", 1, kMost, {}, from_preset}, &dims_.hidden);
  v.Integer({"heads", "query heads", 1, kMost, {}, from_preset}, &dims_.heads);
  v.Integer({"kv_heads", "key/value heads", 1, kMost, {}, "the preset's, else heads"},
            &dims_.kv_heads);
  v.Integer({"head_dim", "width of a head", 1, kMost, {}, "the preset's, else hidden / heads"},
            &dims_.head_dim);
  v.Integer({"ffn", "inner width of the gated MLP", 1, kMost, {}, from_preset}, &dims_.ffn);
  v.Integer({"vocabulary", "rows of the embedding and of the head", 1, kMost, {}, from_preset},
            &dims_.vocabulary);
  v.Boolean({"tied", "one matrix for embedding and head; only false is legal here"}, &tied_);
}

void Llama::ReadPreset(const InitContext& context) {
  const std::vector<std::string> files = context.list_files("presets");
  std::vector<std::string> names;
  for (const std::string& file : files) {
    if (file.size() > 5 && file.substr(file.size() - 5) == ".toml")
      names.push_back(file.substr(0, file.size() - 5));
  }
  if (std::find(names.begin(), names.end(), preset_) == names.end()) {
    const std::string near = Nearest(preset_, names);
    context.diagnostics->Error(
        "model.preset", context.place_of("preset"),
        absl::StrCat("llama has no preset \"", preset_, "\""),
        near.empty()
            ? absl::StrCat("the presets are ", Enumerate(names))
            : absl::StrCat("did you mean \"", near, "\"? The presets are ", Enumerate(names)));
    return;
  }
  const Value table = context.read_toml(absl::StrCat("presets/", preset_, ".toml"));
  const auto fill = [&](const char* key, int* into) {
    const Value* value = table.Find(key);
    if (value != nullptr && !context.is_given(key)) *into = static_cast<int>(value->integer);
  };
  fill("layers", &dims_.layers);
  fill("hidden", &dims_.hidden);
  fill("heads", &dims_.heads);
  fill("kv_heads", &dims_.kv_heads);
  fill("head_dim", &dims_.head_dim);
  fill("ffn", &dims_.ffn);
  fill("vocabulary", &dims_.vocabulary);
  if (const Value* source = table.Find("source")) source_ = source->text;
}

void Llama::Init(const InitContext& context) {
  if (!preset_.empty()) {
    ReadPreset(context);
    if (dims_.layers == 0) return;  // said already
  }
  Check(context);
  if (dims_.kv_heads == 0) dims_.kv_heads = dims_.heads;
  if (dims_.head_dim == 0 && dims_.heads > 0) dims_.head_dim = dims_.hidden / dims_.heads;
}

void Llama::Check(const InitContext& context) const {
  if (tied_) {
    context.diagnostics->Error(
        "model.tied", context.place_of("tied"), "llama counts an untied head only",
        "write tied = false; the models with a tied head need another plugin");
  }
  const auto missing = [&](const char* key, int value) {
    if (value > 0) return;
    context.diagnostics->Error("model.dimension", context.place_of(key),
                               absl::StrCat("llama needs ", key), "write it, or name a preset");
  };
  missing("layers", dims_.layers);
  missing("hidden", dims_.hidden);
  missing("heads", dims_.heads);
  missing("ffn", dims_.ffn);
  missing("vocabulary", dims_.vocabulary);
  if (dims_.heads <= 0 || dims_.hidden <= 0) return;
  if (dims_.kv_heads > 0 && dims_.heads % dims_.kv_heads != 0) {
    context.diagnostics->Error(
        "model.kv_heads", context.place_of("kv_heads"),
        absl::StrCat(dims_.heads, " heads do not divide by ", dims_.kv_heads, " key/value heads"),
        absl::StrCat("legal: ", Enumerate(Divisors(dims_.heads), "or")));
  }
  if (dims_.head_dim == 0 && dims_.hidden % dims_.heads != 0) {
    context.diagnostics->Error(
        "model.head_dim", context.place_of("heads"),
        absl::StrCat("hidden ", dims_.hidden, " does not divide by ", dims_.heads, " heads"),
        "state head_dim, or change heads");
  }
}

absl::Status Llama::Describe(ProgramBuilder& p, const ModelRequest& request) const {
  ModelFacts& facts = p.facts();
  facts.name = preset_.empty() ? "llama" : preset_;
  facts.parameters = facts.active_parameters = dims_.Parameters();
  facts.embedding_parameters = static_cast<double>(dims_.vocabulary) * dims_.hidden;
  facts.layers = dims_.layers;
  facts.attention_width = static_cast<double>(dims_.heads) * dims_.head_dim;
  facts.source = source_.empty() ? "dimensions of the scenario" : source_;

  p.Batch('b');
  p.Sequence('s', request.sequence_length);
  p.Dimension('h', "hidden", dims_.hidden);
  p.Dimension('k', "kv_heads", dims_.kv_heads);
  p.Dimension('g', "group", dims_.heads / dims_.kv_heads);
  p.Dimension('d', "head_dim", dims_.head_dim);
  p.Dimension('f', "ffn", dims_.ffn);
  p.Dimension('v', "vocabulary", dims_.vocabulary);
  if (request.coarse) {
    Coarse(p);
  } else {
    Ops(p);
  }
  return absl::OkStatus();
}

void Llama::Ops(ProgramBuilder& p) const {
  p.Alias('t', 's');  // keys of attention

  p.BeginClass("embedding", StagePosition::kFirst);
  const TensorId tokens = p.Data("tokens", "bsv");
  const TensorId table = p.Parameter("embedding", "vh");
  p.Output(p.Lookup("embed", {tokens, "bsv"}, {table, "vh"}, "bsh", TensorRole::kStream));
  p.EndClass();

  p.BeginClass("layer", StagePosition::kLayer, dims_.layers, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId norm1 = p.Parameter("attention.norm", "h");
  const TensorId wq = p.Parameter("attention.q", "hkgd");
  const TensorId wk = p.Parameter("attention.k", "hkd");
  const TensorId wv = p.Parameter("attention.v", "hkd");
  const TensorId wo = p.Parameter("attention.o", "kgdh");
  const TensorId n1 = p.Norm("attention norm", {x, "bsh"}, {norm1, "h"}, "h");
  const TensorId q = p.Product("q", {n1, "bsh"}, {wq, "hkgd"}, "bskgd");
  const TensorId k = p.Product("k", {n1, "bsh"}, {wk, "hkd"}, "bskd");
  const TensorId v = p.Product("v", {n1, "bsh"}, {wv, "hkd"}, "bskd");
  const TensorId o = p.Attention("attention", {q, "bskgd"}, {k, "btkd"}, {v, "btkd"}, "bskgd");
  // FlashAttention keeps one log-sum-exp per query and head (Dao et al. 2022, arXiv 2205.14135,
  // algorithm 1).
  p.Stash("attention log-sum-exp", "bskg", TensorRole::kActivation, DtypeSlot::kStatistics);
  const TensorId y = p.Product("o", {o, "bskgd"}, {wo, "kgdh"}, "bsh", TensorRole::kStream);
  const TensorId middle = p.Add("attention residual", {x, "bsh"}, {y, "bsh"});
  const TensorId norm2 = p.Parameter("mlp.norm", "h");
  const TensorId wg = p.Parameter("mlp.gate", "hf");
  const TensorId wu = p.Parameter("mlp.up", "hf");
  const TensorId wd = p.Parameter("mlp.down", "fh");
  const TensorId n2 = p.Norm("mlp norm", {middle, "bsh"}, {norm2, "h"}, "h");
  const TensorId gate = p.Product("gate", {n2, "bsh"}, {wg, "hf"}, "bsf");
  const TensorId up = p.Product("up", {n2, "bsh"}, {wu, "hf"}, "bsf");
  const TensorId inner = p.GatedSilu("silu", {gate, "bsf"}, {up, "bsf"});
  const TensorId z = p.Product("down", {inner, "bsf"}, {wd, "fh"}, "bsh", TensorRole::kStream);
  p.Output(p.Add("mlp residual", {middle, "bsh"}, {z, "bsh"}));
  p.EndClass();

  p.BeginClass("head", StagePosition::kLast);
  const TensorId last = p.Input("x", "bsh");
  const TensorId norm = p.Parameter("norm", "h");
  const TensorId head = p.Parameter("head", "hv");
  const TensorId targets = p.Data("targets", "bsv");
  const TensorId nf = p.Norm("final norm", {last, "bsh"}, {norm, "h"}, "h");
  const TensorId logits = p.Product("logits", {nf, "bsh"}, {head, "hv"}, "bsv");
  const TensorId max = p.MaxReduce("loss max", {logits, "bsv"}, "bs");
  const TensorId sum = p.SumExp("loss sum", {logits, "bsv"}, {max, "bs"}, "bs");
  const TensorId picked =
      p.Lookup("loss pick", {targets, "bsv"}, {logits, "bsv"}, "bs", TensorRole::kStatistic);
  p.SetDtype(picked, DtypeSlot::kStatistics);
  p.LogLoss("loss", {sum, "bs"}, {max, "bs"}, {picked, "bs"});
  p.EndClass();
}

// The classroom's block (Korthikanti et al. 2022, arXiv 2205.05198, equation 2 without the
// attention scores): 34 s*b*h bytes a layer, of which 10 are cut by tensor parallelism only
// together with the sequence.
void Llama::Coarse(ProgramBuilder& p) const {
  const double heads = dims_.heads;

  p.BeginClass("embedding", StagePosition::kFirst);
  const TensorId tokens = p.Data("tokens", "bs");
  const TensorId table = p.Parameter("embedding", "v", dims_.hidden);
  p.Scale(p.Lump("embed", {tokens, "bs"}, {table, "v"}, "bsv", TensorRole::kActivation), 0);
  p.EndClass();

  p.BeginClass("layer", StagePosition::kLayer, dims_.layers, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId attention =
      p.Parameter("attention", "kg", (dims_.Attention() + dims_.hidden) / heads);
  const TensorId y = p.Lump("attention block", {x, "bsh"}, {attention, "kg"}, "bsh");
  // Two bytes an element: 5 and 12 elements make 10 and 24 bytes.
  p.Stash("inputs and masks (10 s*b*h)", "bsh", TensorRole::kStream, DtypeSlot::kCompute, 5);
  const TensorId mlp = p.Parameter("mlp", "f", (dims_.Mlp() + dims_.hidden) / dims_.ffn);
  const TensorId z = p.Lump("mlp block", {y, "bsh"}, {mlp, "f"}, "bsh");
  p.Stash("inside the blocks (24 s*b*h)", "bskg", TensorRole::kActivation, DtypeSlot::kCompute,
          12.0 * dims_.hidden / heads);
  p.Output(z);
  p.EndClass();

  p.BeginClass("head", StagePosition::kLast);
  const TensorId targets = p.Data("targets", "bs");
  const TensorId head = p.Parameter(
      "head and norm", "v", dims_.hidden + static_cast<double>(dims_.hidden) / dims_.vocabulary);
  p.Scale(p.Lump("logits", {targets, "bs"}, {head, "v"}, "bsv", TensorRole::kActivation), 0);
  p.EndClass();

  // 2 FLOPs a parameter and token, of all parameters, evenly on all pipeline ranks.
  p.BeginClass("compute", StagePosition::kSpread, 1, /*block=*/true);
  p.Work("compute", "bskg", 2 * dims_.Parameters() / heads);
  p.EndClass();
}

}  // namespace shardlab::llama

SHARDLAB_PLUGIN("llama", shardlab::llama::Llama,
                "dense Llama: RMSNorm, grouped-query attention, SwiGLU")
