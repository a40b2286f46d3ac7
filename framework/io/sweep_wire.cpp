#include "io/sweep_wire.h"

#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

// The same list of names for many rows is written once.
class NameTable {
 public:
  std::size_t Of(const Cells& cells) {
    const auto [at, added] = numbers_.emplace(&cells.names(), numbers_.size());
    if (added) names_.push_back(cells.names());
    return at->second;
  }
  Json Take() { return std::move(names_); }

 private:
  std::map<const Cells::NameList*, std::size_t> numbers_;
  Json names_ = Json::array();
};

Json CountsOf(const SweepCounts& c) {
  return {c.considered, c.illegal, c.pruned, c.evaluated, c.not_fitting, c.filtered};
}

struct Unreadable {};

// The list of a certain length that must be there.
const Json& List(const Json& json, std::size_t size) {
  if (!json.is_array() || json.size() != size) throw Unreadable();
  return json;
}

template <class T>
T As(const Json& json) {
  const bool right = std::is_same_v<T, std::string> ? json.is_string()
                     : std::is_same_v<T, bool>      ? json.is_boolean()
                                                    : json.is_number_integer();
  if (!right) throw Unreadable();
  return json.get<T>();
}

class Reader {
 public:
  SweepPiece Piece(Json json) {
    List(json, 7);
    SweepPiece piece;
    piece.first = As<std::int64_t>(json[0]);
    piece.past = As<std::int64_t>(json[1]);
    const Json& counts = List(json[2], 6);
    std::vector<std::int64_t> numbers;
    for (const Json& number : counts) numbers.push_back(As<std::int64_t>(number));
    piece.counts = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]};
    piece.problem = As<std::string>(json[3]);
    if (!json[4].is_array() || !json[5].is_array() || !json[6].is_array()) throw Unreadable();
    for (Json& constant : json[4]) piece.provenance.push_back(std::move(constant));
    for (const Json& list : json[5]) {
      if (!list.is_array()) throw Unreadable();
      Cells::NameList names;
      for (const Json& name : list) names.push_back(As<std::string>(name));
      names_.push_back(std::make_shared<const Cells::NameList>(std::move(names)));
    }
    for (Json& row : json[6]) piece.rows.push_back(Row(row));
    return piece;
  }

 private:
  SweepRow Row(Json& json) const {
    List(json, 8);
    SweepRow row;
    row.combination = As<std::int64_t>(json[0]);
    row.legal = As<bool>(json[1]);
    row.reason = As<std::string>(json[2]);
    row.keys = Read(json[3], json[4]);
    row.cells = Read(json[5], json[6]);
    row.document = As<std::string>(json[7]);
    return row;
  }

  Cells Read(const Json& number, Json& values) const {
    const auto at = static_cast<std::size_t>(As<std::int64_t>(number));
    if (at >= names_.size()) throw Unreadable();
    List(values, names_[at]->size());
    std::vector<Json> read;
    read.reserve(values.size());
    for (Json& value : values) read.push_back(std::move(value));
    return {names_[at], std::move(read)};
  }

  std::vector<Cells::Names> names_;
};

}  // namespace

std::string PieceToBytes(const SweepPiece& piece) {
  NameTable names;
  Json rows = Json::array();
  for (const SweepRow& row : piece.rows) {
    Json line = Json::array();
    line.push_back(row.combination);
    line.push_back(row.legal);
    line.push_back(row.reason);
    for (const Cells* cells : {&row.keys, &row.cells}) {
      line.push_back(names.Of(*cells));
      line.push_back(Json(Json::array_t(cells->values().begin(), cells->values().end())));
    }
    line.push_back(row.document);
    rows.push_back(std::move(line));
  }
  Json json = Json::array();
  json.push_back(piece.first);
  json.push_back(piece.past);
  json.push_back(CountsOf(piece.counts));
  json.push_back(piece.problem);
  json.push_back(Json(Json::array_t(piece.provenance.begin(), piece.provenance.end())));
  json.push_back(names.Take());
  json.push_back(std::move(rows));
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

absl::StatusOr<SweepPiece> PieceFromBytes(const std::string& bytes) {
  Json json = Json::from_cbor(bytes, true, false);
  if (!json.is_discarded()) {
    try {
      return Reader().Piece(std::move(json));
    } catch (const Unreadable&) {
    }
  }
  return absl::DataLossError("a piece of a sweep cannot be read");
}

}  // namespace shardlab
