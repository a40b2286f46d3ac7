#!/usr/bin/env python3
"""Holds the benchmarks to their limits.

    bench/check_limits.py BUILD            runs, compares, prints a table; last line "N passed, M failed"
    bench/check_limits.py BUILD --record   writes the instruction counts that later runs are compared with

Times are CPU time, the least of five repetitions: machines are noisy, and noise only ever adds. Instruction counts
are callgrind's; they repeat to within 0.1 % and show a regression that no clock would.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTS = os.path.join(HERE, "instructions", "counts.json")

# name: (limit in seconds, why)
TIMES = {
    "evaluate_dense_70b_3d": (1e-6, "a plan of the 70B 3D kind, every op, saved tensor and transfer"),
    "compose_70b_3d": (1e-3, "from the scenario's text to a composition"),
    "evaluate_moe_deepseek_v3": (3e-6, "experts, latent attention, five kinds of axes"),
    "evaluate_zero_bubble_16x128": (20e-6, "a schedule without a closed form, 6,144 events"),
    "evaluate_fsdp_pipeline_16x128": (20e-6, "gathers and reductions travel under every pass"),
    "compose_moe_deepseek_v3": (3e-3, "the same with every kind of strategy on"),
    "simulate_70b_32_devices": (20e-3, "the same plan played event by event, with memory over time"),
    "simulate_1024_devices": (1.0, "sixteen pipeline ranks, 128 micro-batches"),
    "write_trace_70b": (0.3, "every layer, op and collective of two ranks as Chrome trace JSON"),
    "search_70b_32_devices": (0.08, "the default grid of 47,232 plans, composing included; the goal is 0.1 s"),
    "search_gpt3_175b_64_devices": (0.1, "the default grid of 54,912 plans; the goal"),
    "search_405b_16384_devices": (0.3, "the default grid of 126,720 plans; the goal is 5 s on two cores"),
    "sweep_rows_per_second": (0.165, "6,480 legal rows into SQLite, 18 compositions; the goal, 50,000 a second, is 0.13 s"),
    "sweep_rows_of_their_own": (0.25, "291 rows into SQLite, each with a composition of its own"),
    "play_1f1b_16x128": (15e-6, "16 ranks, 128 micro-batches, 4,096 events"),
}
# Legal plans a second that a search decides on one core, composing included.
RATES = {
    "search_405b_varied": (1e6, "two million plans, dense; the goal"),
    "search_mixtral_8x7b_32_devices": (0.3e6, "the default grid of 158,400 plans, MoE; the goal"),
}
SEARCH_MEMORY = 500e6   # bytes resident, whatever the grid
SEARCH_GROWTH = 1.25    # of a grid of sixteen combinations of `vary` over the default grid
TWO_THREADS = 1.8       # times as fast as one; on a machine that does something else it is less
PLAN_WALL = 0.050       # shardlab plan as a process, all plugins loaded
MORE_INSTRUCTIONS = 1.02  # a count may grow by this factor before it counts as a regression


def benchmarks(build):
    out = subprocess.run([os.path.join(build, "bench", "shardlab_bench"), "--benchmark_format=json",
                          "--benchmark_repetitions=5", "--benchmark_min_time=0.2"],
                         check=True, capture_output=True, text=True).stdout
    unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    least, decided = {}, {}
    for row in json.loads(out)["benchmarks"]:
        if row.get("run_type") != "iteration":
            continue
        seconds = row["cpu_time"] * unit[row["time_unit"]]
        least[row["run_name"]] = min(seconds, least.get(row["run_name"], seconds))
        decided[row["run_name"]] = max(row.get("decided", 0), decided.get(row["run_name"], 0))
    return least, decided


def plan_wall(build):
    scenario = os.path.join(HERE, "..", "scenarios", "llama3.1-70b-32xh100.toml")
    command = [os.path.join(build, "shardlab"), "plan", scenario, "--format", "json"]
    least = None
    for _ in range(15):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - begin
        least = seconds if least is None else min(least, seconds)
    return least


VARY = ('search.vary={"training.global_batch_size" = [2048, 4096, 6144, 8192], '
        '"training.sequence_length" = [4096, 8192, 12288, 16384]}')


VARY_MUCH = ('search.vary={"training.global_batch_size" = [2048, 4096, 6144, 8192, 10240, 12288, 14336, 16384], '
             '"training.sequence_length" = [4096, 8192, 12288, 16384, 20480, 24576, 28672, 32768, 36864, 40960]}')


def search_process(build, jobs, *more):
    """Wall seconds and most resident bytes of `shardlab search` on the large scenario."""
    file = os.path.join(HERE, "..", "scenarios", "llama3.1-405b-16384-gpus.toml")
    command = [os.path.join(build, "shardlab"), "search", file, "--format", "json", "--jobs", str(jobs), *more]
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{command} ended with {child.returncode}")
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def instructions(build, what, n):
    def run(repetitions):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                                   os.path.join(build, "bench", "shardlab_instructions"), what, str(repetitions)],
                                  check=True, capture_output=True, text=True)
        return int(re.search(r"Collected : (\d+)", done.stderr).group(1))
    return (run(2 * n) - run(n)) / n


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    build, record = sys.argv[1], "--record" in sys.argv[2:]
    counts = {what: instructions(build, what, n) for what, n in (("evaluate", 1000), ("compose", 50))}
    if record:
        with open(COUNTS, "w") as file:
            json.dump({k: round(v) for k, v in counts.items()}, file, indent=1)
            file.write("\n")
        print(counts)
        return 0

    passed = failed = 0

    def row(name, got, limit, text):
        nonlocal passed, failed
        good = got <= limit
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} {name:28s} {text}")

    least, decided = benchmarks(build)
    for name, (limit, why) in TIMES.items():
        row(name, least[name], limit, f"{least[name] * 1e6:10.3f} us, at most {limit * 1e6:g} us: {why}")
    for name, (limit, why) in RATES.items():
        row(name, -decided[name], -limit, f"{decided[name] / 1e6:10.3f} M/s, at least {limit / 1e6:g} M/s: {why}")
    grid, large = search_process(build, 2)[1], search_process(build, 2, "--set", VARY)[1]
    row("search memory", large, SEARCH_MEMORY,
        f"{large / 1e6:10.0f} MB for two million plans, at most {SEARCH_MEMORY / 1e6:g} MB")
    row("search memory growth", large / grid, SEARCH_GROWTH,
        f"{large / grid:10.2f} of the default grid's, at most {SEARCH_GROWTH}")
    # A long search: of a short one much is start-up and the winner's report.
    walls = [(search_process(build, 1, "--set", VARY_MUCH)[0], search_process(build, 2, "--set", VARY_MUCH)[0])
             for _ in range(9)]
    one, two = min(w[0] for w in walls), min(w[1] for w in walls)
    row("two threads", -one / two, -TWO_THREADS,
        f"{one / two:10.2f} times as fast as one on ten million plans, best of nine, at least {TWO_THREADS}")
    wall = plan_wall(build)
    row("shardlab plan", wall, PLAN_WALL, f"{wall * 1e3:10.3f} ms wall, at most {PLAN_WALL * 1e3:g} ms")
    with open(COUNTS) as file:
        recorded = json.load(file)
    for what, count in counts.items():
        row(f"instructions of {what}", count, MORE_INSTRUCTIONS * recorded[what],
            f"{count:10.0f}, recorded {recorded[what]}")
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
