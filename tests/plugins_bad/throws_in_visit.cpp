// Throws a class of its own when its parameters are listed.
#include "support.h"

namespace {
struct OwnType {};
class ThrowsInVisit final : public Idle {
 public:
  void Visit(shardlab::ParameterVisitor&) override { throw OwnType(); }
};
}  // namespace

SHARDLAB_PLUGIN("throws-in-visit", ThrowsInVisit, "has no list of parameters")
