#include "io/quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace shardlab {
namespace {

double Read(std::string_view text, Unit unit) {
  const QuantityResult result = ParseQuantity(text, unit);
  EXPECT_TRUE(result.ok()) << text << ": " << result.problem;
  return result.ok() ? result.value : -1;
}

QuantityResult Refusal(std::string_view text, Unit unit) {
  const QuantityResult result = ParseQuantity(text, unit);
  EXPECT_FALSE(result.ok()) << text << " was read as " << result.value;
  return result;
}

TEST(Quantity, Bytes) {
  EXPECT_EQ(Read("80 GB", Unit::kBytes), 80e9);
  EXPECT_EQ(Read("80GB", Unit::kBytes), 80e9);
  EXPECT_EQ(Read("  80 \t GB ", Unit::kBytes), 80e9);
  EXPECT_EQ(Read("80 GiB", Unit::kBytes), 85899345920.0);     // 80 * 2^30
  EXPECT_EQ(Read("81559 MiB", Unit::kBytes), 85520809984.0);  // 81559 * 2^20
  EXPECT_EQ(Read("55.505 GB", Unit::kBytes), 55505000000.0);
  EXPECT_EQ(Read("1 B", Unit::kBytes), 1.0);
  EXPECT_EQ(Read("0 B", Unit::kBytes), 0.0);
  EXPECT_FALSE(std::signbit(Read("-0 GB", Unit::kBytes)));
  EXPECT_EQ(Read("1.5 kB", Unit::kBytes), 1500.0);
  EXPECT_EQ(Read("1 KiB", Unit::kBytes), 1024.0);
  EXPECT_EQ(Read("2 MB", Unit::kBytes), 2e6);
  EXPECT_EQ(Read("2 TB", Unit::kBytes), 2e12);
  EXPECT_EQ(Read("2 PB", Unit::kBytes), 2e15);
  EXPECT_EQ(Read("2 TiB", Unit::kBytes), 2199023255552.0);     // 2^41
  EXPECT_EQ(Read("2 PiB", Unit::kBytes), 2251799813685248.0);  // 2^51
  EXPECT_EQ(Read("1e3 MB", Unit::kBytes), 1e9);
  EXPECT_EQ(Read("1_000 MB", Unit::kBytes), 1e9);
  EXPECT_EQ(Read(".5 GB", Unit::kBytes), 5e8);
  EXPECT_EQ(Read("5. GB", Unit::kBytes), 5e9);
  EXPECT_EQ(Read("+5 GB", Unit::kBytes), 5e9);
}

TEST(Quantity, Rates) {
  EXPECT_EQ(Read("450 GB/s", Unit::kBytesPerSecond), 450e9);
  EXPECT_EQ(Read("400 Gb/s", Unit::kBytesPerSecond), 50e9);  // bits
  EXPECT_EQ(Read("3.35 TB/s", Unit::kBytesPerSecond), 3350000000000.0);
  EXPECT_EQ(Read("800 Mb/s", Unit::kBytesPerSecond), 1e8);
  EXPECT_EQ(Read("8 Kb/s", Unit::kBytesPerSecond), 1000.0);
  EXPECT_EQ(Read("1.6 Tb/s", Unit::kBytesPerSecond), 2e11);
  EXPECT_EQ(Read("1 GiB/s", Unit::kBytesPerSecond), 1073741824.0);
}

TEST(Quantity, TimesAndOperations) {
  EXPECT_EQ(Read("5 us", Unit::kSeconds), 5e-6);  // the nearest double, not 5 * 1e-6
  EXPECT_EQ(Read("5 \xC2\xB5s", Unit::kSeconds), 5e-6);
  EXPECT_EQ(Read("5 \xCE\xBCs", Unit::kSeconds), 5e-6);
  EXPECT_EQ(Read("1.5 ms", Unit::kSeconds), 1.5e-3);
  EXPECT_EQ(Read("7 ns", Unit::kSeconds), 7e-9);
  EXPECT_EQ(Read("17.14 s", Unit::kSeconds), 17.14);
  EXPECT_EQ(Read("2 min", Unit::kSeconds), 120.0);
  EXPECT_EQ(Read("2 h", Unit::kSeconds), 7200.0);
  EXPECT_EQ(Read("1 d", Unit::kSeconds), 86400.0);
  EXPECT_EQ(Read("989 TFLOP/s", Unit::kFlopsPerSecond), 989e12);
  EXPECT_EQ(Read("989.4 TFLOP/s", Unit::kFlopsPerSecond), 989.4e12);
  EXPECT_EQ(Read("1 EFLOP/s", Unit::kFlopsPerSecond), 1e18);
  EXPECT_EQ(Read("1EFLOP", Unit::kFlops), 1e18);  // the E is not an exponent
  EXPECT_EQ(Read("1e2EFLOP", Unit::kFlops), 1e20);
  EXPECT_EQ(Read("50 GFLOP", Unit::kFlops), 50e9);
  EXPECT_EQ(Read("0.5", Unit::kNone), 0.5);
}

TEST(Quantity, NoNumberOrNoUnit) {
  EXPECT_EQ(Refusal("", Unit::kBytes).problem, "is an empty string");
  EXPECT_EQ(Refusal("   ", Unit::kBytes).problem, "is an empty string");
  EXPECT_EQ(Refusal("GB", Unit::kBytes).problem, "has no number (\"GB\")");
  EXPECT_EQ(Refusal("inf GB", Unit::kBytes).problem, "has no number (\"inf GB\")");
  EXPECT_EQ(Refusal("nan s", Unit::kSeconds).problem, "has no number (\"nan s\")");
  EXPECT_EQ(Refusal("- GB", Unit::kBytes).problem, "has no number (\"- GB\")");
  EXPECT_EQ(Refusal(". GB", Unit::kBytes).problem, "has no number (\". GB\")");
  const QuantityResult bare = Refusal("80", Unit::kBytes);
  EXPECT_EQ(bare.problem, "has no unit (\"80\")");
  EXPECT_EQ(bare.hint, "write \"80 GB\" (10^9 bytes each) or \"80 GiB\" (2^30 bytes each)");
  EXPECT_EQ(Refusal("1,000 GB", Unit::kBytes).problem, "has a comma in its number (\"1,000 GB\")");
  EXPECT_EQ(Refusal("5 s", Unit::kNone).problem, "takes a number without a unit, not \"5 s\"");
}

TEST(Quantity, UnknownUnitsNameWhatIsMeant) {
  const auto hint = [](std::string_view text, Unit unit) {
    const QuantityResult result = Refusal(text, unit);
    EXPECT_EQ(result.problem.substr(0, 19), "has an unknown unit") << result.problem;
    return result.hint;
  };
  EXPECT_EQ(Refusal("80 gb", Unit::kBytes).problem, "has an unknown unit \"gb\"");
  EXPECT_EQ(hint("80 gb", Unit::kBytes), "did you mean \"80 GB\"?");
  EXPECT_EQ(hint("80 GIB", Unit::kBytes), "did you mean \"80 GiB\"?");
  EXPECT_EQ(hint("1 KB", Unit::kBytes), "did you mean \"1 kB\" or \"1 KiB\"?");
  EXPECT_EQ(hint("80 G", Unit::kBytes), "did you mean \"80 GB\"?");
  EXPECT_EQ(hint("80 bytes", Unit::kBytes), "did you mean \"80 B\"?");
  EXPECT_EQ(hint("450 gb/s", Unit::kBytesPerSecond),
            "did you mean \"450 GB/s\" or \"450 Gb/s\" (bits)?");
  EXPECT_EQ(hint("400 Gbps", Unit::kBytesPerSecond), "did you mean \"400 Gb/s\" (bits)?");
  EXPECT_EQ(hint("450 GBps", Unit::kBytesPerSecond), "did you mean \"450 GB/s\"?");
  EXPECT_EQ(hint("989 TFLOPS", Unit::kFlopsPerSecond), "did you mean \"989 TFLOP/s\"?");
  EXPECT_EQ(hint("989 TFLOPS", Unit::kFlops), "did you mean \"989 TFLOP\"?");
  EXPECT_EQ(hint("989 tflop/s", Unit::kFlopsPerSecond), "did you mean \"989 TFLOP/s\"?");
  EXPECT_EQ(hint("5 sec", Unit::kSeconds), "did you mean \"5 s\"?");
  EXPECT_EQ(hint("5 hours", Unit::kSeconds), "did you mean \"5 h\"?");
  EXPECT_EQ(hint("5 US", Unit::kSeconds), "did you mean \"5 us\"?");
  EXPECT_EQ(hint("5 parsecs", Unit::kSeconds), "units of a time: d, h, min, s, ms, us and ns");
  EXPECT_EQ(hint("80 GB extra", Unit::kBytes).substr(0, 5), "units");
}

TEST(Quantity, WrongKindOfUnit) {
  QuantityResult result = Refusal("80 GB", Unit::kSeconds);
  EXPECT_EQ(result.problem, "must be a time, and \"80 GB\" is a number of bytes");
  EXPECT_EQ(result.hint, "write \"80 us\", \"80 ms\" or \"80 s\"");
  result = Refusal("450 GB", Unit::kBytesPerSecond);
  EXPECT_EQ(result.problem, "must be a rate of bytes, and \"450 GB\" is a number of bytes");
  EXPECT_EQ(result.hint, "did you mean \"450 GB/s\"?");
  EXPECT_EQ(Refusal("450 GB/s", Unit::kBytes).hint, "did you mean \"450 GB\"?");
  EXPECT_EQ(Refusal("989 TFLOP", Unit::kFlopsPerSecond).hint, "did you mean \"989 TFLOP/s\"?");
  EXPECT_EQ(Refusal("989 TFLOP/s", Unit::kFlops).hint, "did you mean \"989 TFLOP\"?");
  result = Refusal("80 Gb", Unit::kBytes);
  EXPECT_EQ(result.problem, "counts bits (\"80 Gb\": a small b is a bit and stands only in rates)");
  EXPECT_EQ(result.hint, "did you mean \"80 GB\"?");
}

TEST(Quantity, NegativeAndOverflow) {
  EXPECT_EQ(Refusal("-5 GB", Unit::kBytes).problem, "is negative (\"-5 GB\")");
  EXPECT_EQ(Refusal("1e300 PB", Unit::kBytes).problem,
            "is too large or too small to be held (\"1e300 PB\")");
  EXPECT_EQ(Refusal("1e305 TiB", Unit::kBytes).problem,
            "is too large or too small to be held (\"1e305 TiB\")");
  EXPECT_EQ(Refusal("1e999999999999999999999 s", Unit::kSeconds).ok(), false);
  EXPECT_EQ(Refusal("1e-400 ns", Unit::kSeconds).ok(), false);
  EXPECT_EQ(Refusal(std::string(400, '9') + " B", Unit::kBytes).problem.substr(0, 12),
            "is too large");
  EXPECT_EQ(Read(std::string(400, '0') + "7 B", Unit::kBytes), 7.0);
}

TEST(Quantity, HostileTextIsQuotedSafely) {
  EXPECT_EQ(Refusal("\x1b[31m", Unit::kBytes).problem, "has no number (\"\\x1b[31m\")");
  EXPECT_EQ(Refusal("5 \xFF", Unit::kBytes).problem, "has an unknown unit \"\xEF\xBF\xBD\"");
  EXPECT_LT(Refusal("5 " + std::string(100000, 'x'), Unit::kBytes).problem.size(), 200u);
  EXPECT_FALSE(Refusal(std::string("5 GB\0", 5), Unit::kBytes).ok());
}

TEST(Quantity, ExactTextIsShortAndReadsBack) {
  EXPECT_EQ(ExactQuantity(80e9, Unit::kBytes), "80 GB");
  EXPECT_EQ(ExactQuantity(85520809984.0, Unit::kBytes), "81559 MiB");
  EXPECT_EQ(ExactQuantity(85899345920.0, Unit::kBytes), "80 GiB");
  EXPECT_EQ(ExactQuantity(0, Unit::kBytes), "0 B");
  EXPECT_EQ(ExactQuantity(7, Unit::kBytes), "7 B");
  EXPECT_EQ(ExactQuantity(50e9, Unit::kBytesPerSecond), "50 GB/s");
  EXPECT_EQ(ExactQuantity(3.35e12, Unit::kBytesPerSecond), "3.35 TB/s");
  EXPECT_EQ(ExactQuantity(989e12, Unit::kFlopsPerSecond), "989 TFLOP/s");
  EXPECT_EQ(ExactQuantity(5e-6, Unit::kSeconds), "5 us");
  EXPECT_EQ(ExactQuantity(7200, Unit::kSeconds), "2 h");
  EXPECT_EQ(ExactQuantity(17.14, Unit::kSeconds), "17.14 s");
  EXPECT_EQ(ExactQuantity(0.25, Unit::kNone), "0.25");
}

TEST(Quantity, ExactTextOfRandomValuesReadsBack) {
  std::mt19937_64 random(7);
  for (const Unit unit : {Unit::kBytes, Unit::kSeconds, Unit::kBytesPerSecond,
                          Unit::kFlopsPerSecond, Unit::kFlops, Unit::kNone}) {
    for (int i = 0; i < 2000; ++i) {
      double value =
          std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 120) - 90);
      if (i % 3 == 0) value = std::floor(value);
      if (i % 3 == 1)
        value = static_cast<double>(random() % 100000) *
                std::pow(10.0, static_cast<int>(random() % 20) - 9);
      const std::string text = ExactQuantity(value, unit);
      ASSERT_EQ(Read(text, unit), value) << text;
    }
  }
}

TEST(Quantity, ForPeople) {
  EXPECT_EQ(FormatBytes(55505131520.0), "55.505 GB");
  EXPECT_EQ(FormatBytes(80e9), "80.000 GB");
  EXPECT_EQ(FormatBytes(1128859303936.0), "1.1289 TB");
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.0000 kB");
  EXPECT_EQ(FormatBytes(999994), "999.99 kB");
  EXPECT_EQ(FormatBytes(999996), "1.0000 MB");  // not 1000.00 kB
  EXPECT_EQ(FormatBytes(9.99996e9), "10.000 GB");
  EXPECT_EQ(FormatBytes(-3.2e9), "-3.2000 GB");
  EXPECT_EQ(FormatSeconds(17.1408), "17.14 s");
  EXPECT_EQ(FormatSeconds(0.0013418), "1.342 ms");
  EXPECT_EQ(FormatSeconds(5e-6), "5.000 us");
  EXPECT_EQ(FormatSeconds(2.5e-10), "0.2500 ns");
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(999.9), "999.9 s");
  EXPECT_EQ(FormatSeconds(1500), "25.00 min");
  EXPECT_EQ(FormatSeconds(9000), "2.500 h");
  EXPECT_EQ(FormatSeconds(864000), "10.00 d");
  EXPECT_EQ(FormatRate(450e9), "450.0 GB/s");
  EXPECT_EQ(FormatRate(3.35e12), "3.350 TB/s");
  EXPECT_EQ(FormatFlops(989e12), "989.0 TFLOP");
  EXPECT_EQ(FormatFlopRate(494.5e12), "494.5 TFLOP/s");
  EXPECT_EQ(FormatQuantity(80e9, Unit::kBytes), "80.000 GB");
  EXPECT_EQ(FormatQuantity(1e-3, Unit::kSeconds), "1.000 ms");
  EXPECT_EQ(FormatQuantity(0.5, Unit::kNone), "0.5");
  EXPECT_EQ(FormatBytes(INFINITY), "inf B");
}

TEST(Quantity, WhatIsShownReadsBackToItsDigits) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 5000; ++i) {
    const double value =
        std::pow(10.0, static_cast<double>(random() % 180000) / 10000.0);  // 1 to 1e18
    EXPECT_NEAR(Read(FormatBytes(value), Unit::kBytes) / value, 1, 6e-5) << value;
    EXPECT_NEAR(Read(FormatRate(value), Unit::kBytesPerSecond) / value, 1, 6e-4) << value;
    EXPECT_NEAR(Read(FormatFlops(value), Unit::kFlops) / value, 1, 6e-4) << value;
    EXPECT_NEAR(Read(FormatFlopRate(value), Unit::kFlopsPerSecond) / value, 1, 6e-4) << value;
    EXPECT_NEAR(Read(FormatSeconds(value * 1e-9), Unit::kSeconds) / (value * 1e-9), 1, 6e-4)
        << value;
  }
}

}  // namespace
}  // namespace shardlab
