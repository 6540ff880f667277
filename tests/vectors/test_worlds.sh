#!/usr/bin/env bash
# worlds.py is right where Gymnasium itself played, and worlds.json is what it says.
set -u
here=$EPG_SOURCE/tests/vectors
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1
python3 "$here/worlds.py" --check "$here/data/builtin_benchmarks.json" || exit 1
python3 "$here/worlds.py" >"$work/worlds.json" && cmp "$work/worlds.json" "$here/data/worlds.json" || exit 1
# It has teeth: worlds that are written wrong are told.
mkdir "$work/wrong"
sed -E 's/("benchmark":"taxi\?rainy=true","policy":"drawn".*"sha256":")./\1x/; s/("benchmark":"pendulum".*"seen":\[\[0,)/\19,/' \
    "$here/data/worlds.json" >"$work/wrong/worlds.json"
"$EPG_BIN/epg-vectors" "$work/wrong" >"$work/out" && exit 1
grep -q 'taxi?rainy=true, drawn: another trajectory' "$work/out" && grep -q 'pendulum.*: step 0: another' "$work/out"
