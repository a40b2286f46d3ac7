#!/usr/bin/env python3
"""Puts the real output of README.md's commands into the ```text blocks that follow them.

    tests/scenarios/refill_readme.py BUILD      with BUILD/shardlab; then read the difference

The test compares those blocks with the output to the letter; whoever changes what a command prints runs this.
"""
import os
import re
import subprocess
import sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
build = os.path.abspath(sys.argv[1])
path = os.path.join(root, "README.md")
with open(path) as file:
    text = file.read()


def refill(match):
    env = dict(os.environ, PATH=build + os.pathsep + os.environ["PATH"])
    done = subprocess.run(["bash", "-e", "-c", match.group(1)], cwd=root, env=env, capture_output=True, text=True)
    return f"```sh\n{match.group(1)}```\n\n```text\n{done.stdout}```"


text = re.sub(r"```sh\n((?:(?!```).)*?)```\s*\n```text\n.*?```", refill, text, flags=re.S)
with open(path, "w") as file:
    file.write(text)
