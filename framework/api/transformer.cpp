#include "api/transformer.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {
namespace {

constexpr int kMost = 1 << 30;
constexpr const char* kFromPreset = "the preset's";

// Lays a preset's values under what the user wrote.
class PresetFiller final : public ParameterVisitor {
 public:
  PresetFiller(const Value& preset, const InitContext& context)
      : preset_(preset), context_(context) {}

  void Boolean(const Parameter& p, bool* value) override {
    if (const Value* given = Find(p)) *value = given->boolean;
  }
  void Integer(const Parameter& p, int* value) override {
    if (const Value* given = Find(p)) *value = static_cast<int>(given->integer);
  }
  void Text(const Parameter& p, std::string* value) override {
    if (const Value* given = Find(p)) *value = given->text;
  }
  void Number(const Parameter& p, double* value) override {
    if (const Value* given = Find(p)) *value = given->number;
  }
  void Amount(const Parameter&, Unit, double*) override {}
  void Integers(const Parameter&, std::vector<int>*) override {}
  void IntegerOr(const Parameter&, const std::string&, int*) override {}
  void Raw(const Parameter&, Value*) override {}

 private:
  const Value* Find(const Parameter& p) const {
    return context_.is_given(p.name) ? nullptr : preset_.Find(p.name);
  }
  const Value& preset_;
  const InitContext& context_;
};

}  // namespace

// --- counting
// -------------------------------------------------------------------------------------------------

int TransformerShape::ExpertLayers() const {
  return experts == 0 ? 0 : std::max(0, layers - dense_layers) / std::max(1, moe_every);
}

double TransformerShape::Norm(double width) const {
  return norm == "none" ? 0 : norm == "layer" ? 2 * width : width;
}

double TransformerShape::Attention() const {
  const double h = hidden, a = heads, k = kv_heads, d = head_dim;
  if (latent()) {
    const double width = qk_nope + qk_rope, q = q_lora, c = kv_lora;
    const double queries = q_lora > 0 ? h * q + q + q * a * width : h * a * width;
    return queries + h * (c + qk_rope) + c + c * a * (qk_nope + v_dim) + a * v_dim * h;
  }
  double sum = 2 * h * a * d + 2 * h * k * d;
  if (qkv_bias) sum += (a + 2 * k) * d;
  if (o_bias) sum += h;
  if (qk_norm == "head") sum += 2 * d;
  if (qk_norm == "full") sum += (a + k) * d;
  if (sinks) sum += a;
  return sum;
}

double TransformerShape::Mlp(double width) const {
  const double h = hidden;
  const double matrices = (gated ? 3 : 2) * h * width;
  return mlp_bias ? matrices + (gated ? 2 : 1) * width + h : matrices;
}

double TransformerShape::Router() const {
  return static_cast<double>(hidden) * experts + (router_bias ? experts : 0);
}

double TransformerShape::Shared() const {
  if (SharedWidth() == 0) return 0;
  return Mlp(SharedWidth()) + (shared_gate ? hidden : 0);
}

double TransformerShape::Total(double experts_of_a_layer) const {
  const double h = hidden, v = vocabulary;
  const int routed = ExpertLayers();
  const double layer = Attention() + norms * Norm(h);
  double sum = layers * layer + (layers - routed) * DenseMlp();
  if (routed > 0) sum += routed * (Router() + Shared() + experts_of_a_layer);
  sum += (tied ? 1 : 2) * v * h + Norm(h) + static_cast<double>(positions) * h;
  if (embedding_norm) sum += Norm(h);
  if (head_bias) sum += v;
  if (mtp) {
    // Its own embedding, head and three norms, and the product that joins stream and embedding.
    sum += layer + Router() + Shared() + experts_of_a_layer + 2 * h * h + 3 * Norm(h) + 2 * v * h;
  }
  return sum;
}

double TransformerShape::AttentionWidth() const {
  const double width = latent() ? (qk_nope + qk_rope + v_dim) / 2.0 : head_dim;
  return heads * width;
}

double TransformerShape::AttentionShare(double sequence) const {
  const double w = sliding_window;
  if (sliding_window == 0 || w >= sequence || sequence <= 0) return 1;
  // Pairs of the causal triangle that are at most w apart.
  const double inside = (w * sequence - w * w / 2) / (sequence * sequence / 2);
  const int full = full_attention_every > 0 ? layers / full_attention_every : 0;
  return (full + (layers - full) * inside) / layers;
}

// --- parameters
// -------------------------------------------------------------------------------------------------

Transformer::Transformer(std::string family) : family_(std::move(family)) {}
Transformer::~Transformer() = default;

void Transformer::VisitDimensions(ParameterVisitor& v, const char* ffn) {
  TransformerShape& s = shape_;
  v.Text({"preset", "named dimensions; keys beside it override them"}, &preset_);
  v.Text({"name", "what reports call the model", 0, 0, {}, "the preset's, else the plugin's"},
         &name_);
  v.Integer({"layers", "transformer blocks", 1, 100000, {}, kFromPreset}, &s.layers);
  v.Integer({"hidden", "width of the residual stream", 1, kMost, {}, kFromPreset}, &s.hidden);
  v.Integer({"heads", "query heads", 1, kMost, {}, kFromPreset}, &s.heads);
  v.Integer({"kv_heads", "key/value heads", 1, kMost, {}, "the preset's, else heads"}, &s.kv_heads);
  v.Integer({"head_dim", "width of a head", 1, kMost, {}, "the preset's, else hidden / heads"},
            &s.head_dim);
  v.Integer({"ffn", ffn, 1, kMost, {}, kFromPreset}, &s.ffn);
  v.Integer({"vocabulary", "rows of the embedding and of the head", 1, kMost, {}, kFromPreset},
            &s.vocabulary);
  v.Boolean({"tied", "one matrix for embedding and head"}, &s.tied);
}

void Transformer::VisitAttention(ParameterVisitor& v) {
  TransformerShape& s = shape_;
  v.Boolean({"qkv_bias", "biases of queries, keys and values"}, &s.qkv_bias);
  v.Boolean({"o_bias", "bias of attention's output"}, &s.o_bias);
  v.Boolean({"mlp_bias", "biases of the MLP's products"}, &s.mlp_bias);
  v.Text({"qk_norm",
          "a norm of queries and keys: of each \"head\", or of the \"full\" projection",
          0,
          0,
          {"none", "head", "full"}},
         &s.qk_norm);
  v.Integer({"sliding_window", "earlier tokens that attention sees; 0 for all", 0, kMost},
            &s.sliding_window);
  v.Integer({"full_attention_every",
             "with a window: one layer in so many sees all tokens; 0 for none", 0, 100000},
            &s.full_attention_every);
}

void Transformer::VisitBlock(ParameterVisitor& v) {
  TransformerShape& s = shape_;
  v.Text({"norm",
          "root-mean-square, layer norm with weight and bias, with weight, or with neither",
          0,
          0,
          {"rms", "layer", "layer-no-bias", "none"}},
         &s.norm);
  v.Integer({"norms", "of a block: 1 that attention and MLP share, 2, or 4 (before and after each)",
             1, 4},
            &s.norms);
  v.Boolean({"post_norm", "a block's two norms stand after attention and MLP"}, &s.post_norm);
  v.Boolean({"parallel", "attention and MLP side by side, added to the stream at once"},
            &s.parallel);
}

void Transformer::VisitEnds(ParameterVisitor& v) {
  TransformerShape& s = shape_;
  v.Text({"activation", "of the MLP; a squared ReLU counts as gelu", 0, 0, {"gelu", "relu"}},
         &s.activation);
  v.Boolean({"head_bias", "bias of the head"}, &s.head_bias);
  v.Integer({"positions", "rows of learned positions; 0 for none (rotary, ALiBi)", 0, kMost},
            &s.positions);
  v.Boolean({"embedding_norm", "a norm right after the embedding"}, &s.embedding_norm);
}

void Transformer::VisitExperts(ParameterVisitor& v) {
  TransformerShape& s = shape_;
  v.Integer({"experts", "routed experts of a layer", 1, 1 << 16, {}, kFromPreset}, &s.experts);
  v.Integer({"top_k", "routed experts of a token", 1, 1 << 16, {}, kFromPreset}, &s.top_k);
  v.Integer({"expert_ffn", "inner width of an expert", 1, kMost, {}, "the preset's, else ffn"},
            &s.expert_ffn);
  v.Integer({"shared_experts", "experts that see every token", 0, 1 << 16}, &s.shared_experts);
  v.Integer({"shared_ffn",
             "inner width of all shared experts together",
             1,
             kMost,
             {},
             "shared_experts x expert_ffn"},
            &s.shared_ffn);
  v.Boolean({"shared_gate", "a gate on the shared experts' output"}, &s.shared_gate);
  v.Boolean({"router_bias", "a bias of each expert's score"}, &s.router_bias);
  v.Integer({"dense_layers", "first layers, which have a plain MLP of width ffn", 0, 100000},
            &s.dense_layers);
  v.Integer({"moe_every", "after those, one layer in so many has experts", 1, 100000},
            &s.moe_every);
  v.Boolean({"mtp",
             "one more layer with experts that predicts the token after next, with an embedding "
             "and a head of its own"},
            &s.mtp);
  v.Boolean({"sinks", "a learned logit of each head that takes attention from the keys"}, &s.sinks);
}

void Transformer::VisitLatentAttention(ParameterVisitor& v) {
  TransformerShape& s = shape_;
  v.Integer({"kv_lora", "latent width of keys and values; 0 for plain attention", 0, kMost},
            &s.kv_lora);
  v.Integer({"q_lora", "latent width of queries; 0 for a direct projection", 0, kMost}, &s.q_lora);
  v.Integer({"qk_nope", "latent attention: a key's width without position", 0, kMost}, &s.qk_nope);
  v.Integer({"qk_rope", "latent attention: a key's rotary width, shared by the heads", 0, kMost},
            &s.qk_rope);
  v.Integer({"v_dim", "latent attention: a value's width", 0, kMost}, &s.v_dim);
}

void Transformer::ReadPreset(const InitContext& context) {
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
        absl::StrCat(family_, " has no preset \"", preset_, "\""),
        near.empty()
            ? absl::StrCat("the presets are ", Enumerate(names))
            : absl::StrCat("did you mean \"", near, "\"? The presets are ", Enumerate(names)));
    return;
  }
  const Value table = context.read_toml(absl::StrCat("presets/", preset_, ".toml"));
  if (const Value* source = table.Find("source")) source_ = source->text;
  PresetFiller filler(table, context);
  Visit(filler);
}

void Transformer::Init(const InitContext& context) {
  if (!preset_.empty()) {
    ReadPreset(context);
    if (shape_.layers == 0) return;  // said already
  }
  Check(context);
  TransformerShape& s = shape_;
  if (s.kv_heads == 0 || s.latent()) s.kv_heads = s.heads;
  if (s.latent()) s.head_dim = s.qk_nope + s.qk_rope;
  if (s.head_dim == 0 && s.heads > 0) s.head_dim = s.hidden / s.heads;
  if (s.experts > 0 && s.expert_ffn == 0) s.expert_ffn = s.ffn;
}

void Transformer::Check(const InitContext& context) const {
  const TransformerShape& s = shape_;
  const auto missing = [&](const char* key, int value) {
    if (value > 0) return;
    context.diagnostics->Error("model.dimension", context.place_of(key),
                               absl::StrCat(family_, " needs ", key), "write it, or name a preset");
  };
  missing("layers", s.layers);
  missing("hidden", s.hidden);
  missing("heads", s.heads);
  if (s.ExpertLayers() < s.layers || s.expert_ffn == 0) missing("ffn", s.ffn);
  missing("vocabulary", s.vocabulary);
  CheckExperts(context);
  if (s.norms == 3 || (s.norms == 1 && !s.parallel)) {
    context.diagnostics->Error(
        "model.norms", context.place_of("norms"),
        absl::StrCat("a block has no ", s.norms,
                     s.norms == 1 ? " norm unless parallel = true" : " norms"),
        "write norms = 2 or 4, or 1 with parallel = true");
  }
  if (s.latent()) {
    missing("qk_nope", s.qk_nope);
    missing("qk_rope", s.qk_rope);
    missing("v_dim", s.v_dim);
    if (s.qkv_bias || s.o_bias || s.qk_norm != "none" || s.sinks) {
      context.diagnostics->Error("model.latent", context.place_of("kv_lora"),
                                 "latent attention has no biases, sinks or norms of its own here",
                                 "leave out qkv_bias, o_bias, qk_norm and sinks, or kv_lora");
    }
    return;
  }
  if (s.heads <= 0 || s.hidden <= 0) return;
  if (s.kv_heads > 0 && s.heads % s.kv_heads != 0) {
    context.diagnostics->Error(
        "model.kv_heads", context.place_of("kv_heads"),
        absl::StrCat(s.heads, " heads do not divide by ", s.kv_heads, " key/value heads"),
        absl::StrCat("legal: ", Enumerate(Divisors(s.heads), "or")));
  }
  if (s.head_dim == 0 && s.hidden % s.heads != 0) {
    context.diagnostics->Error(
        "model.head_dim", context.place_of("heads"),
        absl::StrCat("hidden ", s.hidden, " does not divide by ", s.heads, " heads"),
        "state head_dim, or change heads");
  }
}

void Transformer::CheckExperts(const InitContext& context) const {
  const TransformerShape& s = shape_;
  Diagnostics& d = *context.diagnostics;
  if (s.experts == 0) return;
  if (s.top_k == 0) {
    d.Error("model.dimension", context.place_of("top_k"), absl::StrCat(family_, " needs top_k"),
            "write it, or name a preset");
  } else if (s.top_k > s.experts) {
    d.Error("model.top_k", context.place_of("top_k"),
            absl::StrCat("a token cannot go to ", s.top_k, " of ", s.experts, " experts"),
            absl::StrCat("top_k is at most ", s.experts));
  }
  if (s.layers > 0 && s.dense_layers >= s.layers) {
    d.Error("model.dense_layers", context.place_of("dense_layers"),
            absl::StrCat("dense_layers ", s.dense_layers, " leaves none of the ", s.layers,
                         " layers to experts"),
            absl::StrCat("at most ", s.layers - 1));
  } else if (s.layers > 0 && (s.layers - s.dense_layers) % s.moe_every != 0) {
    d.Error(
        "model.moe_every", context.place_of("moe_every"),
        absl::StrCat(s.layers - s.dense_layers, " layers do not divide by moe_every ", s.moe_every),
        absl::StrCat("legal: ", Enumerate(Divisors(s.layers - s.dense_layers), "or")));
  }
}

}  // namespace shardlab
