#!/usr/bin/env bash
# Wrong uses: told in one line that says what to do, with exit code 2, before anything is made.
. "$EPG_SOURCE/tests/e2e/lib.sh"
cd "$work" || exit 1
host=$EPG_BIN/evopolicygym
mkdir here here/empty && cp -r start here/prog && cd here || exit 1
mkdir prog/sub large && (cd large && seq 1001 | xargs touch)
echo hi >file
ln -s nowhere dangling
"$host" run done -b test/one-step -p prog --execution process --allow-unsafe-process --progress none --episode-budget 3 \
    -- sh -c 'evopolicygym-session submit program --episodes 0:2; evopolicygym-session finish last' >/dev/null ||
    fail 'a Run to ask about'
find . | sort >"$work/before"

wrong() { # TEXT WORD...: what evopolicygym WORD... is told
    local text=$1
    shift
    timeout 60 "$host" "$@" >"$work/out" 2>"$work/err" </dev/null
    check "'$*': exit 2, not $?" [ $? -eq 2 ]
    check "'$*': nothing on stdout" [ ! -s "$work/out" ]
    check "'$*': one line: $(cat "$work/err")" [ "$(wc -l <"$work/err")" -eq 1 ]
    check "'$*': tells '$text': $(cat "$work/err")" grep -qF -- "$text" "$work/err"
}
run=(run new -b test/one-step -p prog)

wrong 'no command "frob"' frob
wrong "'evopolicygym help' lists them" ''
wrong 'no command "--frob"' --frob
wrong 'did you mean "export"?' exp
wrong 'name one directory for the Run' run
wrong 'name an Agent (--agent NAME) or its command after --' run new
wrong 'name an Agent' "${run[@]}"
wrong 'name an Agent' "${run[@]}" --
wrong 'name a Benchmark' run new -p prog -- true
wrong 'name the Program to start from' run new -b test/one-step -- true
wrong 'did you mean cartpole?' run new -b cartpol -p prog -- true
wrong 'name is empty' run new -b '' -p prog -- true
wrong 'python:my_benchmark:make_benchmark' run new -b python:nope -p prog -- true
wrong "can't be started" run new -b cmd:./nope -p prog -- true
wrong 'no library' run new -b lib:./nope.so -p prog -- true
wrong '"nodir" does not exist' run new -b test/one-step -p nodir -- true
wrong '"file" is not a directory' run new -b test/one-step -p file -- true
wrong 'not a directory' run new -b test/one-step -p dangling -- true
wrong 'name a directory outside of it' run prog/new -b test/one-step -p prog -- true
wrong 'name a directory outside of it' run prog/sub/new -b test/one-step -p ./prog/../prog -- true
wrong "no policy.py in 'large'" evaluate large -b cartpole
wrong 'no policy.py' run new -b test/one-step -p empty -- true
wrong 'not found in PATH' "${run[@]}" -- no-such-command
wrong '"done" exists already' run done -b test/one-step -p prog -- true
wrong 'exists already' run dangling -b test/one-step -p prog -- true
wrong 'no directory "no/such"' run no/such/parent -b test/one-step -p prog -- true
wrong 'name one that does not exist' run '' -b test/one-step -p prog -- true
wrong 'Not a directory' run file/new -b test/one-step -p prog -- true
wrong 'name one directory for the Run' run a b -b test/one-step -p prog -- true
wrong 'from 1 to 1000000000, not "-5"' "${run[@]}" --episode-budget -5 -- true
wrong 'not "0"' "${run[@]}" --episode-budget 0 -- true
wrong 'not "ten"' "${run[@]}" --episode-budget ten -- true
wrong 'not "1e3"' "${run[@]}" --episode-budget 1e3 -- true
wrong 'not "99999999999999999999999"' "${run[@]}" --episode-budget 99999999999999999999999 -- true
wrong 'not ""' "${run[@]}" --episode-budget= -- true
wrong 'from 0 to 18446744073709551615, not "-1"' "${run[@]}" --seed -1 -- true
wrong 'number of seconds, not "soon"' "${run[@]}" --agent-timeout soon -- true
wrong 'number of seconds, not "0"' "${run[@]}" --agent-timeout 0 -- true
wrong 'from 1 to 256, not "0"' "${run[@]}" --jobs 0 -- true
wrong 'needs a value: --episode-budget N' "${run[@]}" --episode-budget
wrong 'given twice' "${run[@]}" --seed 1 --seed 2 -- true
wrong 'did you mean --episode-budget?' "${run[@]}" --episode-budgt 4 -- true
wrong 'unknown option -x' "${run[@]}" -x -- true
wrong 'takes no value' "${run[@]}" --json=1 -- true
wrong 'add --validation-episodes N' "${run[@]}" --max-candidates 3 -- true
wrong 'sandbox' "${run[@]}" --execution docker -- true
wrong 'add --allow-unsafe-process' "${run[@]}" --execution process -- true
wrong 'give one' "${run[@]}" --allow-unsafe-process -- true
wrong 'none, host or proxy=HOST:PORT' "${run[@]}" --agent-network web -- true
wrong 'no agent is called "nope"' "${run[@]}" --agent nope
wrong 'takes NAME=VALUE' "${run[@]}" --agent-option frob -- true
wrong 'that variable is not set' "${run[@]}" --inherit NOT_SET -- true
wrong 'no variable that an agent can inherit' "${run[@]}" --inherit A=B -- true
wrong 'No such file' "${run[@]}" --agent-show /no/such/path -- true
wrong 'auto, plain, json or none' "${run[@]}" --progress loud -- true
wrong 'best=K' "${run[@]}" --on-agent-exit best -- true
wrong 'SKILL.md' "${run[@]}" --skill empty -- true
wrong 'not valid JSON' "${run[@]}" --config file -- true
wrong 'nofile' "${run[@]}" --config nofile -- true
wrong 'no python found' "${run[@]}" --python no-such-python -- true
wrong 'no usable python' "${run[@]}" --python /bin/ls -- true
wrong 'Run directory' run new --like nope
wrong 'Run directory' run new --like file
wrong 'no events.jsonl' run new --like empty

wrong 'name one Program' evaluate
wrong 'name a Benchmark' evaluate prog
wrong 'name one Program' evaluate prog prog -b test/one-step
wrong 'as done:best' evaluate done -b test/one-step
wrong 'has no submission 7' evaluate done:7 -b test/one-step
wrong 'no submission is called "nope"' evaluate done:nope -b test/one-step
wrong 'did you mean --episodes?' evaluate prog -b test/one-step --episode 3
wrong 'has no split "nope"' evaluate prog -b cartpole --split nope --execution process --allow-unsafe-process
wrong 'no parameters' evaluate prog -b 'cartpole?x=1' --execution process --allow-unsafe-process
wrong 'goes with --execution process' evaluate prog -b test/one-step --allow-unsafe-process

wrong 'name one Run' resume
wrong "'nope'" resume nope
wrong 'Not a directory' resume file
wrong 'no events.jsonl' resume empty
wrong '--like done' resume done
wrong 'evopolicygym finish RUN best' finish done
wrong 'has its candidates already' finish done best
wrong 'name one Run' verify
wrong 'no events.jsonl' verify empty
wrong 'say what to do' agent
wrong 'no agent is called "nope"' agent show nope
wrong 'agent list takes no name' agent list x
wrong 'not valid JSON' agent check --agent-file file
wrong 'benchmark needs a command' benchmark
wrong 'unknown benchmark "nope"' benchmark show nope
wrong 'not "0"' benchmark check cartpole -n 0
wrong 'needs --to DIR' benchmark baseline cartpole
wrong 'prog is there already' benchmark baseline cartpole --to prog
wrong 'say what to do' program
wrong 'does not exist' program digest nope
wrong 'no policy.py' program digest empty
wrong 'takes no operand' doctor x
wrong 'takes no operand' doctor -- x
wrong 'takes no operand' benchmark list -- x
wrong 'needs one Benchmark' benchmark show cartpole -- x
wrong 'say what to do' agent list -- x
wrong 'no\x0asuch\x1b[31m' log $'no\nsuch\e[31m'
wrong 'a\x0ab' agent show $'a\nb'
for command in log show diff compare report checkout export replay; do
    timeout 60 "$host" "$command" nope >"$work/out" 2>"$work/err" </dev/null
    check "$command of nothing: 2" [ $? -eq 2 ]
    check "$command of nothing: one line" [ "$(wc -l <"$work/err")" -eq 1 ]
done

find . | sort >"$work/after"
check 'nothing was made' diff "$work/before" "$work/after"

# What the machine refuses is no mistake of the user's; a reader that has read enough is nobody's.
"$host" help >/dev/full 2>"$work/err"
check 'a full disk: 4' [ $? -eq 4 ]
check 'a full disk: told' grep -q 'No space left' "$work/err"
EPG_IO_FAULT=errno=ENOSPC@1:mkdir "$host" checkout done best new >"$work/out" 2>"$work/err"
check 'no room for a directory: 4' [ $? -eq 4 ]
for words in 'checkout done best new' 'benchmark baseline cartpole --to new'; do
    # shellcheck disable=SC2086
    EPG_IO_FAULT=errno=ENOSPC@1:write "$host" $words >"$work/out" 2>"$work/err"
    check "no room for a Program, $words: 4" [ $? -eq 4 ]
    check "no room for a Program, $words: told" grep -q 'No space left' "$work/err"
    check "no room for a Program, $words: nothing is left" [ ! -e new ]
done
unread() { # WORD...: with a standard output that nobody reads any more
    python3 - "$host" "$@" <<'P'
import os, subprocess, sys
reading, writing = os.pipe()
os.close(reading)
done = subprocess.run(sys.argv[1:], stdout=writing, stderr=subprocess.PIPE, timeout=60)
sys.stderr.buffer.write(done.stderr)
sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
P
}
unread help run 2>"$work/err"
check 'nobody reads: 141' [ $? -eq 141 ]
check 'nobody reads: silent' [ ! -s "$work/err" ]
unread evaluate prog -b test/one-step -n 5 --json --execution process --allow-unsafe-process 2>"$work/err"
check 'nobody reads a result: 141' [ $? -eq 141 ]
check 'nobody reads a result: silent' [ ! -s "$work/err" ]
unread run new --frob 2>"$work/err"
check 'nobody reads: a mistake is told all the same' grep -q 'unknown option' "$work/err"

# All Episodes failed: a result like any other. No PATH: the usual one.
printf 'def make_policy(c):\n    raise ValueError("no")\n' >"$work/start/policy.py"
"$host" evaluate "$work/start" -b test/one-step -n 3 --execution process --allow-unsafe-process >"$work/out" 2>&1
check 'all Episodes failed: 0' [ $? -eq 0 ]
check 'all Episodes failed: told' grep -q '3 failed' "$work/out"
check 'without PATH' env -i EPG_TEST_BENCHMARKS=1 "$host" evaluate prog -b test/one-step -n 2 -q --execution process \
    --allow-unsafe-process >/dev/null
