// Nothing is wrong with this one.
#include "support.h"

namespace {
class Good final : public Idle {};
}  // namespace

SHARDLAB_PLUGIN("good", Good, "does nothing, well")
