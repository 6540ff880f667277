#!/bin/bash
# doctor tells what works, and a machine that can't contain is told of: by doctor, and by a refusal to run.
set -eu
bin=$EPG_BIN/evopolicygym
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# This machine has to contain, or the tests that prove it prove nothing.
"$bin" doctor >"$work/text" || { cat "$work/text"; fail "doctor found something that does not work"; }
grep -q '^  ok     seccomp  *holds' "$work/text" || fail "no check of the filter"
"$bin" doctor --json >"$work/json" || fail "doctor --json"
python3 - "$work/json" <<'P' || fail "the document"
import json, sys
document = json.load(open(sys.argv[1]))
assert document["schema"] == "evopolicygym/doctor/v1" and document["healthy"] is True
topics = {finding["topic"] for finding in document["findings"]}
assert topics == {"python", "containment", "limits", "store", "agents", "disk"}, topics
names = {finding["name"] for finding in document["findings"] if finding["topic"] == "containment"}
assert {"seccomp", "no_new_privs", "unshare", "host_files", "seen_from_outside"} <= names, names
P

# An interpreter that lives in a home is shown there, and nothing else of the homes is missed.
if home=$(mktemp -d /home/epg-test-XXXXXX 2>/dev/null); then
    trap 'rm -rf "$work" "$home"' EXIT
    python3 -m venv --without-pip "$home/venv"
    chmod -R a+rX "$home"
    "$bin" doctor --python "$home/venv/bin/python" >"$work/text" || { cat "$work/text"; fail "a venv in a home"; }
fi

# A bubblewrap that fails stands for a machine that lets nothing be contained.
mkdir "$work/bin"
printf '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n' >"$work/bin/bwrap"
chmod 755 "$work" "$work/bin" "$work/bin/bwrap"
code=0
PATH=$work/bin:$PATH "$bin" doctor >"$work/text" || code=$?
[ $code = 1 ] || fail "doctor ended with $code"
grep -q 'FAILED sandbox' "$work/text" || fail "the failure is not told"
grep -q -- '->' "$work/text" || fail "no advice"
code=0
PATH=$work/bin:$PATH "$bin" evaluate "$EPG_SOURCE/programs/examples/cartpole" -b cartpole -n 1 >"$work/text" 2>"$work/error" ||
    code=$?
[ $code = 6 ] || fail "evaluate ended with $code"
[ ! -s "$work/text" ] || fail "something was evaluated"
[ "$(wc -l <"$work/error")" = 1 ] || fail "not one line"
grep -q 'containment unavailable' "$work/error" || fail "the reason is not told"

"$bin" doctor stray 2>/dev/null && fail "an operand was taken"
echo passed
