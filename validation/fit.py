#!/usr/bin/env python3
"""Fits numbers of software presets on half A of published rows; half B is not read.

    validation/fit.py build/shardlab [PRESET...]

The halves are those that `shardlab validate` shows (a hash of the row's id). A file of the half-A
rows alone is written first, and only it is planned. For each preset, its numbers start at the
middle of their bounds and are tried one after the other on every value of their grid, the others
held, until no number moves; what is minimised is the mean absolute error over all these rows.
Nothing of the preset's present values enters. Half B is printed at the end, for the found values.
"""

import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MANY, SINGLE = "measurements.csv", "measurements_a100_single_node.csv"


def grid(low, high, step):
    return [round(low + i * step, 9) for i in range(round((high - low) / step) + 1)]


# Bounds: a share is above 0 and at most 1; what must be moved is moved at least once; a host starts
# an op in 5 to 100 us. Steps are as coarse as the rows can tell apart.
FITS = {
    "llm-foundry": {
        "file": MANY, "sources": ["lf"], "quantity": "step",
        "rows": lambda r: "bf16" in r["precision"].lower(),
        "grids": {"attention.forward_share": grid(0.2, 1, 0.1),
                  "attention.backward_share": grid(0.2, 1, 0.1),
                  "elementwise.passes": grid(1, 3, 0.5),
                  "overlap.share": grid(0, 1, 0.1)}},
    "megatron-deepspeed": {
        "file": SINGLE, "sources": ["a100 single node"], "quantity": "step",
        "rows": lambda r: True,
        "grids": {"host.seconds_per_op": grid(0.5e-5, 10e-5, 0.5e-5),
                  "elementwise.passes": grid(1, 3, 0.1)}},
    "megatron-core": {
        "file": MANY, "sources": ["sm"], "quantity": "step", "rows": lambda r: True,
        "grids": {"elementwise.passes": grid(1, 4, 0.5)}},
    "nemo": {
        "file": MANY, "sources": ["dgxc v25.02 bf16"], "quantity": "step",
        "rows": lambda r: r["vpp"] in ("", "1"),
        "grids": {"elementwise.passes": grid(1, 3, 0.1), "overlap.share": grid(0, 1, 0.1)}},
    "nanotron": {
        "file": MANY, "sources": ["nob"], "quantity": "memory",
        "rows": lambda r: r["pp"] in ("", "1"),
        "grids": {"loss.bytes_per_logit": grid(4, 24, 0.5)}},
}


def validate(binary, file, sources, plugins=None, rules=HERE / "sources.toml"):
    command = [binary, "validate", str(file), "--format", "json", "--rules", str(rules)]
    for source in sources:
        command += ["--source", source]
    if plugins:
        command += ["--plugins", str(plugins)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def errors(document, quantity):
    return [abs(row[quantity]["error"]) for row in document["rows"]
            if row.get(quantity) and row[quantity]["error"] is not None]


def preset_with(folder, preset, values):
    """A copy of the preset under the name "tried", its numbers changed, for --plugins."""
    there = folder / "tried"
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(HERE.parent / "plugins" / "software" / preset, there)
    text = (there / "software.toml").read_text().replace(f'name = "{preset}"', 'name = "tried"')
    for name, value in values.items():
        text, count = re.subn(rf'(?m)^("{re.escape(name)}" = {{ value = )[^,]+', rf"\g<1>{value}", text)
        if count != 1:
            raise SystemExit(f"{preset}: no number {name} to change")
    (there / "software.toml").write_text(text)


def fit(binary, preset, work):
    spec = FITS[preset]
    rows = list(csv.DictReader(open(HERE / spec["file"], newline="")))
    half = {row["id"]: row["half"]
            for row in validate(binary, HERE / spec["file"], spec["sources"])["rows"]}
    rules, files = work / f"{preset}.toml", {}
    rules.write_text((HERE / "sources.toml").read_text().replace(
        f'"software.preset" = "{preset}"', '"software.preset" = "tried"'))
    for name in "ab":
        files[name] = work / f"{preset}-{name}.csv"
        with open(files[name], "w", newline="") as out:
            writer = csv.DictWriter(out, rows[0].keys())
            writer.writeheader()
            writer.writerows(r for r in rows if half.get(r["id"]) == name and spec["rows"](r))

    def judged(values, name):
        preset_with(work / "plugins", preset, values)
        found = errors(validate(binary, files[name], spec["sources"], work / "plugins", rules),
                       spec["quantity"])
        return sum(found) / len(found), len(found)

    values = {name: g[len(g) // 2] for name, g in spec["grids"].items()}
    moved = True
    while moved:
        moved = False
        for name, g in spec["grids"].items():
            tried = {v: judged({**values, name: v}, "a")[0] for v in g}
            best = min(tried, key=tried.get)
            if tried[best] < tried[values[name]] - 1e-9:
                values[name], moved = best, True
    a, b = judged(values, "a"), judged(values, "b")
    print(f"{preset}, {spec['quantity']}: " + ", ".join(f"{n} = {v:g}" for n, v in values.items()) +
          f"; half A {100 * a[0]:.2f} % of {a[1]} rows, half B {100 * b[0]:.2f} % of {b[1]} rows",
          flush=True)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        (pathlib.Path(work) / "plugins").mkdir()
        for preset in sys.argv[2:] or FITS:
            fit(sys.argv[1], preset, pathlib.Path(work))


if __name__ == "__main__":
    main()
