# shellcheck shell=bash
# How the architecture tests report: each breach is one line, and a test is proven able to fail before it is believed.
#
#   breach TEXT            tells one breach
#   judge TREE CHECK...    runs each CHECK (a function that takes a tree) on TREE; exits 1 when any told a breach
#   must_catch CHECK FILE  a scratch tree holding one FILE (its content on stdin) must make CHECK tell a breach
#   must_pass CHECK FILE   ... must not

breach() {
    printf '%s\n' "$1"
}

in_scratch_tree() {
    local check=$1 file=$2 tree
    tree=$(mktemp -d)
    mkdir -p -- "$tree/$(dirname -- "$file")"
    cat >"$tree/$file"
    "$check" "$tree"
    rm -rf -- "$tree"
}

must_catch() {
    if [ -z "$(in_scratch_tree "$@")" ]; then
        printf 'this test is blind: %s does not see the breach in %s\n' "$1" "$2"
        exit 1
    fi
}

must_pass() {
    local told
    told=$(in_scratch_tree "$@")
    if [ -n "$told" ]; then
        printf 'this test is wrong: %s sees a breach where there is none: %s\n' "$1" "$told"
        exit 1
    fi
}

judge() {
    local tree=$1 check told all=
    shift
    for check in "$@"; do
        told=$("$check" "$tree")
        all+=${told:+$told$'\n'}
    done
    if [ -n "$all" ]; then
        printf '%s' "$all"
        exit 1
    fi
}

# Paths of the tree's own files (no build, no Run, no git directory), NUL-terminated; arguments narrow `find`.
tree_files() {
    local tree=$1
    shift
    find "$tree" \( -path "$tree/build" -o -path "$tree/out" -o -name .git -o -name __pycache__ \) -prune \
        -o -type f "$@" -print0
}
