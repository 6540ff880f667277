#!/usr/bin/env bash
# Every command teaches itself, within 80 columns, and a misspelt one is told which is meant.
set -u
host=$EPG_BIN/evopolicygym
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failed=0

wrong() {
    echo "not so: $*"
    failed=1
}
narrow() { # WHAT FILE
    local long
    long=$(awk 'length > 80' "$2")
    [ -z "$long" ] || wrong "$1 stays within 80 columns: $long"
}
teaches() { # WORD...: --help says how it is used, and `help WORD...` says the same
    "$host" "$@" --help >"$work/help" 2>"$work/err" || wrong "$* --help ends with 0"
    [ ! -s "$work/err" ] || wrong "$* --help says nothing on stderr"
    grep -q '^Usage: evopolicygym' "$work/help" || wrong "$* --help begins with its use"
    narrow "$* --help" "$work/help"
    "$host" help "$@" >"$work/same" 2>&1 || wrong "help $* ends with 0"
    cmp -s "$work/help" "$work/same" || wrong "help $* is $* --help"
}
refused() { # TEXT WORD...: exit 2, one line on stderr that holds TEXT
    local text=$1
    shift
    "$host" "$@" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] || wrong "$* ends with 2"
    [ ! -s "$work/out" ] || wrong "$* says nothing on stdout"
    [ "$(wc -l <"$work/err")" -eq 1 ] || wrong "$* says one line"
    grep -qF -- "$text" "$work/err" || wrong "$* says '$text': $(cat "$work/err")"
}

"$host" help >"$work/all" || wrong 'help ends with 0'
narrow help "$work/all"
mapfile -t commands < <(sed -n 's/^  \([a-z]*\)  .*/\1/p' "$work/all")
[ "${#commands[@]}" -ge 20 ] || wrong "help lists all commands: ${commands[*]}"
[ "${commands[0]} ${commands[1]}" = 'run resume' ] || wrong 'the main job stands first'
for command in "${commands[@]}"; do
    [ "$command" = help ] || teaches "$command"
done
for action in list show check baseline; do
    teaches benchmark $action
done
"$host" --help | cmp -s - "$work/all" || wrong '--help is help'

for words in 'agent list' 'benchmark list'; do
    # shellcheck disable=SC2086
    "$host" $words >"$work/list" || wrong "$words ends with 0"
    narrow "$words" "$work/list"
done

"$host" run --help >"$work/run"
for heading in 'What to run' Agent Budget Containment Output Examples; do
    grep -qx "$heading:" "$work/run" || wrong "run --help has the heading $heading"
done
[ "$(sed -n '/^Output:/,/^$/p' "$work/run" | grep -c -- --help)" -eq 1 ] || wrong 'run --help names --help at its end'

refused 'no command "nope"' help nope
refused 'did you mean "resume"?' help resum
refused 'did you mean "evaluate"?' evalute
refused 'version takes no argument' version x
refused 'did you mean "list"?' benchmark lst
refused 'did you mean "check"?' agent chek
refused 'did you mean "digest"?' program digst
refused 'there are list, show and check' agent frobnicate

session=$EPG_BIN/evopolicygym-session
"$session" --help >"$work/session" || wrong 'the help of the session ends with 0'
narrow 'the help of the session' "$work/session"
"$session" statsu >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || wrong 'a misspelt command of the session ends with 2'
grep -qF 'did you mean "status"?' "$work/err" || wrong 'a misspelt command of the session is told which is meant'
exit $failed
