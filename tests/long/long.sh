#!/usr/bin/env bash
# Long Runs, see long.py: many submissions, and many Episodes. The slow set; EPG_LONG=1 asks for ten times as much.
set -u
times=1
[ "${EPG_LONG-}" != 1 ] || times=10
python3 "$EPG_SOURCE/tests/long/long.py" $((1000 * times)) 1 || exit 1
python3 "$EPG_SOURCE/tests/long/long.py" $((50 * times)) 2000 2 || exit 1
