#!/usr/bin/env bash
# The JSON schema of adapters, held against the Host and against every adapter.
set -eu
cd "$(dirname "$0")"
exec python3 -B adapter_schema.py
