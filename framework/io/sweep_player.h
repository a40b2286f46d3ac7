#pragma once
// Plays pieces of a sweep, in any order and in any process: what comes out depends on the piece
// alone. One for each thread, because it keeps compositions from piece to piece.
//
//   SweepOrders orders;
//   SweepPlayer player(sweep, documents, &orders);
//   SweepPiece piece = player.Play(0, 128);

#include <memory>
#include <string>
#include <vector>

#include "io/sweep_layouts.h"
#include "io/sweep_run.h"

namespace shardlab {

class SweepPlayer final {
 public:
  // With `documents` every combination is planned alone, the long way: rows have whole documents.
  SweepPlayer(const Sweep& sweep, bool documents, SweepOrders* orders);

  SweepPiece Play(std::int64_t first, std::int64_t past);

 private:
  using Json = nlohmann::ordered_json;

  void One(std::int64_t combination);
  void Step(std::int64_t combination);
  bool When();
  SweepRow Begun(std::int64_t combination) const;
  // False where the combination has to be planned alone.
  bool OfLayout(SweepRow* row);
  void Alone(SweepRow row);
  void Illegal(const Diagnostics& diagnostics, SweepRow row);
  bool Keep(const Condition::LookUp& look_up);
  void Note(const std::vector<int>& constants);
  bool KeepsByRow() const;

  const Sweep& sweep_;
  bool documents_;
  std::vector<const SweptKey*> keys_;
  SweepLayouts layouts_;
  SharedNames names_;
  Cells::Names key_names_;
  std::vector<std::vector<std::vector<Json>>> shown_;  // [group][step][key] as a cell
  // Of `when`: what a name stands for in every combination, or the number of a swept key.
  struct WhenName {
    std::string name;
    int key = -1;
    std::optional<Condition::Scalar> fixed;
  };
  std::vector<WhenName> when_names_;
  bool when_by_name_ = true;  // false: some name may be within a swept value

  // Of the combination being played.
  std::vector<int> steps_;                                   // [group]
  std::vector<const Value*> values_;                         // [key]
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // [key] its group and place in it
  std::vector<bool> noted_;                                  // [constant] the piece has it
  SweepPiece piece_;
};

}  // namespace shardlab
