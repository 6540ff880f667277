#!/usr/bin/env bash
# No secret stands in what a Run keeps, and a Run whose Agent needs one asks for it again where it came from.
. "$EPG_SOURCE/tests/e2e/lib.sh"

key='Sesame/open+now'
spare='sk-live-0123456789abcdef0123456789'
mkdir "$work/bin"
cat >"$work/keyed.json" <<'J'
{"schema": "evopolicygym/agent-adapter/v1", "name": "keyed", "title": "An agent that is given a key",
 "executable": {"names": ["keyed-agent"], "install": "there is no such thing"},
 "options": {"token": {"help": "its key", "pattern": ".*", "secret": true, "required": true}},
 "task": {"ways": ["file"]}, "arguments": [],
 "home": {"private": true, "files": [{"path": "key", "text": "{token}"}]}}
J
cat >"$work/bin/keyed-agent" <<'A'
#!/bin/bash
given=$(cat "$HOME/key" 2>/dev/null)$2
case $given in Sesame/open+now | sk-live-0123456789abcdef0123456789 | door) ;; *) exit 9 ;; esac
echo x >>analysis/starts
if [ "$(wc -l <analysis/starts)" -eq 1 ]; then
    evopolicygym-session submit program --episodes 0
    touch analysis/ready
    sleep 1000
fi
evopolicygym-session finish last
A
chmod +x "$work/bin/keyed-agent"
export PATH="$work/bin:$PATH"

begin() { # NAME OPTION...: a Run that is interrupted while its Agent works
    run="$work/$1"
    shift
    "$EPG_BIN/evopolicygym" run "$run" -b test/one-step -p "$work/start" --execution process --allow-unsafe-process \
        --progress none --episode-budget 20 "$@" >"$run.out" 2>&1 &
    local host=$!
    wait_for "$run/workspace/analysis/ready"
    kill -INT $host
    wait $host
}
again() { # resume; sets $code
    "$EPG_BIN/evopolicygym" resume "$run" --progress none >"$run.out" 2>"$run.err"
    code=$?
}
kept() { # TEXT: stands somewhere in the Run, but for the Agent's own home, which an interruption leaves
    grep -rF --exclude-dir=home -- "$1" "$run" | head -3
}
asks() { # VARIABLE: resume is refused, names it, and leaves the Run as it is
    cp "$run/events.jsonl" "$work/events"
    again
    check "$run: without $1 it is refused" [ $code -eq 2 ]
    check "$run: $1 is asked for" grep -qw "$1" "$run.err"
    check "$run: nothing has happened" cmp -s "$work/events" "$run/events.jsonl"
}

# An option that the adapter calls secret, out of a variable, even a short one.
for value in "$key" door; do
    MY_KEY=$value begin "option-${#value}" --agent-file "$work/keyed.json" --agent-option "token=$value"
    check 'an option: not kept' [ -z "$(kept "=$value")$(kept "\"$value\"")" ]
    asks MY_KEY
    export MY_KEY=$value
    again
    check 'an option: with it, it goes on' [ $code -eq 0 ]
    check 'an option: to its end' holds 'record["terminal_reason"] == "finished"'
    check 'an option: not kept in the end' [ -z "$(kept "=$value")$(kept "\"$value\"")" ]
    unset MY_KEY
done

# A key in the user's own command, from a variable that is called secret.
export MY_KEY=$key
begin argument --secret MY_KEY -- keyed-agent --key "$key"
check 'an argument: not kept' [ -z "$(kept "$key")" ]
unset MY_KEY
asks MY_KEY
"$EPG_BIN/evopolicygym" run "$work/like" --like "$run" --execution process --allow-unsafe-process >"$work/out" 2>&1
check '--like asks for it, too' grep -qw MY_KEY "$work/out"
check '--like: before anything is created' [ ! -e "$work/like" ]
export MY_KEY=$key
again
check 'an argument: with it, it goes on' [ $code -eq 0 ]
unset MY_KEY

# One that looks like a key and stands in no variable: lost, and told.
begin lost -- keyed-agent --key "$spare"
check 'lost: not kept' [ -z "$(kept "$spare")" ]
again
check 'lost: refused' [ $code -eq 2 ]
check 'lost: told' grep -q 'not kept' "$run.err"
check 'lost: finish needs none' "$EPG_BIN/evopolicygym" finish "$run" last --progress none >/dev/null

# What is no secret is kept as it is, and what is not there is told at once.
HARMLESS=keyed-agent-data begin plain -- keyed-agent "$key" door keyed-agent-data
check 'plain: kept' grep -qF keyed-agent-data "$run/config.json"
"$EPG_BIN/evopolicygym" run "$work/unset" -b test/one-step -p "$work/start" --secret NOT_THERE -- true >"$work/out" 2>&1
check 'a variable that is not set: refused' [ $? -eq 2 ]
check 'a variable that is not set: told' grep -q 'secret NOT_THERE: that variable is not set' "$work/out"
check 'nothing lives' none_living
