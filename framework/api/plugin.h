#pragma once
// The border between the host and a plugin's shared library. A library exports one C function that
// returns a plain struct; the host reads version, size and build tag from it before any C++ of the
// plugin runs, and then lets it register what it offers. Kinds are open strings: a host that does
// not know a kind skips it politely, and a new kind needs no new border.
//
//   class Tensor final : public Strategy { ... };
//   SHARDLAB_PLUGIN(tensor, Tensor, "splits every matrix over neighbouring ranks")

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/options.h"
#include "api/parameters.h"
#include "api/value.h"
#include "base/diagnostic.h"
#include "base/export.h"
#include "domain/accounting.h"
#include "domain/precision.h"

namespace shardlab {

class Registrar;

// Everything that a plugin object is told once, after its parameters are read and before it is
// used.
struct InitContext {
  const AccountingRules* rules = nullptr;
  const Precision* precision = nullptr;
  std::string directory;  // of the plugin's own files (presets)
  // Reads a TOML file of the plugin's own; mistakes go to the diagnostics, and the result is then
  // empty.
  std::function<Value(const std::string& file)> read_toml;
  // Where the user wrote this parameter, or where the plugin's table is when it is not written.
  std::function<Place(const std::string& parameter)> place_of;
  // True when the user wrote the parameter.
  std::function<bool(const std::string& parameter)> is_given;
  std::function<std::vector<std::string>(const std::string& subdirectory)>
      list_files;  // names without directory
  Diagnostics* diagnostics = nullptr;
  // Reads a TOML file that the user names, relative to the scenario.
  std::function<Value(const std::string& file)> read_user_toml;
  // Visits a table of the plugin's own shape (a preset, an item of a list) as a scenario's table is
  // visited: units, ranges and unknown keys are told at their places. Keys in `reserved` are the
  // plugin's affair.
  std::function<void(const Value& table, const std::vector<std::string>& reserved,
                     const std::function<void(ParameterVisitor&)>& visit)>
      read_table;
  // The text of a file that the user names, relative to the scenario; mistakes go to the
  // diagnostics, whose places may name it so: the host puts its path.
  std::function<std::optional<std::string>(const std::string& file)> read_user_text;

  bool Fact(const std::string& name, bool otherwise) const {
    const auto it = rules->facts.find(name);
    return it == rules->facts.end() ? otherwise : it->second;
  }
  double Number(const std::string& name, double otherwise) const {
    const auto it = rules->numbers.find(name);
    return it == rules->numbers.end() ? otherwise : it->second.value;
  }
};

// The base of every interface. Objects are made by their factory with the defaults, visited to read
// the scenario, initialised once, and const from then on.
class SHARDLAB_EXPORT Plugin {
 public:
  virtual ~Plugin();
  virtual void Visit(ParameterVisitor& visitor);  // no parameters unless overridden
  virtual void Init(const InitContext& context);  // mistakes of meaning go to context.diagnostics
};

using PluginFactory = std::unique_ptr<Plugin> (*)();

class SHARDLAB_EXPORT Registrar {
 public:
  virtual ~Registrar();
  // `interface_version` is that of the kind's own interface class, checked by the host for the
  // kinds it knows.
  virtual void Add(const char* kind, int interface_version, const char* name,
                   const char* description, PluginFactory factory) = 0;
};

inline constexpr std::uint32_t kPluginApiVersion = 1;

}  // namespace shardlab

// The struct is C: its layout never changes, it only grows at the end.
extern "C" {
struct ShardlabPluginEntry {
  std::uint32_t api_version;
  std::uint32_t struct_size;
  const char* build_tag;  // the C++ ABI, not the compiler
  const char* name;
  void (*register_plugin)(shardlab::Registrar* registrar);
};
}

#define SHARDLAB_STRINGIZE_(x) #x
#define SHARDLAB_STRINGIZE(x) SHARDLAB_STRINGIZE_(x)

#ifdef _GLIBCXX_DEBUG
#define SHARDLAB_TAG_DEBUG "debug-stl"
#else
#define SHARDLAB_TAG_DEBUG "stl"
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SHARDLAB_TAG_SANITIZER "asan"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARDLAB_TAG_SANITIZER "asan"
#endif
#endif
#ifndef SHARDLAB_TAG_SANITIZER
#define SHARDLAB_TAG_SANITIZER "plain"
#endif

// What must agree for C++ objects to cross: standard library ABI, debug mode, sanitizer (it changes
// containers), Abseil's inline namespace. g++ and clang++ agree on all of them.
#define SHARDLAB_BUILD_TAG                                                      \
  "libstdc++-" SHARDLAB_STRINGIZE(                                              \
      _GLIBCXX_USE_CXX11_ABI) "/" SHARDLAB_TAG_DEBUG "/" SHARDLAB_TAG_SANITIZER \
                              "/absl-" SHARDLAB_STRINGIZE(ABSL_OPTION_INLINE_NAMESPACE_NAME)

#define SHARDLAB_ENTRY_SYMBOL "shardlab_plugin_entry"

// For a library with one plugin; several are registered by writing the two functions by hand.
#define SHARDLAB_PLUGIN(plugin_name, Class, description)                                           \
  namespace {                                                                                      \
  std::unique_ptr<shardlab::Plugin> ShardlabMake() { return std::make_unique<Class>(); }           \
  void ShardlabRegister(shardlab::Registrar* registrar) {                                          \
    registrar->Add(Class::kKind, Class::kInterfaceVersion, plugin_name, description,               \
                   &ShardlabMake);                                                                 \
  }                                                                                                \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) const ShardlabPluginEntry*                     \
  shardlab_plugin_entry() {                                                                        \
    static constexpr ShardlabPluginEntry entry = {shardlab::kPluginApiVersion,                     \
                                                  sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, \
                                                  plugin_name, &ShardlabRegister};                 \
    return &entry;                                                                                 \
  }
