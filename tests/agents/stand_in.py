#!/usr/bin/env python3
"""Stands in for an agent CLI: says what it was told to say, and does what it was told to do in between.

Its orders are the JSON file that $EPG_STAND_IN names:
  version    what --version prints (with exit code 0)
  help       what --help prints
  stdout     a file that is copied to stdout
  stderr     a file that is copied to stderr
  commands   shell commands run before the stream's last line
  line       [byte, megabytes]: one line of so many megabytes of that byte, before anything else
  orphan     true: leaves a process in a session of its own behind
  wait       seconds to sleep at the end
  exit       exit code
"""
import json
import os
import subprocess
import sys
import time


def main():
    with open(os.environ["EPG_STAND_IN"], encoding="utf-8") as file:
        orders = json.load(file)
    if "--version" in sys.argv:
        print(orders.get("version", "stand-in 1.2.3"))
        return 0
    if "--help" in sys.argv:
        print(orders.get("help", ""))
        return 0
    out = sys.stdout.buffer
    if "line" in orders:
        byte, megabytes = orders["line"]
        for _ in range(megabytes):
            out.write(byte.encode() * (1 << 20))
        out.write(b"\n")
    lines = open(orders["stdout"], "rb").read().splitlines(keepends=True) if "stdout" in orders else []
    for number, line in enumerate(lines):
        if number == len(lines) - 1:
            out.flush()
            run_commands(orders)
        out.write(line)
        out.flush()
    if not lines:
        out.flush()
        run_commands(orders)
    if "stderr" in orders:
        sys.stderr.write(open(orders["stderr"], encoding="utf-8").read())
        sys.stderr.flush()
    if orders.get("orphan"):
        subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    time.sleep(orders.get("wait", 0))
    return orders.get("exit", 0)


def run_commands(orders):
    for command in orders.get("commands", []):
        subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    sys.exit(main())
