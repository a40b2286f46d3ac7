// Throws when it is initialised, an exception class of its own that derives from a standard one.
#include <stdexcept>

#include "support.h"

namespace {
class OwnError final : public std::runtime_error {
 public:
  OwnError() : std::runtime_error("the table of constants is missing") {}
};
class ThrowsInInit final : public Idle {
 public:
  void Init(const shardlab::InitContext&) override { throw OwnError(); }
};
}  // namespace

SHARDLAB_PLUGIN("throws-in-init", ThrowsInInit, "cannot be initialised")
