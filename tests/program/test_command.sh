# `evopolicygym program`: digest and show, for people and machines; mistakes are told in one line with exit code 2.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}
command=$EPG_BIN/evopolicygym
[ -x "$command" ] || exit 77

mkdir -p "$work/p/sub" "$work/p/__pycache__" "$work/empty" "$work/-dash"
printf 'def make_policy(context): pass\n' >"$work/p/policy.py"
cp "$work/p/policy.py" "$work/-dash/"
printf '12345' >"$work/p/sub/data"
printf 'gone' >"$work/p/__pycache__/policy.pyc"
# The digest, computed from the contract's words.
expected=$(python3 - "$work/p" <<'PY'
import hashlib, struct, sys
n = lambda b: struct.pack(">Q", len(b)) + b
files = [(p, open(f"{sys.argv[1]}/{p}", "rb").read()) for p in ("policy.py", "sub/data")]
h = hashlib.sha256(b"evopolicygym/program/v1\0" + n(b"policy.py:make_policy") + n(b"policy/v2"))
h.update(struct.pack(">Q", len(files)))
for path, content in files:
    h.update(n(path.encode()) + n(content))
print("sha256:" + h.hexdigest())
PY
)

[ "$("$command" program digest "$work/p")" = "$expected" ] || fail "digest"
(cd "$work" && [ "$("$command" program digest p/)" = "$expected" ]) || fail "digest of a relative path"
(cd "$work" && "$command" program digest -- -dash >/dev/null) || fail "a directory that starts with a dash"
"$command" program show "$work/p" >"$work/shown" || fail "show"
grep -q '5  sub/data$' "$work/shown" || fail "show names files and sizes"
grep -q "^$expected\$" "$work/shown" || fail "show tells the digest"
grep -q pyc "$work/shown" && fail "show names what is left out"
"$command" program show --json "$work/p" 2>"$work/errors" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["schema"] == "evopolicygym/program-description/v1", d
assert d["digest"] == sys.argv[1] and d["file_count"] == 2 and d["total_bytes"] == 36, d
assert d["files"] == [{"path": "policy.py", "size": 31}, {"path": "sub/data", "size": 5}], d
' "$expected" || fail "show --json"
[ -s "$work/errors" ] && fail "show --json writes on stderr"
"$command" program digest --json "$work/p" | python3 -c 'import json, sys; assert "files" not in json.load(sys.stdin)' ||
    fail "digest --json"
"$command" program --help | grep -q 'Examples:' || fail "--help shows examples"

# expect_mistake WORD ARGUMENTS: exit code 2, nothing on stdout, one line with WORD on stderr.
expect_mistake() {
    word=$1
    shift
    "$command" "$@" >"$work/out" 2>"$work/errors"
    code=$?
    [ $code -eq 2 ] || fail "$* ended with $code"
    [ -s "$work/out" ] && fail "$* wrote on stdout"
    [ "$(wc -l <"$work/errors")" -eq 1 ] || fail "$* did not write one line"
    grep -q -- "$word" "$work/errors" || fail "$* does not say $word: $(cat "$work/errors")"
}
expect_mistake 'digest DIR' program
expect_mistake 'did you mean "show"?' program shwo "$work/p"
expect_mistake 'there are digest and show' program frobnicate "$work/p"
expect_mistake 'one directory' program digest
expect_mistake 'one directory' program digest "$work/p" "$work/p"
expect_mistake 'policy.py' program digest "$work/empty"
expect_mistake 'does not exist' program digest "$work/none"
expect_mistake 'not a directory' program digest "$work/p/policy.py"
expect_mistake 'did you mean --json' program digest --jsn "$work/p"
expect_mistake 'more than 1 files' program digest --max-files 1 "$work/p"
expect_mistake 'max-files' program digest --max-files none "$work/p"
ln -s policy.py "$work/p/link"
expect_mistake 'symbolic link' program digest "$work/p"
exit $failed
