#include "api/hardware.h"
#include "api/model.h"
#include "api/network.h"
#include "api/optimizer.h"
#include "api/schedule.h"
#include "api/strategy.h"

namespace shardlab {

Model::~Model() = default;
Hardware::~Hardware() = default;
void Hardware::OpTimes(const OpShape* shapes, std::size_t count, double* seconds) const noexcept {
  for (std::size_t i = 0; i < count; ++i) seconds[i] = OpTime(shapes[i]).value();
}
Network::~Network() = default;
Optimizer::~Optimizer() = default;
Schedule::~Schedule() = default;
Strategy::~Strategy() = default;

const char* Name(WorkKind kind) {
  constexpr const char* kNames[] = {"F", "I", "W", "B", "F+B"};
  return kNames[static_cast<std::size_t>(kind)];
}

int Schedule::DefaultChunks() const { return 1; }

int Schedule::Stages(const ScheduleShape& shape) const { return shape.ranks * shape.chunks; }

int Schedule::StageOf(const ScheduleShape& shape, int rank, int chunk) const {
  return chunk * shape.ranks + rank;
}

std::vector<OptimizerState> Optimizer::StatesOf(const ParameterKind&,
                                                const Precision& precision) const {
  return States(precision);
}

double Optimizer::FlopsOfMatrix(const ParameterKind&, double, double) const { return 0; }

bool Schedule::Pairs() const { return false; }

double Schedule::EqualSlots(const ScheduleShape&) const { return -1; }

}  // namespace shardlab
