// The rows of a transformer: what its shape says, op by op, or in the classroom's lumps.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/program_builder.h"
#include "api/transformer.h"

namespace shardlab {
namespace {

class Writer {
 public:
  Writer(ProgramBuilder& p, const TransformerShape& shape, const ModelRequest& request)
      : p_(p),
        s_(shape),
        share_(shape.AttentionShare(request.sequence_length)),
        dropout_(request.dropout > 0),
        loss_bytes_(request.loss_bytes),
        eager_(request.eager_attention),
        weights_inside_(request.weights_inside_experts) {}

  // Dimensions that no tensor has are left out: a strategy that cuts them asks that they divide.
  void Dimensions(double sequence) {
    p_.Batch('b');
    p_.Sequence('s', sequence);
    p_.Dimension('h', "hidden", s_.hidden);
    p_.Dimension('k', "kv_heads", s_.kv_heads);
    const int group = s_.heads / s_.kv_heads;
    p_.Dimension('g', "group", group);
    if (!s_.latent()) p_.Dimension('d', "head_dim", s_.head_dim);
    if (s_.ExpertLayers() < s_.layers) p_.Dimension('f', "ffn", s_.ffn);
    p_.Dimension('v', "vocabulary", s_.vocabulary);
    if (s_.positions > 0) p_.Dimension('P', "positions", s_.positions);
    if (s_.experts > 0) {
      p_.Dimension('e', "expert", s_.experts);
      p_.Dimension('m', "expert_ffn", s_.expert_ffn);
      if (s_.SharedWidth() > 0) p_.Dimension('w', "shared_ffn", s_.SharedWidth());
    }
    if (s_.latent()) {
      p_.Dimension('n', "qk_nope", s_.qk_nope);
      p_.Dimension('r', "qk_rope", s_.qk_rope);
      p_.Dimension('x', "qk_dim", s_.qk_nope + s_.qk_rope);
      p_.Dimension('y', "v_dim", s_.v_dim);
      p_.Dimension('c', "kv_latent", s_.kv_lora);
      if (s_.q_lora > 0) p_.Dimension('q', "q_latent", s_.q_lora);
    }
    p_.Alias('t', 's');  // keys of attention
    // Those that scores in memory have: whoever cuts the sequence leaves them whole.
    if (eager_) p_.Dimension('z', "keys", sequence);
    if (s_.mtp) p_.Alias('j', 'h');
  }

  void Ops() {
    Embedding();
    const int routed = s_.ExpertLayers(), dense = s_.layers - routed;
    if (dense > 0) Layer(routed > 0 ? "dense layer" : "layer", dense, false);
    if (routed > 0) Layer("layer", routed, true);
    Turns();
    Head();
    if (s_.mtp) FurtherToken();
  }

  void Coarse() {
    CoarseEmbedding();
    const int routed = s_.ExpertLayers(), dense = s_.layers - routed;
    if (dense > 0) CoarseDense(routed > 0 ? "dense layer" : "layer", dense);
    if (routed > 0) CoarseExperts(routed);
    Turns();
    CoarseHead();
  }

 private:
  // Of each few layers the last has experts, as in Hugging Face's interleave_moe_layer_step and
  // decoder_sparse_step.
  void Turns() {
    if (s_.ExpertLayers() == 0 || s_.moe_every == 1) return;
    std::vector<int> turns(static_cast<std::size_t>(s_.dense_layers), 0);
    for (int i = s_.dense_layers; i < s_.layers; ++i)
      turns.push_back((i - s_.dense_layers + 1) % s_.moe_every == 0 ? 1 : 0);
    p_.LayerOrder(std::move(turns));
  }

  // --- pieces

  TensorId Norm(const std::string& name, const std::string& weight, TensorId x,
                std::string_view labels = "bsh", std::string_view over = "h") {
    const std::string x_labels(labels), w_labels(over);
    if (s_.norm == "rms") {
      return p_.Norm(name, {x, x_labels}, {p_.Parameter(weight, over), w_labels}, over);
    }
    const TensorId w = s_.norm == "none" ? TensorId() : p_.Parameter(weight, over);
    const TensorId b =
        s_.norm == "layer" ? p_.Parameter(absl::StrCat(weight, ".bias"), over) : TensorId();
    return p_.LayerNorm(name, {x, x_labels}, {w, w_labels}, {b, w_labels}, over);
  }

  TensorId Biased(bool has, const std::string& name, TensorId x, const char* labels,
                  const char* dims) {
    if (!has) return x;
    const std::size_t dot = name.rfind('.');
    const std::string op = dot == std::string::npos ? name : name.substr(dot + 1);
    return p_.Bias(absl::StrCat(op, " bias"), {x, labels},
                   {p_.Parameter(absl::StrCat(name, ".bias"), dims), dims});
  }

  TensorId Plain(TensorId n1) {
    const TensorId wq = p_.Parameter("attention.q", "hkgd");
    const TensorId wk = p_.Parameter("attention.k", "hkd");
    const TensorId wv = p_.Parameter("attention.v", "hkd");
    const TensorId wo = p_.Parameter("attention.o", "kgdh");
    TensorId q = p_.Product("q", {n1, "bsh"}, {wq, "hkgd"}, "bskgd");
    q = Biased(s_.qkv_bias, "attention.q", q, "bskgd", "kgd");
    TensorId k = p_.Product("k", {n1, "bsh"}, {wk, "hkd"}, "bskd");
    k = Biased(s_.qkv_bias, "attention.k", k, "bskd", "kd");
    TensorId v = p_.Product("v", {n1, "bsh"}, {wv, "hkd"}, "bskd");
    v = Biased(s_.qkv_bias, "attention.v", v, "bskd", "kd");
    if (s_.qk_norm == "head") {
      q = p_.Norm("q norm", {q, "bskgd"}, {p_.Parameter("attention.q.norm", "d"), "d"}, "d");
      k = p_.Norm("k norm", {k, "bskd"}, {p_.Parameter("attention.k.norm", "d"), "d"}, "d");
    } else if (s_.qk_norm == "full") {
      // The norm needs all heads, the weights only their own: whoever cuts the heads cuts them too.
      q = p_.Norm("q norm", {q, "bskgd"}, {}, "kgd");
      q = p_.Product("q scaled", {q, "bskgd"}, {p_.Parameter("attention.q.norm", "kgd"), "kgd"},
                     "bskgd");
      k = p_.Norm("k norm", {k, "bskd"}, {}, "kd");
      k = p_.Product("k scaled", {k, "bskd"}, {p_.Parameter("attention.k.norm", "kd"), "kd"},
                     "bskd");
    }
    if (s_.sinks) {
      // Only the soft-max's sum sees it; as a row it is a bias of each head.
      q = p_.Bias("sinks", {q, "bskgd"}, {p_.Parameter("attention.sinks", "kg"), "kg"});
    }
    const TensorId o = p_.Attention("attention", {q, "bskgd"}, {k, "btkd"}, {v, "btkd"}, "bskgd");
    return AttentionEnd(o, wo, "bskgd", "kgdh");
  }

  TensorId AttentionEnd(TensorId o, TensorId wo, const char* o_labels, const char* w_labels) {
    p_.ScaleFlops(share_);
    Scores();
    const TensorId y = p_.Product("o", {o, o_labels}, {wo, w_labels}, "bsh", TensorRole::kStream);
    return Biased(s_.o_bias, "attention.o", y, "bsh", "h");
  }

  // What attention keeps for its backward pass.
  void Scores() {
    constexpr TensorRole kInside = TensorRole::kActivation;
    if (!eager_) {
      // FlashAttention keeps one log-sum-exp per query and head (Dao et al. 2022, arXiv 2205.14135,
      // algorithm 1), and of dropout the generator's state.
      p_.Stash("attention log-sum-exp", "bskg", kInside, DtypeSlot::kStatistics);
      return;
    }
    // The soft-max's output, and with dropout its mask and what it leaves: 5 a s^2 b bytes
    // (Korthikanti et al. 2022, arXiv 2205.05198, section 4.1).
    p_.Stash("attention probabilities", "bskgz", kInside, DtypeSlot::kCompute);
    if (!dropout_) return;
    p_.Stash("attention dropout mask", "bskgz", kInside, DtypeSlot::kMask);
    p_.Stash("attention dropped probabilities", "bskgz", kInside, DtypeSlot::kCompute);
  }

  // Behind the last op, on the stream.
  void Dropout(const char* name) {
    if (dropout_) p_.Stash(name, "bsh", TensorRole::kStream, DtypeSlot::kMask);
  }

  // Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), as it is trained:
  // keys and values are made from the latents, and the rotary key is repeated for every head.
  TensorId Latent(TensorId n1) {
    TensorId q;
    if (s_.q_lora > 0) {
      const TensorId down = p_.Parameter("attention.q_down", "hq");
      const TensorId latent =
          p_.Product("q latent", {n1, "bsh"}, {down, "hq"}, "bsq", TensorRole::kStream);
      const TensorId normed = p_.Norm("q latent norm", {latent, "bsq"},
                                      {p_.Parameter("attention.q_latent.norm", "q"), "q"}, "q");
      q = p_.Product("q", {normed, "bsq"}, {p_.Parameter("attention.q_up", "qkgx"), "qkgx"},
                     "bskgx");
    } else {
      q = p_.Product("q", {n1, "bsh"}, {p_.Parameter("attention.q", "hkgx"), "hkgx"}, "bskgx");
    }
    const TensorId down = p_.Parameter("attention.kv_down", "hc");
    const TensorId rope = p_.Parameter("attention.k_rope", "hr");
    const TensorId latent =
        p_.Product("kv latent", {n1, "bsh"}, {down, "hc"}, "bsc", TensorRole::kStream);
    const TensorId k_rope =
        p_.Product("k rope", {n1, "bsh"}, {rope, "hr"}, "bsr", TensorRole::kStream);
    const TensorId normed = p_.Norm("kv latent norm", {latent, "bsc"},
                                    {p_.Parameter("attention.kv_latent.norm", "c"), "c"}, "c");
    const TensorId k_nope = p_.Product("k nope", {normed, "bsc"},
                                       {p_.Parameter("attention.k_up", "ckn"), "ckn"}, "bskn");
    const TensorId v =
        p_.Product("v", {normed, "bsc"}, {p_.Parameter("attention.v_up", "cky"), "cky"}, "bsky");
    const TensorId wo = p_.Parameter("attention.o", "kgyh");
    const TensorId k = p_.Concat("k", {k_nope, "bskn"}, {k_rope, "bsr"}, "bskx");
    const TensorId o = p_.Attention("attention", {q, "bskgx"}, {k, "btkx"}, {v, "btky"}, "bskgy");
    return AttentionEnd(o, wo, "bskgy", "kgyh");
  }

  TensorId Attention(TensorId n1) { return s_.latent() ? Latent(n1) : Plain(n1); }

  // A dense MLP, or the shared experts: `name` is in front of its weights, `prefix` of its ops.
  TensorId Mlp(TensorId n2, const std::string& name, const std::string& prefix, char inner) {
    const std::string in{'h', inner}, out{inner, 'h'}, bsf{'b', 's', inner}, f{inner};
    const TensorId wg = s_.gated ? p_.Parameter(absl::StrCat(name, ".gate"), in) : TensorId();
    const TensorId wu = p_.Parameter(absl::StrCat(name, ".up"), in);
    const TensorId wd = p_.Parameter(absl::StrCat(name, ".down"), out);
    TensorId middle;
    if (s_.gated) {
      TensorId gate = p_.Product(absl::StrCat(prefix, "gate"), {n2, "bsh"}, {wg, in}, bsf);
      gate = Biased(s_.mlp_bias, absl::StrCat(name, ".gate"), gate, bsf.c_str(), f.c_str());
      TensorId up = p_.Product(absl::StrCat(prefix, "up"), {n2, "bsh"}, {wu, in}, bsf);
      up = Biased(s_.mlp_bias, absl::StrCat(name, ".up"), up, bsf.c_str(), f.c_str());
      middle = p_.GatedSilu(absl::StrCat(prefix, "silu"), {gate, bsf}, {up, bsf});
    } else {
      TensorId up = p_.Product(absl::StrCat(prefix, "up"), {n2, "bsh"}, {wu, in}, bsf);
      up = Biased(s_.mlp_bias, absl::StrCat(name, ".up"), up, bsf.c_str(), f.c_str());
      const std::string op = absl::StrCat(prefix, s_.activation);
      middle = s_.activation == "relu" ? p_.Relu(op, {up, bsf}) : p_.Gelu(op, {up, bsf});
    }
    const TensorId z = p_.Product(absl::StrCat(prefix, "down"), {middle, bsf}, {wd, out}, "bsh",
                                  TensorRole::kStream);
    return Biased(s_.mlp_bias, absl::StrCat(name, ".down"), z, "bsh", "h");
  }

  TensorId RoutedBias(const char* name, TensorId x, const char* labels, const char* dims) {
    return Biased(s_.mlp_bias, name, x, labels, dims);
  }

  TensorId Routed(const char* name, TensorId x, const char* x_labels, const char* weight,
                  const char* w_labels, const char* out) {
    const TensorId y = p_.Product(name, {x, x_labels}, {p_.Parameter(weight, w_labels), w_labels},
                                  out, TensorRole::kRouted);
    p_.Scale(y, Density());
    return y;
  }

  double Density() const { return static_cast<double>(s_.top_k) / s_.experts; }

  TensorId Experts(TensorId n2) {
    // Of the stream: sequence parallelism cuts the router's work too.
    TensorId scores = p_.Product("router scores", {n2, "bsh"}, {p_.Parameter("router", "he"), "he"},
                                 "bse", TensorRole::kStream);
    scores = Biased(s_.router_bias, "router", scores, "bse", "e");
    const TensorId routes = p_.TopK("routes", {scores, "bse"}, "e", s_.top_k);
    const TensorId sent = p_.Dispatch("dispatch", {n2, "bsh"}, {routes, "bse"}, "bseh", Density());
    TensorId gate = Routed("expert gate", sent, "bseh", "experts.gate", "ehm", "bsem");
    gate = RoutedBias("experts.gate", gate, "bsem", "em");
    TensorId up = Routed("expert up", sent, "bseh", "experts.up", "ehm", "bsem");
    up = RoutedBias("experts.up", up, "bsem", "em");
    // A weight's gradient needs what it multiplies: an expert's output as long as a token, unless
    // the weights travel with the tokens and multiply what goes into the last product.
    Arg weights;
    if (weights_inside_) {
      const TensorId scores_sent =
          p_.Dispatch("dispatch weights", {routes, "bse"}, {routes, "bse"}, "bse", Density());
      weights = {scores_sent, "bse"};
    }
    const TensorId inner =
        p_.GatedSilu("expert silu", {gate, "bsem"}, {up, "bsem"}, TensorRole::kRouted, weights);
    p_.Scale(inner, Density());
    TensorId down = Routed("expert down", inner, "bsem", "experts.down", "emh", "bseh");
    down = RoutedBias("experts.down", down, "bseh", "eh");
    TensorId z = weights_inside_ ? p_.Sum("combine", {down, "bseh"}, "bsh", TensorRole::kStream)
                                 : p_.Product("combine", {down, "bseh"}, {routes, "bse"}, "bsh",
                                              TensorRole::kStream);
    if (s_.SharedWidth() > 0) {
      TensorId shared = Mlp(n2, "shared", "shared ", 'w');
      if (s_.shared_gate) {
        const TensorId gates =
            p_.Product("shared gate score", {n2, "bsh"}, {p_.Parameter("shared.scale", "h"), "h"},
                       "bs", TensorRole::kStream);
        shared =
            p_.Product("shared scaled", {shared, "bsh"}, {gates, "bs"}, "bsh", TensorRole::kStream);
      }
      z = p_.Add("shared added", {z, "bsh"}, {shared, "bsh"});
    }
    return z;
  }

  TensorId Feed(TensorId n2, bool routed) { return routed ? Experts(n2) : Mlp(n2, "mlp", "", 'f'); }

  void Embedding() {
    p_.BeginClass("embedding", StagePosition::kFirst);
    const TensorId tokens = p_.Data("tokens", "bsv");
    table_ = p_.Parameter("embedding", "vh");
    TensorId x = p_.Lookup("embed", {tokens, "bsv"}, {table_, "vh"}, "bsh", TensorRole::kStream);
    if (s_.positions > 0) {
      const TensorId places = p_.Data("positions", "bsP");
      const TensorId rows =
          p_.Lookup("embed position", {places, "bsP"}, {p_.Parameter("positions", "Ph"), "Ph"},
                    "bsh", TensorRole::kStream);
      x = p_.Add("add position", {x, "bsh"}, {rows, "bsh"});
    }
    if (s_.embedding_norm) x = Norm("embedding norm", "embedding.norm", x);
    Dropout("embedding dropout mask");
    p_.Output(x);
    p_.EndClass();
  }

  void Layer(const char* name, int repeat, bool routed) {
    p_.BeginClass(name, StagePosition::kLayer, repeat, /*block=*/true);
    p_.Output(Block(p_.Input("x", "bsh"), routed));
    p_.EndClass();
  }

  TensorId Block(TensorId x, bool routed) {
    const bool before = !s_.post_norm, after = s_.post_norm || s_.norms == 4;
    if (s_.parallel) {
      const TensorId n1 = Norm("attention norm", "attention.norm", x);
      const TensorId y = Attention(n1);
      Dropout("attention output dropout mask");
      const TensorId n2 = s_.norms == 1 ? n1 : Norm("mlp norm", "mlp.norm", x);
      const TensorId z = Feed(n2, routed);
      Dropout("mlp dropout mask");
      const TensorId both = p_.Add("attention and mlp", {y, "bsh"}, {z, "bsh"});
      return p_.Add("residual", {x, "bsh"}, {both, "bsh"});
    }
    const TensorId n1 = before ? Norm("attention norm", "attention.norm", x) : x;
    TensorId y = Attention(n1);
    Dropout("attention output dropout mask");
    if (after) y = Norm("attention post norm", "attention.post_norm", y);
    const TensorId middle = p_.Add("attention residual", {x, "bsh"}, {y, "bsh"});
    const TensorId n2 = before ? Norm("mlp norm", "mlp.norm", middle) : middle;
    TensorId z = Feed(n2, routed);
    Dropout("mlp dropout mask");
    if (after) z = Norm("mlp post norm", "mlp.post_norm", z);
    return p_.Add("mlp residual", {middle, "bsh"}, {z, "bsh"});
  }

  // One module of multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): the stream
  // and the next token's embedding, each normed, joined by one product of twice the width.
  void FurtherToken() {
    p_.BeginClass("further token", StagePosition::kLast);
    const TensorId x = p_.Input("x", "bsh");
    const TensorId tokens = p_.Data("next tokens", "bsv");
    const TensorId table = p_.Parameter("further embedding", "vh");
    const TensorId e =
        p_.Lookup("further embed", {tokens, "bsv"}, {table, "vh"}, "bsh", TensorRole::kStream);
    const TensorId nx = Norm("further stream norm", "further stream.norm", x);
    const TensorId ne = Norm("further embedding norm", "further embedding.norm", e);
    const TensorId jx =
        p_.Product("further stream", {nx, "bsh"}, {p_.Parameter("further join.stream", "hj"), "hj"},
                   "bsj", TensorRole::kStream);
    const TensorId je = p_.Product("further joined", {ne, "bsh"},
                                   {p_.Parameter("further join.embedding", "hj"), "hj"}, "bsj",
                                   TensorRole::kStream);
    const TensorId joined = p_.Add("further sum", {jx, "bsj"}, {je, "bsj"});
    Loss(Block(joined, true), "further ");
    p_.EndClass();
  }

  void Head() {
    p_.BeginClass("head", StagePosition::kLast);
    const TensorId last = p_.Input("x", "bsh");
    Loss(last, "");
    p_.EndClass();
  }

  // Norm, logits and cross-entropy; `prefix` of names where this is not the model's own head.
  void Loss(TensorId x, const std::string& prefix) {
    const auto op = [&](const char* name) { return absl::StrCat(prefix, name); };
    const TensorId nf = Norm(op("final norm"), op("norm"), x);
    const bool own = !prefix.empty() || !s_.tied;
    const Arg head = own ? Arg{p_.Parameter(op("head"), "hv"), "hv"} : Arg{table_, "vh"};
    const TensorId targets = p_.Data(op("targets"), "bsv");
    TensorId logits = p_.Product(op("logits"), {nf, "bsh"}, head, "bsv");
    if (prefix.empty()) logits = Biased(s_.head_bias, "head", logits, "bsv", "v");
    const TensorId max = p_.MaxReduce(op("loss max"), {logits, "bsv"}, "bs");
    const TensorId sum = p_.SumExp(op("loss sum"), {logits, "bsv"}, {max, "bs"}, "bs");
    if (loss_bytes_ > 0) {
      p_.Stash(op("copies of the logits"), "bsv", TensorRole::kActivation, DtypeSlot::kStatistics,
               loss_bytes_ / 4);
    }
    const TensorId picked =
        p_.Lookup(op("loss pick"), {targets, "bsv"}, {logits, "bsv"}, "bs", TensorRole::kStatistic);
    p_.SetDtype(picked, DtypeSlot::kStatistics);
    p_.LogLoss(op("loss"), {sum, "bs"}, {max, "bs"}, {picked, "bs"});
  }

  // --- the classroom's lumps: bytes kept of a layer without any strategy, two bytes an element

  double Norms() const { return s_.norms * s_.Norm(s_.hidden); }

  void CoarseEmbedding() {
    p_.BeginClass("embedding", StagePosition::kFirst);
    const TensorId tokens = p_.Data("tokens", "bs");
    double others = s_.Norm(s_.hidden) * (s_.embedding_norm ? 1 : 0);
    others += static_cast<double>(s_.positions) * s_.hidden;
    // A tied head uses the matrix alone.
    const double together = s_.tied ? 0 : others / s_.vocabulary;
    table_ = p_.Parameter("embedding", "v", s_.hidden + together);
    p_.Scale(p_.Lump("embed", {tokens, "bs"}, {table_, "v"}, "bsv", TensorRole::kActivation), 0);
    if (s_.tied && others > 0) {
      const TensorId rest = p_.Parameter("positions and norm", "v", others / s_.vocabulary);
      p_.Scale(p_.Lump("places", {tokens, "bs"}, {rest, "v"}, "bsv", TensorRole::kActivation), 0);
    }
    p_.EndClass();
  }

  // Korthikanti et al. 2022 (arXiv 2205.05198), equation 2 without the attention scores: 34 s*b*h
  // bytes a layer, of which 10 are cut by tensor parallelism only together with the sequence.
  void CoarseDense(const char* name, int repeat) {
    const double heads = s_.heads;
    p_.BeginClass(name, StagePosition::kLayer, repeat, /*block=*/true);
    const TensorId x = p_.Input("x", "bsh");
    const TensorId attention =
        p_.Parameter("attention", "kg", (s_.Attention() + Norms() / 2) / heads);
    const TensorId y = p_.Lump("attention block", {x, "bsh"}, {attention, "kg"}, "bsh");
    // Two bytes an element: 5 and 12 elements make 10 and 24 bytes.
    p_.Stash("inputs and masks (10 s*b*h)", "bsh", TensorRole::kStream, DtypeSlot::kCompute, 5);
    const TensorId mlp = p_.Parameter("mlp", "f", (s_.DenseMlp() + Norms() / 2) / s_.ffn);
    const TensorId z = p_.Lump("mlp block", {y, "bsh"}, {mlp, "f"}, "bsh");
    p_.Stash("inside the blocks (24 s*b*h)", "bskg", TensorRole::kActivation, DtypeSlot::kCompute,
             12.0 * s_.hidden / heads);
    p_.Output(z);
    p_.EndClass();
  }

  // Two lumps: the attention's 10 and keys and values, and for each of the token's experts its copy
  // (2) and three inner tensors. A rank's experts see the tokens of all that share them, so that
  // evenly loaded both are what its own tokens make.
  void CoarseExperts(int repeat) {
    const double h = s_.hidden;
    p_.BeginClass("layer", StagePosition::kLayer, repeat, /*block=*/true);
    const TensorId x = p_.Input("x", "bsh");
    const TensorId attention =
        p_.Parameter("attention", "kg", (s_.Attention() + Norms() / 2) / s_.heads);
    const TensorId y = p_.Lump("attention block", {x, "bsh"}, {attention, "kg"}, "bsh");
    const double own = 10 + 2 * (1 + 2.0 * s_.kv_heads / s_.heads);
    p_.Stash("the attention's side", "bsh", TensorRole::kStream, DtypeSlot::kCompute, own / 2);
    const TensorId router = p_.Parameter("router and shared experts", "h",
                                         (s_.Router() + s_.Shared() + Norms() / 2) / h);
    const TensorId sent =
        p_.Lump("dispatch", {y, "bsh"}, {router, "h"}, "bseh", TensorRole::kRouted);
    p_.Anchor(0);
    p_.Scale(sent, Density());
    const TensorId experts = p_.Parameter("experts", "em", s_.Mlp(s_.expert_ffn) / s_.expert_ffn);
    const TensorId done =
        p_.Lump("experts", {sent, "bseh"}, {experts, "em"}, "bseh", TensorRole::kRouted);
    p_.Scale(done, Density());
    const double routed = 2 + 6.0 * s_.expert_ffn / s_.hidden;
    p_.Stash("inside the experts", "bseh", TensorRole::kRouted, DtypeSlot::kCompute,
             Density() * routed / 2);
    p_.Output(p_.Lump("combine", {done, "bseh"}, {router, "h"}, "bsh"));
    p_.EndClass();
    p_.Limit(AxisRole::kTensor,
             "the classroom's lump of a mixture of experts is not defined under tensor parallelism",
             "leave tensor parallelism out, or write accounting = \"operator\"");
  }

  void CoarseHead() {
    const double heads = s_.heads;
    p_.BeginClass("head", StagePosition::kLast);
    const TensorId targets = p_.Data("targets", "bs");
    const double matrix = s_.tied ? 0 : s_.hidden;
    const double others = s_.Norm(s_.hidden) + (s_.head_bias ? s_.vocabulary : 0);
    if (s_.tied)
      p_.Scale(p_.Lump("head", {targets, "bs"}, {table_, "v"}, "bsv", TensorRole::kActivation), 0);
    if (matrix + others > 0) {
      const TensorId head = p_.Parameter("head and norm", "v", matrix + others / s_.vocabulary);
      p_.Scale(p_.Lump("logits", {targets, "bs"}, {head, "v"}, "bsv", TensorRole::kActivation), 0);
    }
    p_.EndClass();

    // 2 FLOPs a parameter and token, of all active parameters, evenly on all pipeline ranks. Those
    // of experts are apart: they grow with the tokens that a rank's experts get.
    p_.BeginClass("compute", StagePosition::kSpread, 1, /*block=*/true);
    const double routed = s_.ExpertLayers() * s_.ActiveExperts();
    p_.Work("compute", "bskg", 2 * (s_.ActiveParameters() - routed) / heads);
    if (routed > 0) {
      const double unit = s_.Mlp(s_.expert_ffn) / s_.expert_ffn;
      p_.Work("experts' compute", "bsem", 2 * s_.ExpertLayers() * unit, TensorRole::kRouted,
              Density());
    }
    p_.EndClass();
  }

  ProgramBuilder& p_;
  const TransformerShape& s_;
  double share_ = 1;
  bool dropout_ = false;
  double loss_bytes_ = 0;
  bool eager_ = false;
  bool weights_inside_ = false;
  TensorId table_;
};

}  // namespace

absl::Status Transformer::Describe(ProgramBuilder& p, const ModelRequest& request) const {
  const TransformerShape& s = shape_;
  if (s.mtp && request.coarse) {
    return absl::InvalidArgumentError(
        "the classroom has no lump for a layer that predicts a further token; leave mtp out, or "
        "write accounting = \"operator\"");
  }
  ModelFacts& facts = p.facts();
  facts.name = !name_.empty() ? name_ : preset_.empty() ? family_ : preset_;
  facts.parameters = s.Parameters();
  facts.active_parameters = s.ActiveParameters();
  // The matrix of a tied head is multiplied with as well: nothing of it is looked up alone. A layer
  // for a further token has an embedding of its own.
  facts.embedding_parameters =
      static_cast<double>(s.vocabulary) * s.hidden * ((s.tied ? 0 : 1) + (s.mtp ? 1 : 0));
  facts.layers = s.layers;
  facts.attention_width = s.AttentionWidth() * s.AttentionShare(request.sequence_length);
  facts.source = source_.empty() ? "dimensions of the scenario" : source_;

  Writer writer(p, s, request);
  writer.Dimensions(request.sequence_length);
  if (request.coarse) {
    writer.Coarse();
  } else {
    writer.Ops();
  }
  return absl::OkStatus();
}

}  // namespace shardlab
