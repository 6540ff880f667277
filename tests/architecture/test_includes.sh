#!/usr/bin/env bash
# The rooms of the house and their arrows: which room may include which, which may use which library, and that files
# are changed through system/io.h alone.
set -u
. "$(dirname -- "${BASH_SOURCE[0]}")/rules.sh"

# Each room and the rooms that it may include besides itself. The registry in benchmark/ reaches the environments all
# the same, without an include: through a function that benchmark/benchmark.h declares and environments/ defines.
arrows='
base:
system:       base
value:        base system
programs:     base system value
execution:    base system value programs
guest:        base system value programs execution
benchmark:    base system value programs execution
environments: base system value benchmark
evaluation:   base system value programs execution guest benchmark
agents:       base system value programs execution guest benchmark evaluation
runs:         base system value programs execution guest benchmark environments evaluation agents
cli:          base system value programs execution guest benchmark environments evaluation agents runs
'

# Each library's header and the rooms that may include it.
libraries='
git2:      programs
openssl/:  base programs
utf8proc:  base programs
pcre2:     agents
seccomp:   execution
'

# "path:line:text" of every include in the rooms of a tree, paths relative to it.
includes() {
    (cd -- "$1" && grep -rnE '^[[:space:]]*#[[:space:]]*include\>' --include='*.[ch]' \
        harness programs agents runs 2>/dev/null)
}

check_arrows() {
    includes "$1" | awk -F: -v arrows="$arrows" '
        BEGIN {
            count = split(arrows, lines, "\n")
            for (i = 1; i <= count; i++) {
                room = lines[i]; sub(/:.*/, "", room)
                rest = lines[i]; sub(/^[^:]*:/, "", rest)
                if (room == "") continue
                known[room] = 1; may[room, room] = 1
                words = split(rest, to, " ")
                for (j = 1; j <= words; j++) may[room, to[j]] = 1
            }
        }
        {
            split($1, path, "/")
            room = path[1] == "harness" ? path[2] : path[1]
            if (!(room in known)) { print $1 ": " room " is no room of the house"; next }
            if (match($0, /"[^"]*"/) == 0) next
            target = substr($0, RSTART + 1, RLENGTH - 2)
            if (index(target, "/") == 0 || target ~ /\.\./) {
                print $1 ":" $2 ": write \"room/file.h\", not \"" target "\""; next
            }
            other = target; sub(/\/.*/, "", other)
            if (!((room, other) in may)) print $1 ":" $2 ": " room " may not include \"" target "\""
        }'
}

check_libraries() {
    local library rooms found
    while read -r library rooms; do
        [ -n "$library" ] || continue
        while IFS= read -r found; do
            local room=${found#harness/}
            room=${room%%/*}
            [[ " $rooms " == *" $room "* ]] ||
                breach "${found%%:*}: <${library%:}...> belongs to $rooms alone"
        done < <(includes "$1" | grep -E "<${library%:}")
    done <<<"$libraries"
}

# System calls that change a file system, outside system/io.c. Scratch of no durable meaning may be made and removed
# where it is used: in evaluation/ (spools, scratch directories) and in execution/ and guest/ (a guest's own).
check_io() {
    (cd -- "$1" && grep -rnE --include='*.[ch]' \
        '(^|[^_[:alnum:]>.])(renameat2?|rename|mkdir(at)?|unlink(at)?|rmdir|symlink(at)?|link(at)?|f?chmod(at)?|f?truncate|fsync|fdatasync|creat|mk[od]*s?temps?|fopen|tmpfile|mknod|mkfifo)\(' \
        harness programs agents runs 2>/dev/null) |
        grep -vE '^harness/(system/io\.c|(evaluation|execution|guest)/)' |
        grep -vE '^[^:]*:[0-9]+:[[:space:]]*(\*|/\*|//)' |
        while IFS= read -r found; do
            breach "$found: goes around system/io.h"
        done
}

must_catch check_arrows harness/base/text.c <<<'#include "system/io.h"'
must_catch check_arrows harness/benchmark/registry.c <<<'#include "environments/builtin.h"'
must_catch check_arrows harness/guest/guest.c <<<'#include "benchmark/benchmark.h"'
must_catch check_arrows runs/run.c <<<'#  include "cli/cli.h"'
must_catch check_arrows runs/run.c <<<'#include "session.h"'
must_catch check_arrows harness/attic/box.c <<<'#include "base/text.h"'
must_pass check_arrows runs/run.c <<<'#include "agents/task.h"'
must_pass check_arrows harness/environments/taxi.c <<<'#include "benchmark/benchmark.h"'
must_catch check_libraries runs/run.c <<<'#include <git2.h>'
must_pass check_libraries programs/store.c <<<'#include <git2/odb.h>'
must_catch check_io runs/run.c <<<'    if (mkdirat(run, "x", 0700) != 0) {'
must_catch check_io runs/run.c <<<'    (void)rename(a, b);'
must_pass check_io runs/run.c <<<'    epg_io_rename(a, b, c, d);'
must_pass check_io runs/run.c <<<' * rename(2) is what makes it atomic.'

judge "$EPG_SOURCE" check_arrows check_libraries check_io
