#!/usr/bin/env bash
# The Host dies at points spread over a whole Run: see crash.py. EPG_CRASH_POINTS asks for more; 0: for all.
exec python3 "$EPG_SOURCE/tests/faults/crash.py" kill "${EPG_CRASH_POINTS:-200}"
