// shardlab-mpi: `shardlab sweep` and `shardlab search` on all ranks of mpirun. Rank 0 is the
// program that the user sees: it reads, hands out, stores and prints. The others run the same
// command up to the point where its work begins, say nothing, and answer rank 0's questions. A rank
// that dies ends all of them; what was stored stays.

#include <mpi.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "app/command_line.h"
#include "mpi/ranks.h"

namespace shardlab {
namespace {

constexpr const char* kCommands[] = {"sweep", "search"};

bool IsOurs(const std::vector<std::string>& args) {
  return !args.empty() && std::any_of(std::begin(kCommands), std::end(kCommands),
                                      [&](const char* command) { return args[0] == command; });
}

int Help(const std::vector<std::string>& args) {
  const bool asked = !args.empty() && (args[0] == "--help" || args[0] == "-h");
  if (!args.empty() && args[0] == "--version")
    return RunShardlab(args, std::cout, std::cerr, ThisTerminal("shardlab"));
  std::ostream& out = asked ? std::cout : std::cerr;
  if (!asked && !args.empty())
    out << "error: shardlab-mpi has no command \"" << args[0] << "\"\n\n";
  out << "usage: mpirun -n RANKS shardlab-mpi sweep|search FILE [ARGUMENTS]\n\n"
         "`shardlab sweep` and `shardlab search` on many processes, with the same output and the\n"
         "same store. Rank 0 hands out the work and keeps what comes back; RANKS - 1 work.\n";
  return asked ? kDone : kWrongInput;
}

int OnRankZero(const std::vector<std::string>& args, int ranks, const char* program) {
  if (!IsOurs(args) && ranks == 1) return Help(args);
  Terminal terminal = ThisTerminal(program);
  // mpirun gives its ranks a terminal of its own, also where its output goes to a file.
  terminal.color_out = terminal.color_err = false;
  terminal.width = Terminal().width;
  if (ranks == 1) return RunShardlab(args, std::cout, std::cerr, terminal);
  RankZero zero(ranks);
  terminal.workers = &zero;
  int status = kOther;
  std::thread command([&] {
    status = IsOurs(args) ? RunShardlab(args, std::cout, std::cerr, terminal) : Help(args);
    zero.Finish();
  });
  zero.Carry();
  command.join();
  return status;
}

void OnOtherRank(const std::vector<std::string>& args, int rank, const char* program) {
  OtherRank other;
  Terminal terminal;
  terminal.program = program;
  terminal.questions = &other;
  std::ostringstream out, err;
  if (IsOurs(args)) RunShardlab(args, out, err, terminal);
  // What it has to say, if it came to no work and rank 0 did.
  std::string question;
  while (other.Next(&question))
    other.Answer(Refused(absl::StrCat("rank ", rank, " cannot take part: ", err.str())));
}

}  // namespace
}  // namespace shardlab

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> args(argv + 1, argv + argc);
  // The command of rank 0 runs on a thread that does not call MPI.
  int provided = 0, rank = 0, ranks = 1, status = 0;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (provided < MPI_THREAD_FUNNELED) {
    std::cerr << "error: this MPI allows no threads\n";
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) {
    status = shardlab::OnRankZero(args, ranks, argv[0]);
  } else {
    shardlab::OnOtherRank(args, rank, argv[0]);
  }
  MPI_Finalize();
  return status;
}
