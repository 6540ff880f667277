#!/usr/bin/env bash
# Whole Runs with a stand-in for agent CLIs, and with one that only a JSON file knows.
set -eu
cd "$(dirname "$0")"
exec python3 -B stand_in_agents.py
