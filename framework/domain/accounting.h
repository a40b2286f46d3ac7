#pragma once
// Accountings are data: which of the model's programs is counted, what is left out, how things
// round. The framework and the strategies read facts; nobody asks for an accounting's name.
//
//   if (rules.whole_devices) local = ceil(local);

#include <map>
#include <string>

namespace shardlab {

// What a framework's version does to time or memory, as a number: share of the machine's rate that
// its products reach, seconds of its host per op.
struct SoftwareNumber {
  double value = 0;
  std::string source;  // published, measured on ..., fitted on ..., assumed

  friend bool operator==(const SoftwareNumber&, const SoftwareNumber&) = default;
};

struct AccountingRules {
  std::string name;
  bool coarse_program = false;   // the model's classroom program
  bool ceiling_division = true;  // a cut of 10 over 4 leaves 3 on a rank; false: 2.5
  bool prefetch_hides_in_slot =
      false;  // gathers hide behind the whole micro-batch, not block by block
  bool reductions_after_pipeline =
      false;  // step = pipeline + largest reduction, not the largest sum per rank
  bool equal_passes =
      false;  // without a closed form a schedule is played with F : I : W = 1 : 1 : 1
  bool pairs_overlap =
      false;  // of an overlapped pair each half's collectives hide under the other's compute
  bool count_gathered = true;  // gathered parameters and transient buffers
  bool count_optimizer_time = true;
  std::map<std::string, bool> facts;              // framework behaviour read through Editor::Fact
  std::map<std::string, SoftwareNumber> numbers;  // and in numbers, through InitContext::Number
  std::string mfu_convention = "causal";

  friend bool operator==(const AccountingRules&, const AccountingRules&) = default;
};

}  // namespace shardlab
