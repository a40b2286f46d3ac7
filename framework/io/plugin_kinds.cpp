#include "io/plugin_kinds.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/exporter.h"
#include "api/hardware.h"
#include "api/model.h"
#include "api/network.h"
#include "api/optimizer.h"
#include "api/schedule.h"
#include "api/strategy.h"
#include "io/guarded.h"

namespace shardlab {
namespace {

template <class Interface>
constexpr KnownKind Kind(const char* plural) {
  return {Interface::kKind, plural, Interface::kInterfaceVersion,
          [](const Plugin& plugin) { return dynamic_cast<const Interface*>(&plugin) != nullptr; }};
}

constexpr std::array<KnownKind, 7> kKinds = {
    Kind<Model>("models"),        Kind<Hardware>("hardware"),  Kind<Network>("networks"),
    Kind<Strategy>("strategies"), Kind<Schedule>("schedules"), Kind<Optimizer>("optimizers"),
    Kind<Exporter>("exports"),
};

}  // namespace

const KnownKind* FindKind(const std::string& name) {
  for (const KnownKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  names.reserve(std::size(kKinds));
  for (const KnownKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::string InterfaceRefusal(const RegisteredPlugin& plugin) {
  const KnownKind* kind = FindKind(plugin.kind);
  if (kind == nullptr || kind->interface_version == plugin.interface_version) return "";
  return absl::StrCat("has ", plugin.kind, " ", plugin.name, " with interface ",
                      plugin.interface_version, ", this shardlab has ", plugin.kind, " interface ",
                      kind->interface_version);
}

absl::StatusOr<std::unique_ptr<Plugin>> MakePlugin(const RegisteredPlugin& plugin) {
  const KnownKind* kind = FindKind(plugin.kind);
  if (kind == nullptr) {
    return absl::UnimplementedError(absl::StrCat("has ", plugin.kind, " ", plugin.name,
                                                 ", a kind that this shardlab does not know"));
  }
  if (std::string why = InterfaceRefusal(plugin); !why.empty())
    return absl::FailedPreconditionError(why);
  std::unique_ptr<Plugin> made;
  const std::string what = absl::StrCat("cannot make ", plugin.kind, " ", plugin.name);
  if (absl::Status ok = Guarded(what, [&] { made = plugin.factory(); }); !ok.ok()) return ok;
  if (made == nullptr) return absl::InternalError(what + ": its factory returns nothing");
  if (!kind->fits(*made)) {
    return absl::InternalError(absl::StrCat(what, ": its factory returns something else"));
  }
  return made;
}

}  // namespace shardlab
