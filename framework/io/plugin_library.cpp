#include "io/plugin_library.h"

#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "io/elf_check.h"
#include "io/guarded.h"
#include "io/loading_guard.h"

namespace shardlab {
namespace {

absl::Status Refuse(const std::string& why) { return absl::FailedPreconditionError(why); }

bool IsPluginName(const std::string& name) {
  if (name.empty()) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.')
      return false;
  }
  return true;
}

class HostRegistrar final : public Registrar {
 public:
  void Add(const char* kind, int interface_version, const char* name, const char* description,
           PluginFactory factory) override {
    if (kind == nullptr || name == nullptr || !IsPluginName(kind) || !IsPluginName(name)) {
      Fail("registers a plugin without a proper kind and name");
    } else if (factory == nullptr) {
      Fail(absl::StrCat("registers ", kind, " ", name, " without a way to make one"));
    } else {
      plugins_.push_back(
          {kind, interface_version, name, description == nullptr ? "" : description, factory});
    }
  }

  const std::string& failure() const { return failure_; }
  std::vector<RegisteredPlugin> Take() { return std::move(plugins_); }

 private:
  void Fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }

  std::vector<RegisteredPlugin> plugins_;
  std::string failure_;
};

// The linker's own words, without the file's name that opens them: the caller names the file.
std::string LinkerMessage(const std::string& path) {
  const char* text = dlerror();
  if (text == nullptr) return "the dynamic linker does not say why";
  return std::string(absl::StripPrefix(text, absl::StrCat(path, ": ")));
}

// Loaded libraries are never closed: plugin objects, their exceptions and their vtables may outlive
// any owner that one could name. Held by a pointer so that nothing is closed at exit either. A
// deque, because it never moves what it holds: a copy of a shared_library opens the file again.
std::deque<boost::dll::shared_library>& Loaded() {
  static auto* const loaded = new std::deque<boost::dll::shared_library>;
  return *loaded;
}

}  // namespace

absl::Status CheckEntry(const ShardlabPluginEntry* entry) {
  if (entry == nullptr) return Refuse("has an entry function that returns nothing");
  // In the order in which the fields may be trusted: the two numbers say what the rest is.
  if (entry->api_version < kPluginApiVersion) {
    return Refuse(absl::StrCat("was built for plugin API ", entry->api_version,
                               ", this shardlab has ", kPluginApiVersion, ": rebuild it"));
  }
  if (entry->api_version > kPluginApiVersion) {
    return Refuse(absl::StrCat("needs plugin API ", entry->api_version, ", this shardlab has ",
                               kPluginApiVersion, ": it is for a newer shardlab"));
  }
  // Larger is legal: the struct only grows at its end.
  if (entry->struct_size < sizeof(ShardlabPluginEntry)) {
    return Refuse(absl::StrCat("has an entry of ", entry->struct_size,
                               " bytes, this shardlab reads ", sizeof(ShardlabPluginEntry),
                               ": rebuild it"));
  }
  if (entry->build_tag == nullptr) return Refuse("does not say how it was built");
  if (std::string_view(entry->build_tag) != SHARDLAB_BUILD_TAG) {
    return Refuse(absl::StrCat("was built as ", entry->build_tag, ", this shardlab as ",
                               SHARDLAB_BUILD_TAG, ": C++ objects cannot cross between the two"));
  }
  if (entry->name == nullptr || entry->register_plugin == nullptr) {
    return Refuse("has an entry without a name or a register function");
  }
  return absl::OkStatus();
}

absl::StatusOr<PluginLibrary> PluginLibrary::Load(const std::string& path, Ending ending) {
  if (absl::Status ok = CheckElf(path); !ok.ok()) return ok;

  PluginLibrary library;
  std::error_code ignored;
  library.path_ = std::filesystem::absolute(path, ignored).string();
  boost::dll::shared_library handle;
  {
    std::optional<LoadingGuard> guard;
    if (ending == Ending::kOneLine) guard.emplace(path);
    // The error code always reads "Bad file descriptor" in Boost 1.74; what happened is in dlerror,
    // until the next call of the dl family.
    boost::dll::fs::error_code failed;
    // noexcept: what a static initialiser throws ends in std::terminate or comes out of dlopen,
    // depending on its compiler, and then the linker still holds its lock. Both become the one
    // ending.
    [&]() noexcept {
      handle.load(library.path_,
                  boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local, failed);
    }();
    if (failed) return Refuse(absl::StrCat("cannot be loaded: ", LinkerMessage(library.path_)));
  }
  const boost::dll::shared_library& kept = Loaded().emplace_back(std::move(handle));

  if (!kept.has(SHARDLAB_ENTRY_SYMBOL)) {
    return Refuse(absl::StrCat("is not a shardlab plugin (it has no ", SHARDLAB_ENTRY_SYMBOL, ")"));
  }
  const auto& entry_function = kept.get<const ShardlabPluginEntry*()>(SHARDLAB_ENTRY_SYMBOL);
  const ShardlabPluginEntry* entry = entry_function();
  if (absl::Status ok = CheckEntry(entry); !ok.ok()) return ok;

  HostRegistrar registrar;
  absl::Status registered =
      Guarded("cannot register its plugins", [&] { entry->register_plugin(&registrar); });
  if (!registered.ok()) return registered;
  if (!registrar.failure().empty()) return Refuse(registrar.failure());
  library.plugins_ = registrar.Take();
  if (library.plugins_.empty()) return Refuse("registers no plugin");
  return library;
}

}  // namespace shardlab
