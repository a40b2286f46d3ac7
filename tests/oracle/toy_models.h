#pragma once
// Tiny language models for the oracle: a dense block and one with experts, between an embedding and
// a cross-entropy in pieces. All structure of the real ones, sizes of a few elements.
//
//   Program program = ToyModel({.experts = true, .layers = 2});

#include "domain/program.h"

namespace shardlab::oracle {

struct ToySizes {
  double sequence = 4, hidden = 4, kv_heads = 2, group = 2, head_dim = 2, ffn = 4, vocabulary = 6;
  double experts = 4, expert_ffn = 2;
};

// Nothing divides by anything.
inline constexpr ToySizes kUnevenSizes = {5, 5, 3, 3, 2, 5, 7, 5, 3};

struct ToyModelOptions {
  bool experts = false;  // a mixture of experts in place of the dense MLP
  int layers = 2;
  bool tied_embedding = false;  // the head reads the embedding's table
  ToySizes sizes = {};
};

// Rolled: one class of layers, repeated. Fails the test when the builder refuses it.
Program ToyModel(const ToyModelOptions& options);

}  // namespace shardlab::oracle
