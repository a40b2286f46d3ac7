#pragma once
// What the bad plugins share: a strategy without edits, and an entry function with chosen fields.
//
//   BAD_ENTRY(shardlab::kPluginApiVersion + 1, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG,
//   &Register)

#include <memory>

#include "api/strategy.h"

namespace {

class Idle : public shardlab::Strategy {
 public:
  void Apply(shardlab::Editor&) const override {}
};

template <class Class>
std::unique_ptr<shardlab::Plugin> Make() {
  return std::make_unique<Class>();
}

}  // namespace

#define BAD_ENTRY(api, size, tag, register_function)                                             \
  extern "C" __attribute__((visibility("default"))) const ShardlabPluginEntry*                   \
  shardlab_plugin_entry() {                                                                      \
    static const ShardlabPluginEntry entry = {(api), (size), (tag), "bad", (register_function)}; \
    return &entry;                                                                               \
  }
