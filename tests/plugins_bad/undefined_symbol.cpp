// Needs a function that nobody has.
#include "support.h"

extern "C" int shardlab_no_such_function();

namespace {
class UndefinedSymbol final : public Idle {
 public:
  void Visit(shardlab::ParameterVisitor&) override { shardlab_no_such_function(); }
};
}  // namespace

SHARDLAB_PLUGIN("undefined-symbol", UndefinedSymbol, "cannot be linked")
