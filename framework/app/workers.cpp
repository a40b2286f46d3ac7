#include "app/workers.h"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "io/search_group.h"
#include "io/search_wire.h"
#include "io/sweep_player.h"
#include "io/sweep_store.h"
#include "io/sweep_wire.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

// The first byte of an answer.
constexpr char kAnswer = 'a', kRefusal = 'r';

// What a worker did; throws where it did not.
std::string Answered(Workers* workers, int slot, const Json& question) {
  std::string bytes;
  Json::to_cbor(question, bytes);
  std::string answer = workers->Ask(slot, bytes);
  if (answer.empty()) throw WorkerFailure("a worker answered nothing");
  const bool done = answer[0] == kAnswer;
  answer.erase(0, 1);
  if (!done) throw WorkerFailure(answer);
  return answer;
}

template <class T>
T Read(absl::StatusOr<T> read) {
  if (!read.ok()) throw WorkerFailure(std::string(read.status().message()));
  return *std::move(read);
}

void Serve(const std::string& of, Questions* questions,
           const std::function<std::string(const Json& question)>& work) {
  std::string bytes;
  while (questions->Next(&bytes)) {
    try {
      const Json question = Json::from_cbor(bytes);
      if (question.at("of") != of) {
        questions->Answer(
            Refused("a worker reads another scenario, or is another version, than the process that "
                    "asks: give all of them the same file and program"));
        continue;
      }
      questions->Answer(kAnswer + work(question));
    } catch (const std::exception& e) {
      questions->Answer(Refused(absl::StrCat("a worker failed: ", e.what())));
    }
  }
}

}  // namespace

std::string Refused(const std::string& why) { return kRefusal + why; }

std::string WorkOf(const Scenario& scenario) {
  return absl::StrCat(SHARDLAB_VERSION, " ", ScenarioHash(ToToml(scenario.root)));
}

SweepPiece AskForPiece(Workers* workers, int slot, const std::string& of, std::int64_t first,
                       std::int64_t past, bool documents) {
  const Json question = {{"of", of}, {"first", first}, {"past", past}, {"documents", documents}};
  return Read(PieceFromBytes(Answered(workers, slot, question)));
}

SearchResult AskForGroup(Workers* workers, int slot, const std::string& of, int group,
                         std::int64_t first, double to_beat) {
  const Json question = {{"of", of}, {"group", group}, {"first", first}, {"to_beat", to_beat}};
  return Read(FoundFromBytes(Answered(workers, slot, question)));
}

void ServeSweep(const Sweep& sweep, const std::string& of, Questions* questions) {
  SweepOrders orders;
  // One for rows and one for documents; the second is seldom wanted.
  std::unique_ptr<SweepPlayer> players[2];
  Serve(of, questions, [&](const Json& question) {
    const bool documents = question.at("documents").get<bool>();
    std::unique_ptr<SweepPlayer>& player = players[documents ? 1 : 0];
    if (player == nullptr) player = std::make_unique<SweepPlayer>(sweep, documents, &orders);
    return PieceToBytes(player->Play(question.at("first").get<std::int64_t>(),
                                     question.at("past").get<std::int64_t>()));
  });
}

void ServeSearch(const PluginRegistry& registry, const SearchGrid& grid,
                 const SearchOptions& options, const std::string& of, Questions* questions) {
  Prepared prepared;
  Prepare(registry, grid, 1, &prepared);
  Serve(of, questions, [&](const Json& question) {
    return FoundToBytes(SearchOfGroup(
        registry, grid, options, &prepared, question.at("group").get<int>(),
        question.at("first").get<std::int64_t>(), question.at("to_beat").get<double>()));
  });
}

}  // namespace shardlab
