// Cannot be made; throws a number.
#include "support.h"

namespace {
class ThrowsInFactory final : public Idle {
 public:
  ThrowsInFactory() { throw 42; }
};
}  // namespace

SHARDLAB_PLUGIN("throws-in-factory", ThrowsInFactory, "cannot be made")
