#!/usr/bin/env bash
# Benchmarks in processes of their own: everything that one can do wrong is a trusted fault that names it, the call and
# why; nothing hangs, nothing is charged to a Policy, no process is left.
set -u
program=$EPG_BIN/evopolicygym
work=$(mktemp -d)
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
trap 'rm -rf -- "$work"' EXIT
export PYTHONPATH="$EPG_SOURCE/tests/benchmark/packages" PYTHONDONTWRITEBYTECODE=1
python=$(python3 -c 'import sys; print(sys.executable)') # past shims, which are slow
failed=0
fail() {
    printf 'FAILED: %s\n' "$*"
    failed=1
}
mkdir "$work/good" "$work/bad1" "$work/bad2" "$work/bad3"
policy() { printf 'class P:\n    def act(self, o):\n        return %s\ndef make_policy(c):\n    return P()\n' "$1"; }
policy 0 >"$work/good/policy.py"
policy 1 >"$work/bad1/policy.py"
policy 2 >"$work/bad2/policy.py"
policy 3 >"$work/bad3/policy.py"
evaluate() { # PROGRAM BENCHMARK OPTIONS...
    local name=$1 benchmark=$2
    shift 2
    "$program" evaluate "$work/$name" -b "$benchmark" --python "$python" --execution process --allow-unsafe-process \
        -j "${JOBS:-1}" "$@" >"$work/out" 2>"$work/err"
}

# --- faults ---
while read -r at pattern; do
    case $at in
        hang-*) limit=3 ;; # what is waited for
        *) limit=60 ;;     # a slow machine's answers must count
    esac
    evaluate good "python:broken:make?at=$at" -n 2 --environment-timeout $limit
    code=$?
    last=$(tail -n 1 "$work/err" | tr -d '\000')
    [ $code -eq 3 ] || fail "at=$at: exit code $code, not a Benchmark's fault: $last"
    grep -qE -- "broken.*$pattern" <<<"$last" || fail "at=$at: no \"$pattern\" in: $last"
    [ ! -s "$work/out" ] || fail "at=$at: something on standard output"
done <<'FAULTS'
raise-factory spec failed: RuntimeError: told to raise in the factory
raise-spec spec failed: RuntimeError: told to raise in spec
raise-episodes episodes failed: RuntimeError
few-episodes episodes failed: it planned 1 Episodes, not 2
many-episodes episodes failed: .*more than the 2
wrong-episodes episodes failed: TypeError: .*not an EpisodeSpec
raise-make make_environment failed: RuntimeError
wrong-make make_environment failed: .*NoneType
raise-reset reset failed: RuntimeError: told to raise in reset
raise-step step failed: RuntimeError: told to raise in step
raise-close close failed: RuntimeError
raise-feedback feedback failed: RuntimeError
wrong-feedback feedback failed: .*not a Feedback
nan-feedback feedback failed: .*finite
exit-step step failed: SystemExit
pipe-step step failed: BrokenPipeError
pipe-feedback feedback failed: BrokenPipeError
die-step step failed: its process ended with exit code 5
kill-reset reset failed: its process was killed by signal 9
kill-step step failed: its process was killed by signal 9
kill-feedback feedback failed: its process was killed by signal 9
orphan-step step failed: its process ended with exit code 6
hang-spec spec failed: it did not answer within its time limit of 3.0 s
hang-reset reset failed: it did not answer within
hang-step step failed: it did not answer within
hang-close close failed: it did not answer within
hang-feedback feedback failed: it did not answer within
junk-step step failed: a frame with a body of 4294967290 bytes is over
speaks-step step failed: .*another sequence number
mute-step step failed: .*closed the channel
nan-reset reset failed: .*finite
nan-step step failed: .*finite
type-step step failed: TypeError: .*SimpleNamespace is not a PolicyValue
deep-reset reset failed: .*over 32 levels
deep-step step failed: .*over 32 levels
large-step step failed: .*over 4194304 bytes
nodes-step step failed: .*over 65536 nodes
key-step step failed: .*keys must be str
int-step step failed: .*an int must be
wrong-step step failed: TypeError: step returned a tuple
nanreward-step step failed: .*reward must be finite
textreward-step step failed: TypeError: Step.reward
huge-step rewards sum to infinity
never-ends did not end within its horizon of 3 steps
FAULTS

# --- a memory limit ---
# Killed where a control group can be had, told by its allocator elsewhere: a fault of the Benchmark's in both.
evaluate good 'python:broken:make?at=hog-step' -n 1 --benchmark-memory 200M
code=$?
[ $code -eq 3 ] || fail "memory: exit code $code: $(cat "$work/err")"
grep -qE 'broken.*step failed: (it was killed at its memory limit|MemoryError)' "$work/err" ||
    fail "memory: $(cat "$work/err")"
evaluate good 'python:broken:make?at=hog-step' -n 1 --benchmark-memory 2G || fail "enough memory: $(cat "$work/err")"
for size in 1M 0 -1 4g 2GB M 99999999999T ''; do
    evaluate good python:broken:make -n 1 --benchmark-memory "$size" && fail "the size '$size' is taken"
    grep -q -- '--benchmark-memory takes a size' "$work/err" || fail "the size '$size': $(cat "$work/err")"
done

# --- what is no fault ---
for at in nothing print-spec print-step print-feedback spawn-step spawn-close python-step large-scenario; do
    evaluate good "python:broken:make?at=$at" -n 3 --json || fail "at=$at: $(tail -n 1 "$work/err")"
    grep -q '"score": 9.0' "$work/out" || fail "at=$at: another score"
done
# The limit of a call is no limit on how much there is to read.
evaluate good 'python:broken:make?at=slow-feedback' -n 6 --environment-timeout 10 ||
    fail "slow-feedback: $(tail -n 1 "$work/err")"
# What it prints is bounded and can do a terminal no harm.
evaluate good 'python:broken:make?at=flood-step' -n 1 || fail "flood-step: $(tail -n 1 "$work/err")"
[ "$(wc -c <"$work/err")" -lt 5000 ] || fail "flood-step: $(wc -c <"$work/err") bytes are shown"
"$program" benchmark show 'python:broken:make?at=flood-spec' --benchmark-python "$python" >"$work/out" 2>"$work/err"
[ "$(wc -c <"$work/err")" -lt 5000 ] || fail "flood-spec: $(wc -c <"$work/err") bytes are shown"
grep -qF '  | \x1b[31m line 99999 xxx' "$work/err" || fail "flood-spec: not its end: $(cat "$work/err")"
grep -q $'\x1b' "$work/err" && fail 'flood-spec: a control character'
evaluate good 'python:broken:make?at=raise-step' -n 1
grep -q '^  | RuntimeError: told to raise in step$' "$work/err" || fail "no traceback: $(cat "$work/err")"
[ "$(wc -l <"$work/err")" -le 25 ] || fail 'a long traceback'
# What a Policy leaves behind is ended; what a Benchmark needs is not.
mkdir "$work/stray"
cat >"$work/stray/policy.py" <<'POLICY'
import os
import time


class P:
    def act(self, observation):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1001)
            os._exit(0)
        return 0


def make_policy(context):
    return P()
POLICY
evaluate stray 'python:broken:make?at=child' -n 3 || fail "a Benchmark's own child: $(tail -n 1 "$work/err")"
# A refused Action, raised or returned, is the Policy's failure.
for name in bad1 bad2 bad3; do
    evaluate $name 'python:broken:make' -n 2 --json || fail "$name: $(cat "$work/err")"
    [ "$(grep -c '"failure": "invalid_action"' "$work/out")" -eq 2 ] || fail "$name: not refused"
    grep -qE '"detail": ".*[123] is refused"' "$work/out" || fail "$name: the reason is not kept"
done

# --- users' mistakes, told at once ---
mistake() { # PATTERN SPEC
    local output
    output=$("$program" benchmark show "$2" --benchmark-python "$python" 2>&1)
    [ $? -eq 2 ] || fail "$2: another exit code: $output"
    grep -qE -- "$1" <<<"$output" || fail "$2: no \"$1\" in: $output"
}
mistake 'needs a command' cmd:
mistake 'quote is left open' "cmd:./a 'b"
mistake "can't be started" cmd:./missing
mistake "can't be started" "cmd:missing-$$"
mistake 'needs a module and a factory' python:
mistake 'needs a module and a factory' python:broken
mistake 'key=value' 'python:broken:make?at'
mistake "a module's name and no file's" python:./broken.py:make
mistake "a module's name and no file's" python:broken.py:make
mistake 'did you mean python:MODULE:FACTORY' broken:make
mistake 'did you mean python:MODULE:FACTORY' broken.py
mistake 'did you mean lib:PATH' ./mine.so
mistake 'did you mean cmd:COMMAND LINE' /bin/true
mistake 'there are: cartpole.* python:MODULE:FACTORY, cmd:COMMAND LINE or lib:PATH' nothing-like-it
one_line() { # PATTERN SPEC
    local output
    output=$("$program" benchmark show "$2" --benchmark-python "$python" 2>&1)
    [ $? -eq 3 ] || fail "$2: another exit code: $output"
    [ "$(wc -l <<<"$output")" -eq 1 ] || fail "$2: not one line: $output"
    grep -qE -- "$1" <<<"$output" || fail "$2: no \"$1\" in: $output"
}
one_line "no module 'missing_module' for .*: install it there.*--benchmark-python" python:missing_module:make
one_line "no module 'broken.missing'" python:broken.missing:make
one_line "importing.py, line 9: cannot import name 'Spec' .*evopolicygym.authoring has Artifact, .*BenchmarkSpec" \
    python:importing:name
one_line "importing.py, line 13: No module named 'evopolicygym.spaces'; .*there are evopolicygym.authoring," \
    python:importing:module
one_line "importing.py, line 17 needs the module 'missing_library', which .* does not have.*--benchmark-python" \
    python:importing:library
one_line 'the module broken has no mak; .*: .*make' python:broken:mak
one_line "make\(at.*\) can't be called so: .*'size'" 'python:broken:make?size=3'
one_line 'the parameter at is given twice' 'python:broken:make?at=1&at=2'
one_line 'gave a list, which is no Benchmark' 'python:broken:deep?levels=3'
one_line 'gave the class Benchmark and no Benchmark made of it' python:importing:a_class

# --- executables in other languages ---
"${EPG_CC:-cc}" "$EPG_SOURCE/examples/benchmark-process/dice.c" -o "$work/dice" || fail 'dice.c did not build'
examples=("cmd:$work/dice --sides '6'")
if command -v node >/dev/null; then
    examples+=("cmd:node '$EPG_SOURCE/examples/benchmark-process/countdown.mjs'")
else
    printf 'SKIPPED 1: node is not here\n'
fi
for example in "${examples[@]}"; do
    "$program" benchmark check "$example" >"$work/out" 2>&1 || fail "$example: $(cat "$work/out")"
    evaluate good "$example" -n 4 --json || fail "$example: $(cat "$work/err")"
    grep -E '"(score|record_sha256|failure)":' "$work/out" >"$work/one"
    JOBS=2 evaluate good "$example" -n 4 --json || fail "$example: $(cat "$work/err")"
    grep -E '"(score|record_sha256|failure)":' "$work/out" | cmp -s "$work/one" - || fail "$example: two jobs differ"
done
# Taking 0 is refused by the countdown; the die rolled to the end earns nothing.
(cd "$work" && "$program" benchmark show 'cmd:./dice --sides 8' --json) | grep -q '"sides": 8' || fail 'a relative path'
cat >"$work/not-speaking" <<'SCRIPT'
#!/bin/sh
echo hello
echo hello >&4
SCRIPT
chmod +x "$work/not-speaking"
evaluate good "cmd:$work/not-speaking" -n 1
[ $? -eq 3 ] || fail 'a program that does not speak frames'
grep -q 'spec failed.*docs/benchmark-protocol.md' "$work/err" ||
    fail "a program that does not speak frames: $(cat "$work/err")"
evaluate good cmd:true -n 1
grep -q 'cmd:true: spec failed: .*exit code 0; it must speak .*docs/benchmark-protocol.md' "$work/err" ||
    fail "true: $(cat "$work/err")"

# --- baselines ---
baseline() { # CODE PATTERN ARGUMENTS...
    local code=$1 pattern=$2 output
    shift 2
    output=$("$program" benchmark baseline --benchmark-python "$python" "$@" 2>&1)
    [ $? -eq "$code" ] || fail "baseline $*: another exit code than $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "baseline $*: no \"$pattern\" in: $output"
}
corridor=python:evopolicygym_corridor:make_benchmark
baseline 0 '1 files, sha256:' "$corridor" --to "$work/baseline"
cmp -s "$work/baseline/policy.py" "$EPG_SOURCE/tests/benchmark/packages/evopolicygym_corridor/baseline/policy.py" ||
    fail 'the baseline of a package is another'
evaluate baseline "$corridor" -n 2 --json || fail "the baseline of a package: $(cat "$work/err")"
baseline 0 '1 files, sha256:' 'taxi?rainy=true' --to "$work/taxi"
cmp -s "$work/taxi/policy.py" "$EPG_SOURCE/programs/examples/taxi/policy.py" || fail 'the baseline of taxi is another'
baseline 2 'is there already' cartpole --to "$work/taxi"
baseline 2 'needs --to' cartpole
baseline 2 'did you mean cartpole' cartpol --to "$work/none"
baseline 3 'no baseline where one is looked for' python:broken:make --to "$work/none"
baseline 3 'does not do that' "cmd:$work/dice" --to "$work/none"
[ ! -e "$work/none" ] || fail 'a directory was made for no baseline'

# --- nothing is left ---
[ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls -A "$TMPDIR")"
pgrep -f "$work|sleep 3157[01]" >/dev/null && fail 'a process was left running'
exit "$failed"
