#!/usr/bin/env bash
# The Host's writes fail, once or from a point on: see crash.py. EPG_CRASH_FAULTS asks for more; 0: for all.
set -u
python3 "$EPG_SOURCE/tests/faults/crash.py" fail "${EPG_CRASH_FAULTS:-140}" || exit 1
python3 "$EPG_SOURCE/tests/faults/crash.py" full "${EPG_CRASH_FAULTS:-45}" || exit 1
