#!/usr/bin/env bash
# A Host dies behind the event that ended its Run: see ends.py.
exec python3 "$EPG_SOURCE/tests/faults/ends.py"
