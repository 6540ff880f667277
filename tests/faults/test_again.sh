#!/usr/bin/env bash
# Hosts die while they heal what an earlier death or power cut left: see again.py. EPG_AGAIN_CUTS asks for more; 0: for all.
exec python3 "$EPG_SOURCE/tests/faults/again.py" "${EPG_AGAIN_CUTS:-20}"
