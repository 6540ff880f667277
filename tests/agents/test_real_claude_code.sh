#!/usr/bin/env bash
# Whole Runs of the real CLI against the scripted model, without a network where that can be had.
set -eu
cd "$(dirname "$0")"
run="python3 -B real_agents.py claude-code"
if unshare --net true 2>/dev/null; then
    exec unshare --net sh -c "ip link set lo up 2>/dev/null; exec $run"
fi
exec $run
