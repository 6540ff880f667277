#!/usr/bin/env bash
# The Host dies, or its writes fail, at points spread over a whole Run: see crash.py. EPG_CRASH_POINTS asks for more
# deaths, EPG_CRASH_FAULTS for more failures; 0: for all.
set -u
python3 "$EPG_SOURCE/tests/faults/crash.py" kill "${EPG_CRASH_POINTS:-200}" || exit 1
python3 "$EPG_SOURCE/tests/faults/crash.py" fail "${EPG_CRASH_FAULTS:-140}" || exit 1
python3 "$EPG_SOURCE/tests/faults/crash.py" full "${EPG_CRASH_FAULTS:-45}" || exit 1
