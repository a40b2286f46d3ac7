#pragma once
// The first importer: a Hugging Face config.json becomes the dimensions of a [model] table.
//
//   [model]
//   hf_config = "config.json"     # relative to the scenario; keys beside it override
//
// Which plugin serves a family, and which of its parameters stands under which key of the JSON, is
// data beside the plugin: families.toml. A plugin that is added brings its own; no model is named
// here.
//
//   [[family]]
//   types = ["llama", "mistral"]          # values of model_type
//   base = "usual"                        # a table of [maps], laid under [family.keys]
//   keys.tied = { key = "tie_word_embeddings", default = true }
//   left_out.num_nextn_predict_layers = "layers that predict further tokens are not counted"
//
// An entry of keys is a key of the JSON ("attn_config.kv_n_heads" is nested), a list of entries of
// which the first that is there counts, a number or truth value, or a table:
//   key, value     what to read, or a constant
//   default        the entry that counts where it is absent or null
//   times, plus    number, or for times a key whose number it is
//   invert         true: not
//   words          { relu = "relu", ... } from the JSON's word (or true/false) to the plugin's
//   when, assume   only where this key is true; `assume` is what its absence means
//   required       true: its absence is told

#include "api/value.h"
#include "base/diagnostic.h"
#include "io/plugin_registry.h"
#include "io/scenario.h"

namespace shardlab {

// Whether [model] names a config.json.
bool ImportsHf(const Scenario& scenario);

// Replaces hf_config by what it says; false, with diagnostics, when that is not to be had.
bool ImportHf(const PluginRegistry& registry, Scenario* scenario, Diagnostics* diagnostics);

}  // namespace shardlab
