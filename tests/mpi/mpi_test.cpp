// shardlab-mpi: do 2, 3 and 4 ranks write the bytes that one process writes; does a rank that is
// killed cost nothing that was stored; are mistakes told once?

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/sweep_store.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kLongest = 240;  // seconds that anything here may take: a hang is a failure

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Ran {
  int status = -1;
  std::string out, err;
};

class Mpi : public ::testing::Test {
 protected:
  Mpi() {
    // As containers need it: root, more ranks than cores, no network.
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_btl", "self,vader", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    setenv("SHARDLAB_PLUGIN_PATH", SHARDLAB_BINARY_DIR "/plugins", 1);
    std::string path = (fs::temp_directory_path() / "shardlab-mpi-XXXXXX").string();
    folder_ = mkdtemp(path.data());
    // Open MPI's own files have short names there, whatever TMPDIR is.
    setenv("OMPI_MCA_orte_tmpdir_base", folder_.c_str(), 1);
    Write("sweep.toml",
          "name = \"8B\"\n[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
          "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
          "[training]\nsequence_length = 4096\nglobal_batch_size = 64\n"
          "[sweep]\n\"hardware.nodes\" = { from = 1, to = 16, plus = 1 }\n"
          "\"training.micro_batch_size\" = { from = 1, to = 8, plus = 1 }\n"
          "\"strategy.tensor.degree\" = [1, 2, 4]\n\"strategy.zero.stage\" = [0, 1]\n"
          "\"schedule.degree\" = [1, 2, 3]\n");
  }
  ~Mpi() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path At(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(At(name), std::ios::binary) << text;
  }
  Ran Shell(const std::string& command) const {
    const int status = std::system(absl::StrCat("cd '", folder_.string(), "' && timeout ", kLongest,
                                                " ", command, " > out 2> err < /dev/null")
                                       .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(At("out")), ReadFile(At("err"))};
  }
  Ran One(const std::string& args) const { return Shell(SHARDLAB_BINARY_DIR "/shardlab " + args); }
  Ran Ranks(int ranks, const std::string& args) const {
    return Shell(absl::StrCat(SHARDLAB_MPIRUN, " -n ", ranks, " ",
                              SHARDLAB_BINARY_DIR "/shardlab-mpi ", args));
  }

  fs::path folder_;
};

TEST_F(Mpi, ASweepIsTheSameForAnyNumberOfRanks) {
  const Ran one = One("sweep sweep.toml --store one.db --format csv");
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_GT(std::count(one.out.begin(), one.out.end(), '\n'), 2000);
  for (const int ranks : {1, 2, 4}) {
    const std::string store = absl::StrCat("ranks", ranks, ".db");
    const Ran many = Ranks(ranks, absl::StrCat("sweep sweep.toml --format csv --store ", store));
    ASSERT_EQ(many.status, 0) << ranks << " ranks: " << many.err;
    EXPECT_EQ(many.out, one.out) << ranks << " ranks";
    EXPECT_EQ(ReadFile(At(store)), ReadFile(At("one.db"))) << ranks << " ranks";
  }
  // Done already: nothing is done again, and the same is shown.
  EXPECT_EQ(Ranks(3, "sweep sweep.toml --format csv --store one.db").out, one.out);
}

TEST_F(Mpi, DocumentsTravelWhole) {
  const std::string args =
      "sweep sweep.toml --format jsonl --set 'sweep.\"hardware.nodes\"=[1,2]' "
      "--set 'sweep.\"training.micro_batch_size\"=[1,2]'";
  const Ran one = One(args), many = Ranks(3, args);
  ASSERT_EQ(many.status, 0) << many.err;
  EXPECT_GT(one.out.size(), 100'000u);
  EXPECT_EQ(many.out, one.out);
}

TEST_F(Mpi, ASearchIsTheSameForAnyNumberOfRanks) {
  const std::string args = "search " SHARDLAB_SOURCE_DIR
                           "/scenarios/llama3.1-70b-32xh100.toml --set accounting=operator "
                           "--set 'search.fix=[\"strategy.context.degree\"]' --top 5 ";
  for (const char* more :
       {"--format json", "--pareto --format json", "--objective tokens_per_second_per_device"}) {
    const Ran one = One(args + more);
    ASSERT_EQ(one.status, 0) << one.err;
    for (const int ranks : {2, 4}) {
      const Ran many = Ranks(ranks, args + more);
      ASSERT_EQ(many.status, 0) << many.err;
      EXPECT_EQ(many.out, one.out) << ranks << " ranks " << more;
    }
  }
}

// The process that works for rank 0: mpirun's child in this folder whose arguments are these and
// which is not rank 0 itself. Another run of this test has another folder.
pid_t AWorker(const fs::path& folder, const std::string& store) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string command = ReadFile(entry.path() / "cmdline");
    if (command.find(SHARDLAB_BINARY_DIR "/shardlab-mpi") != 0 ||
        command.find(store) == std::string::npos)
      continue;
    std::error_code gone;
    if (!fs::equivalent(entry.path() / "cwd", folder, gone)) continue;
    const std::string environment = ReadFile(entry.path() / "environ");
    if (environment.find("OMPI_COMM_WORLD_RANK=1") != std::string::npos) return std::stoi(name);
  }
  return 0;
}

TEST_F(Mpi, AKilledRankLosesNothingThatWasStored) {
  const std::string args =
      "sweep sweep.toml --set 'sweep.\"training.global_batch_size\"="
      "[64,128,192,256,320,384,448,512]' --format csv --store ";
  const Ran whole = One(args + "whole.db");
  ASSERT_EQ(whole.status, 0) << whole.err;
  std::mt19937 random(7);
  int in_the_middle = 0;
  std::int64_t next = 0, all = 0;
  for (int kills = 0; kills < 6; ++kills) {
    std::thread killer([&] {
      // Once rows are there, at any time.
      for (int tries = 0; tries < 2000; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::error_code ignored;
        if (!fs::exists(At("killed.db"), ignored) ||
            fs::file_size(At("killed.db"), ignored) < 100'000)
          continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
        if (const pid_t worker = AWorker(At(""), "killed.db"); worker > 0) kill(worker, SIGKILL);
        return;
      }
    });
    const Ran run = Ranks(3, args + "killed.db");
    killer.join();
    absl::StatusOr<SweepStore> store = SweepStore::Open(At("killed.db").string(), true);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto sweeps = store->List();
    ASSERT_TRUE(sweeps.ok() && sweeps->size() == 1) << sweeps.status();
    EXPECT_GE((*sweeps)[0].next, next);  // nothing stored was lost
    next = (*sweeps)[0].next;
    all = (*sweeps)[0].combinations;
    if (next < all) {
      EXPECT_NE(run.status, 0);
      ++in_the_middle;
    } else {
      fs::remove(At("killed.db"));
      next = 0;
    }
  }
  EXPECT_GT(in_the_middle, 0) << "no kill came in time";
  const Ran rest = Ranks(4, args + "killed.db");
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(rest.out, whole.out);
  for (const char* format : {"csv", "json"}) {
    EXPECT_EQ(One(absl::StrCat("results show killed.db --format ", format)).out,
              One(absl::StrCat("results show whole.db --format ", format)).out);
  }
}

TEST_F(Mpi, MistakesAreToldOnceWithTheSameStatus) {
  const Ran one = One("sweep none.toml"), many = Ranks(3, "sweep none.toml");
  EXPECT_EQ(many.status, one.status);
  const std::size_t at = many.err.find(one.err);
  ASSERT_NE(at, std::string::npos) << many.err;
  EXPECT_EQ(many.err.find(one.err, at + 1), std::string::npos) << many.err;

  const Ran jobs = Ranks(2, "sweep sweep.toml --jobs 4");
  EXPECT_EQ(jobs.status, 2);
  EXPECT_THAT(jobs.err, HasSubstr("--jobs is for one process"));
  const Ran store = Ranks(2, "sweep sweep.toml --store none/runs.db");
  EXPECT_EQ(store.status, 2);
  EXPECT_THAT(store.err, HasSubstr("cannot be used as a store"));
  const Ran plan = Ranks(2, "plan sweep.toml");
  EXPECT_EQ(plan.status, 2);
  EXPECT_THAT(plan.err, HasSubstr("shardlab-mpi has no command \"plan\""));
  EXPECT_EQ(Ranks(2, "--help").status, 0);
  EXPECT_THAT(Ranks(2, "search sweep.toml --devices 8..16").err, HasSubstr("right-sizing"));
}

// Ranks that read other files must not mix their rows.
TEST_F(Mpi, RanksThatReadAnotherScenarioAreRefused) {
  fs::create_directories(At("zero"));
  fs::create_directories(At("one"));
  fs::copy_file(At("sweep.toml"), At("zero/s.toml"));
  Write("one/s.toml", ReadFile(At("sweep.toml")) + "\"strategy.context.degree\" = [1]\n");
  Write("each.sh",
        "cd \"$(dirname \"$0\")/$([ \"$OMPI_COMM_WORLD_RANK\" = 0 ] && echo zero || echo "
        "one)\"\nexec " SHARDLAB_BINARY_DIR "/shardlab-mpi sweep s.toml\n");
  const Ran run = Shell(SHARDLAB_MPIRUN " -n 2 sh each.sh");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("another scenario"));
}

}  // namespace
}  // namespace shardlab
