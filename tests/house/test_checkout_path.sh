#!/usr/bin/env bash
# Where a checkout lies does not change what is built: a directory above it may be called like a room of the house.
set -eu
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# sources TREE: the objects that the Host's library is made of, as the build of TREE would make them.
sources() {
    cmake -S "$1" -B "$1/build/dev" -G Ninja -DCMAKE_C_COMPILER="$EPG_CC" -DBUILD_TESTING=OFF >"$work/said" 2>&1 ||
        { cat "$work/said"; exit 1; }
    ninja -C "$1/build/dev" -t query libepg.a | grep -oE 'epg\.dir/.*\.o' | sort
}

copy() {
    mkdir -p -- "$1"
    (cd -- "$EPG_SOURCE" && tar -c CMakeLists.txt scripts harness programs agents runs include) | tar -x -C "$1"
}

copy "$work/plain"
copy "$work/main/examples/a space/inside"
sources "$work/plain" >"$work/expected"
sources "$work/main/examples/a space/inside" >"$work/found"
grep -q 'runs/loop.c.o' "$work/expected" || { echo 'the library lacks a room'; cat "$work/expected"; exit 1; }
! grep -qE '/(examples|main|inside)/|session_main' "$work/expected" || { echo 'the library has a program in it'; exit 1; }
diff "$work/expected" "$work/found"
