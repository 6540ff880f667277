#!/usr/bin/env bash
# Records that are newer, half-written or have parts missing, and places where no Run can be: each told in one line.
. "$EPG_SOURCE/tests/e2e/lib.sh"
cli="$EPG_BIN/evopolicygym"
run whole --validation-episodes 2 --assessment-episodes 2 -- '
evopolicygym-session submit program --episodes 0:3; evopolicygym-session submit program --episodes 1
evopolicygym-session finish submission-000001'
check "the Run ends well: $(cat "$run.err")" [ $code -eq 0 ]

copy() { # COMMAND-ON-A-COPY
    chmod -R u+w "$work/copy" 2>/dev/null
    rm -rf "$work/copy" && cp -a "$run" "$work/copy" && chmod -R u+w "$work/copy"
    (cd "$work/copy" && eval "$1")
}
one_line() { # WHAT WORD CODES: of what was said last
    check "$1: exit code $code, not $3: $(cat "$work/err")" grep -qw -e "$code" <<<"$3"
    check "$1: one line: $(cat "$work/err")" [ "$(wc -l <"$work/err")" -eq 1 ]
    check "$1 names $2: $(cat "$work/err")" grep -q -e "$2" "$work/err"
}
# Each is told by every command that reads Runs; verify makes a finding of it.
told() { # WHAT WORD COMMAND-ON-A-COPY
    copy "$3"
    for words in resume 'show 1' 'log --json' 'finish best'; do
        set -- "$1" "$2" "$3" $words
        "$cli" "$4" "$work/copy" "${@:5}" >"$work/out" 2>"$work/err"
        code=$?
        one_line "$4 of $1" "$2" '2 5'
    done
    "$cli" verify "$work/copy" >"$work/out" 2>"$work/err"
    code=$?
    check "verify of $1: exit code $code: $(cat "$work/out" "$work/err")" [ $code -eq 1 ]
    check "verify of $1 names $2: $(cat "$work/out")" grep -q -e "$2" "$work/out"
    check "verify of $1 says no more on standard error" [ ! -s "$work/err" ]
}
cut='sed -i "/final_submission_selected/,\$d" events.jsonl; rm run.json;'
told 'a config.json of a newer schema' config.json 'sed -i "s/run-request.v1/run-request\/v2/" config.json'
told 'an empty config.json' config.json ': >config.json'
told 'a half-written config.json' config.json "$cut"' head -c 300 config.json >e; mv -f e config.json'
told 'a config.json that is a directory' config.json 'rm config.json; mkdir config.json'
told 'a line of events.jsonl that is no JSON' events.jsonl 'sed -i "4s/.*/{\"event\":/" events.jsonl'
told 'events of a line over the bound' events.jsonl 'head -c 2000000 /dev/zero | tr "\0" x >>events.jsonl; echo >>events.jsonl'
told 'events.jsonl that is gone' events.jsonl 'rm events.jsonl'
told 'events.jsonl that is a link' events.jsonl 'mv events.jsonl e; ln -s e events.jsonl'

# resume goes on over what only a death leaves, and refuses, in one line and unchanged, what it can't do without.
refused() { # WHAT WORD COMMAND-ON-A-COPY
    copy "$cut $3"
    timeout 100 "$cli" resume "$work/copy" >"$work/out" 2>"$work/err"
    code=$?
    one_line "resume of $1" "$2" '2 5'
    check "resume of $1 writes no run.json" [ ! -e "$work/copy/run.json" ]
}
refused 'events of a newer schema' 'schema' 'sed -i "s/run-event.v1/run-event\/v2/" events.jsonl'
refused 'an altered config.json' config.json 'sed -i "s/\"episode_budget\": 20/\"episode_budget\": 30/" config.json'
refused 'a missing git history' 'git history' 'rm -rf history.git'
refused 'an empty git history' 'git history' 'rm -rf history.git; git init -q --bare history.git'
for place in HEAD config packed-refs refs/tags/submission-000001 refs/heads/main objects/pack; do
    refused "a pipe for history.git/$place" 'is no file' "rm -rf history.git/$place; mkfifo history.git/$place"
done
refused 'a link in the git history' 'HEAD is no file' 'mv history.git/HEAD h; ln -s ../h history.git/HEAD'
timeout 100 "$cli" verify "$work/copy" >"$work/out" 2>"$work/err"
check "verify of a link in the git history: $(cat "$work/out" "$work/err")" grep -q 'HEAD is no file' "$work/out"
refused 'a pipe for the evidence' 'evidence.jsonl' 'rm evidence.jsonl; mkfifo evidence.jsonl'
refused 'a missing tag' 'git history' 'rm -f history.git/refs/tags/submission-000001 history.git/packed-refs'
refused 'missing published copies' submission 'rm -rf submissions'
goes_on() { # WHAT COMMAND-ON-A-COPY
    copy "$cut $2"
    "$cli" resume "$work/copy" >"$work/out" 2>"$work/err"
    code=$?
    check "resume with $1: exit code $code: $(cat "$work/err")" [ $code -eq 0 ]
    "$cli" verify "$work/copy" >"$work/out" 2>&1
    check "and it is sound after that: $(cat "$work/out")" [ $? -eq 0 ]
}
goes_on 'no directory for records or staging' 'rm -rf records staging'
goes_on 'no reports' 'rm -rf assessment; sed -i "/\"path\":\"assessment/d" events.jsonl'
goes_on 'a torn last event' 'printf "{\"assessment\":" >>events.jsonl'
goes_on 'zeros for the last events, as a power cut leaves them' 'head -c 700 /dev/zero >>events.jsonl; echo >>events.jsonl'
goes_on 'temporary files of a dead Host' 'for d in . agent validation traces; do chmod u+w $d; : >$d/.epg-tmp-0123456789abcdef; done
: >history.git/refs/heads/main.lock; : >history.git/objects/pack/tmp_pack_epg'

# Where a Run can't be: nothing is left behind.
place() { # WHAT WORD CODES RUN [FAULT]
    EPG_IO_FAULT=${5-} "$cli" run "$4" -b test/one-step -p "$work/start" --execution process --allow-unsafe-process \
        --progress none --episode-budget 4 -- true >"$work/out" 2>"$work/err"
    code=$?
    one_line "$1" "$2" "$3"
    check "$1: nothing is left: $(ls -A "$work/place")" [ -z "$(ls -A "$work/place")" ]
}
mkdir "$work/place"
deep="$work/place"
for i in $(seq 14); do deep+="/$(printf 'd%.0s' $(seq 250))"; done
mkdir -p "$deep"
EPG_IO_FAULT= "$cli" run "$deep/$(printf 'r%.0s' $(seq 250))" -b test/one-step -p "$work/start" --execution process \
    --allow-unsafe-process --progress none --episode-budget 4 -- true >"$work/out" 2>"$work/err"
code=$?
one_line 'a path too long for what is below it' 'too long' 2
check 'a path too long: nothing is made' [ -z "$(ls -A "$deep")" ]
rm -rf "$work/place"; mkdir "$work/place"
place 'a name too long' 'too long' 2 "$work/place/$(printf 'r%.0s' $(seq 256))"
place 'a full disk at the start' 'No space' '4 5' "$work/place/run" 'errno=ENOSPC@12'
place 'a full disk at the history' 'No space' '4 5' "$work/place/run" 'errno=ENOSPC@70'
place 'a full disk at the first event' 'No space' '4 5' "$work/place/run" 'errno=ENOSPC@1:fdatasync'
place 'a read-only file system' 'Read-only' '2' "$work/place/run" 'errno=EROFS@1+'
EPG_IO_FAULT=errno=ENOSPC@100+ "$cli" run "$work/place/run" -b test/one-step -p "$work/start" --execution process \
    --allow-unsafe-process --progress none --episode-budget 4 -- true >"$work/out" 2>"$work/err"
code=$?
one_line 'a disk that stays full' 'No space' '4 5'
if [ -e "$work/place/run" ]; then
    for word in resume verify show; do
        "$cli" $word "$work/place/run" $([ $word = show ] && echo 1) >"$work/out" 2>"$work/err"
        code=$?
        one_line "$word of what was not set up" 'was not set up to its end' 2
    done
fi

# A Benchmark that is not any more what it was when the Run began.
cp -r "$EPG_SOURCE/tests/benchmark/packages" "$work/packages"
export PYTHONPATH="$work/packages" PYTHONDONTWRITEBYTECODE=1
corridor='python:evopolicygym_corridor:make_benchmark?slip=0.1'
"$cli" benchmark baseline "$corridor" --to "$work/baseline" >/dev/null || fail 'a baseline'
"$cli" run "$work/changed" -b "$corridor" -p "$work/baseline" --execution process --allow-unsafe-process --progress none \
    --episode-budget 4 --validation-episodes 2 -- bash -c 'evopolicygym-session submit program --episodes 0 >/dev/null
evopolicygym-session finish submission-000001 >/dev/null' >"$work/out" 2>"$work/err"
check "a Run over a Python package: $(cat "$work/err")" [ $? -eq 0 ]
(cd "$work/changed" && chmod u+w . && sed -i '/validation_started/,$d' events.jsonl && rm run.json)
python3 - "$work/packages/evopolicygym_corridor/benchmark.py" <<'P'
import sys
with open(sys.argv[1]) as file:
    text = file.read()
changed = text.replace("environment_parameters", "environment_parameters", 1).replace('"slip": ', '"slipping": ', 1)
assert changed != text, "the package has no such parameter in its spec"
with open(sys.argv[1], "w") as file:
    file.write(changed)
P
"$cli" resume "$work/changed" >"$work/out" 2>"$work/err"
code=$?
one_line 'resume over another Benchmark' 'no longer fits' 2
