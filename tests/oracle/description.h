#pragma once
// Steps in words that do not depend on the numbering of atoms, tensors or layers, to compare
// derivations.
//
//   EXPECT_EQ(DescribeAll(one), DescribeAll(other));

#include <string>
#include <vector>

#include "core/edits.h"

namespace shardlab::oracle {

std::string Describe(const Edited& edited, const Step& step);
std::string Describe(const Edited& edited, const Saved& saved);
std::vector<std::string> DescribeAll(const Edited& edited);

}  // namespace shardlab::oracle
