#!/usr/bin/env bash
# A Host is interrupted at points spread over a whole Run: see crash.py. EPG_CRASH_POINTS asks for more; 0: for all.
exec python3 "$EPG_SOURCE/tests/faults/crash.py" term "${EPG_CRASH_POINTS:-30}"
