#!/usr/bin/env bash
# ./quickstart, ./check and what they share, as far as that can be seen without building: mistakes are told before
# anything is made, and missing packages are installed by who may, or named.
set -u
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failed=0

expect() { # WHAT CONDITION...
    local what=$1
    shift
    "$@" || { echo "not so: $what"; failed=1; }
}
says() { # FILE TEXT
    grep -qF -- "$2" "$1" || { sed 's/^/    /' "$1"; return 1; }
}
refused() { # WHAT TEXT ARGUMENT...: exit 2, one line that holds TEXT, and nothing made
    local what=$1 text=$2 code
    shift 2
    (cd "$work/here" && "$work/a tree/quickstart" "$@" >"$work/said" 2>&1 </dev/null)
    code=$?
    expect "$what: exit 2, not $code" [ "$code" -eq 2 ]
    expect "$what: tells '$text'" says "$work/said" "$text"
    expect "$what: one line" [ "$(wc -l <"$work/said")" -eq 1 ]
    expect "$what: nothing built" [ ! -e "$work/a tree/build" ]
}

mkdir -p "$work/a tree/scripts" "$work/here/there is" "$work/bin"
cp "$EPG_SOURCE/quickstart" "$EPG_SOURCE/check" "$work/a tree/"
cp "$EPG_SOURCE"/scripts/* "$work/a tree/scripts/"
touch "$work/here/file"
ln -s nowhere "$work/here/dangling"

refused 'a directory that exists' 'there is exists' 'there is'
refused 'a link that dangles' 'dangling exists' dangling
refused 'a file in the way' 'file is not a directory' file/below/run
if [ "$(id -u)" -ne 0 ]; then
    refused 'a directory of others' 'may not write in /' /evopolicygym-run
fi
refused 'an empty name' 'empty' ''
refused 'two names' 'one directory' one two
refused 'an option' 'unknown option --frobnicate' --frobnicate
expect 'help' says <("$work/a tree/quickstart" --help) 'RUN-DIRECTORY'
expect 'help of check' says <("$work/a tree/check" --help) 'Usage: ./check'
"$work/a tree/check" everything >"$work/said" 2>&1
expect 'check with an argument: exit 2' [ $? -eq 2 ]

# A machine of our own making: what is installed, who we are, and whether sudo lets us, are files of this test.
cat >"$work/bin/dpkg-query" <<'P'
#!/bin/sh
for package; do :; done
if [ "$package" = "$(cat "$WORLD/absent")" ]; then printf not-installed; exit 1; fi
printf installed
P
printf '#!/bin/sh\n[ "$*" = -u ] && cat "$WORLD/uid"\n' >"$work/bin/id"
printf '#!/bin/sh\n[ "$1" = -n ] && shift\n[ -e "$WORLD/sudoer" ] && exec "$@"\n' >"$work/bin/sudo"
printf '#!/bin/sh\necho "$*" >>"$WORLD/apt"\nexit $(cat "$WORLD/apt-exit")\n' >"$work/bin/apt-get"
chmod +x "$work"/bin/*
prepare() { # UID ABSENT-PACKAGE: sets $code
    echo "$1" >"$work/uid"
    echo "$2" >"$work/absent"
    rm -f "$work/apt"
    WORLD=$work PATH=$work/bin:$PATH bash -eu -c '. "$1"; prepare_packages build check' _ \
        "$work/a tree/scripts/prepare.sh" >"$work/said" 2>&1 </dev/null
    code=$?
}
printf '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do [ "$1" = -k ] && shift; shift; done\nlimit=$1\nshift\n[ "$limit" != "$(cat "$WORLD/too-long")" ] || { echo "$*" >>"$WORLD/cut"; exit 124; }\nexec "$@"\n' >"$work/bin/timeout"
chmod +x "$work/bin/timeout"
echo 0 >"$work/apt-exit"
echo never >"$work/too-long"

prepare 1000 none
expect 'all installed: fine for an ordinary user' [ $code -eq 0 ]
expect 'all installed: silent' [ ! -s "$work/said" ]
expect 'all installed: apt-get is left alone' [ ! -e "$work/apt" ]
prepare 0 valgrind
expect 'root: installs' [ $code -eq 0 ]
expect 'root: reads the lists first' says <(head -n 1 "$work/apt") update
expect 'root: installs just that' says "$work/apt" 'install --no-install-recommends valgrind'
prepare 1000 libgit2-dev
expect 'no sudo: fails' [ $code -ne 0 ]
expect 'no sudo: says what is missing' says "$work/said" 'missing: libgit2-dev.'
expect 'no sudo: in sentences' says "$work/said" 'Only root, or a user who may use sudo, can install them.'
expect 'no sudo: says what to type' says "$work/said" 'apt-get install --no-install-recommends libgit2-dev'
expect 'no sudo: apt-get is left alone' [ ! -e "$work/apt" ]
touch "$work/sudoer"
prepare 1000 libgit2-dev
expect 'sudo: installs' [ $code -eq 0 ]
expect 'sudo: installs just that' says "$work/apt" 'install --no-install-recommends libgit2-dev'
echo 100 >"$work/apt-exit"
prepare 0 cmake
expect 'apt-get fails: we fail' [ $code -ne 0 ]
expect 'apt-get fails: says what to do' says "$work/said" 'could not be installed'

expect 'apt-get fails: it is tried with the lists that there are' says "$work/said" 'going on with those that there are'

# A mirror that does not come to an end is given up, and that is told; what changes the system is never cut off.
echo 0 >"$work/apt-exit"
echo 1800 >"$work/too-long"
prepare 0 cmake
expect 'a slow mirror: we fail' [ $code -ne 0 ]
expect 'a slow mirror: says so' says "$work/said" 'not done in 1800 seconds: the mirror is too slow, or out of reach'
expect 'a slow mirror: only the download was cut off' says "$work/cut" download-only
expect 'a slow mirror: says what to do' says "$work/said" 'name another one in /etc/apt'
echo 0 >"$work/too-long"
rm -f "$work/cut"
prepare 0 cmake
expect 'installing has no limit' says "$work/cut" 'install --no-install-recommends cmake'

# A build shows how far it is, in a few lines where there is no terminal.
seq 40 | sed 's|.*|[&/40] Building something|' |
    bash -eu -c '. "$1"; prepare_show' _ "$work/a tree/scripts/prepare.sh" >"$work/said" 2>&1
expect 'a build tells how far it is' says "$work/said" 'Building: 50 %'
expect 'a build is done' says "$work/said" 'Building: 100 %'
expect 'a build is told in four lines' [ "$(wc -l <"$work/said")" -eq 4 ]

# Containment is given up for the demo alone, when it can't be had, and for no other reason. The build and the Host are
# stand-ins here; the Host answers the first question as it is told.
cat >"$work/bin/cmake" <<'P'
#!/bin/sh
mkdir -p build/release
cat >build/release/evopolicygym <<'H'
#!/bin/sh
case $1 in
evaluate) echo 'evopolicygym: containment unavailable: no reason' >&2; exit "$(cat "$WORLD/answer")" ;;
run) echo "$*" >"$WORLD/ran" ;;
esac
H
chmod +x build/release/evopolicygym
P
chmod +x "$work/bin/cmake"
demo() { # ANSWER: quickstart on a machine whose Host gives this exit code; sets $code
    echo "$1" >"$work/answer"
    echo none >"$work/absent"
    rm -f "$work/ran"
    (cd "$work/here" && WORLD=$work PATH=$work/bin:$PATH "$work/a tree/quickstart" "deep/in/run-$1") >"$work/said" 2>&1 </dev/null
    code=$?
}
demo 0
expect 'contained: runs' [ $code -eq 0 ]
expect 'contained: as it is' says "$work/ran" "run $work/here/deep/in/run-0 --benchmark cartpole"
expect 'contained: nothing is given up' [ "$(grep -c 'process' "$work/ran")" -eq 0 ]
expect 'contained: the directories above the Run are made' [ -d "$work/here/deep/in" ]
demo 6
expect 'not contained: runs' [ $code -eq 0 ]
expect 'not contained: by acknowledgement' says "$work/ran" '--execution process --allow-unsafe-process -- python3'
expect 'not contained: the agent is our own' says "$work/ran" "$work/a tree/agents/demo/demo_agent.py"
expect 'not contained: says why' says "$work/said" 'containment unavailable: no reason'
expect 'not contained: says what that means' says "$work/said" 'with all your rights'
expect 'not contained: says why that is acceptable' says "$work/said" "this project's own code"
for fault in 2 3 4 5 1; do
    demo $fault
    expect "a fault $fault: its exit code" [ $code -eq $fault ]
    expect "a fault $fault: nothing runs" [ ! -e "$work/ran" ]
done

exit $failed
