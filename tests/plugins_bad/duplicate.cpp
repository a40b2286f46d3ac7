// Takes a name that another library has.
#include "support.h"

namespace {
class Duplicate final : public Idle {};
}  // namespace

SHARDLAB_PLUGIN("good", Duplicate, "a second one")
