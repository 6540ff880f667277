# Shared by the tests of `replay`. Sourced.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
host="$EPG_BIN/evopolicygym"
replay() { # ARGUMENTS...: $code, $work/out, $work/err
    "$host" replay "$@" >"$work/out" 2>"$work/err"
    code=$?
}
told() { # EXPRESSION over `document`, `all` (its evaluations) and their `differences`
    python3 - "$work/out" "$1" <<'P'
import json, sys
document = json.load(open(sys.argv[1]))
all = document["evaluations"]
differences = [e.get("first_difference") for e in all]
if not eval(sys.argv[2]):
    print("not so:", sys.argv[2], json.dumps(document, indent=1))
    sys.exit(1)
P
}
