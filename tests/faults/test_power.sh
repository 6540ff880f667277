#!/usr/bin/env bash
# Power is cut before and after the syncs of a whole Run: see power.py. EPG_POWER_STATES asks for more; 0: for all.
exec python3 "$EPG_SOURCE/tests/faults/power.py" "${EPG_POWER_STATES:-100}"
