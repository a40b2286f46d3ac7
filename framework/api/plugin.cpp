#include "api/plugin.h"

namespace shardlab {

ParameterVisitor::~ParameterVisitor() = default;
Plugin::~Plugin() = default;
void Plugin::Visit(ParameterVisitor&) {}
void Plugin::Init(const InitContext&) {}
Registrar::~Registrar() = default;

}  // namespace shardlab
