#!/usr/bin/env bash
# The Host dies at points spread over a Run that keeps whole traces: see crash.py.
EPG_RUN_OPTIONS='--record-traces full' exec python3 "$EPG_SOURCE/tests/faults/crash.py" kill "${EPG_CRASH_POINTS:-50}"
