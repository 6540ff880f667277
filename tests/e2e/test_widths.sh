#!/usr/bin/env bash
# Tables fit: no line of log, list, compare and diff is wider than the terminal, and what matters stays in them.
. "$(dirname -- "$0")/lib.sh"
epg="$EPG_BIN/evopolicygym"
long="$work/a-directory-with-a-rather-long-name-that-holds-runs-of-many-kinds-and-sizes"
mkdir "$long"
check 'Runs are made' "$EPG_BIN/epg-make-run" "$long/one-Run-of-some-submissions" 6 4
check 'a second one' "$EPG_BIN/epg-make-run" "$long/another-Run-日本語-name" 3 2
one="$long/one-Run-of-some-submissions"
mkdir "$long/broken" && : >"$long/broken/events.jsonl"

# fits WIDTH COMMAND...: with COLUMNS, and as wide a terminal without COLUMNS (or, WIDTH 80, no terminal at all).
fits() {
    python3 - "$@" <<'P'
import fcntl, os, pty, re, struct, subprocess, sys, termios, unicodedata
width, command = int(sys.argv[1]), sys.argv[2:]
def terminal():
    pid, fd = pty.fork()
    if pid == 0:
        import time
        os.environ.pop("COLUMNS", None)
        while os.get_terminal_size(1).columns != width:
            time.sleep(0.01)
        os.execv(command[0], command)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    out = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    assert os.waitpid(pid, 0)[1] == 0
    return re.sub(r"\x1b\[\d*m", "", out.decode().replace("\r", ""))
def plain(**more):
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    return subprocess.run(command, env=environment | more, capture_output=True, text=True, check=True).stdout
texts = [plain(COLUMNS=str(width)), terminal()] + ([plain(), plain(COLUMNS="x")] if width == 80 else [])
columns = lambda line: sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
assert texts[0] == texts[1], texts
for text in texts:
    assert text == texts[0]
    for line in text.splitlines():
        if re.match(r"left out:|unreadable:|/|\d+ submission", line):
            continue # sentences
        assert columns(line) <= width, (columns(line), line)
        assert line == line.rstrip(), line
print(texts[0])
P
}
shows() { # WIDTH PATTERN COMMAND...
    local width=$1 pattern=$2
    shift 2
    fits "$width" "$@" >"$work/table" && grep -qE -- "$pattern" "$work/table" && return 0
    head -20 "$work/table"
    return 1
}
for width in 80 100 250; do
    check "log at $width" shows $width '^\* submission-00000[1-6].* [0-9]' "$epg" log "$one"
    check "list at $width" shows $width 'best +.*assessment .* Run$' "$epg" list "$long"
    check "list at $width: an unreadable one too" grep -q '^unreadable .*broken$' "$work/table"
    check "compare at $width" shows $width '^ *rank +Agent +held-out +95% interval .* Run$' "$epg" compare "$one"
    check "compare at $width leaves nothing out" grep -q '^ *rank.*state' "$work/table"
    check "diff at $width" shows $width 'submission-000001 +submission-000002 +change$' "$epg" diff "$one" 1 2 --feedback
done
check 'log at 40: what is essential' shows 40 '^  submission +score' "$epg" log "$one"
check 'log at 40 names the rest' grep -q '^left out: .*time.*(see --json)$' "$work/table"
check 'list at 80: paths are shortened in the middle' shows 80 '[^ ]\.\.[^ ].*submissions$' "$epg" list "$long"
check 'list at 250: they are whole' shows 250 "$one\$" "$epg" list "$long"
check 'list at 80: wide characters are counted' shows 80 'name$' "$epg" list "$long"
check '--json has all of it' sh -c "COLUMNS=40 '$epg' list '$long' --json | grep -qF '$one'"
"$EPG_BIN/epg-make-run" "$work/single" 1 1
check 'one submission is one submission' sh -c "'$epg' log '$work/single' | grep -q '^1 submission, 1 of'"
check 'log --last 0 is refused' sh -c "! '$epg' log '$work/single' --last 0 2>'$work/err' && grep -q 'last takes a whole number from 1' '$work/err'"
check 'a reader that goes away is no fault' bash -c "set -o pipefail; '$EPG_BIN/epg-make-run' '$work/many' 3000 1; '$epg' log '$work/many' 2>'$work/err' | head -1 >/dev/null; [ ! -s '$work/err' ]"

# --- the next step after a Run can be copied and run ---
mkdir "$work/it's a place"
ln -s "$EPG_BIN/evopolicygym" "$work/it's a place/epg"
"$work/it's a place/epg" run "$work/it's a place/run" -b test/one-step -p "$work/start" --execution process --allow-unsafe-process \
    --progress none --episode-budget 2 -- bash -c 'evopolicygym-session submit program --episodes 0 && evopolicygym-session finish submission-000001' >"$work/out.txt" 2>"$work/err"
check 'the Run ended' [ $? -eq 0 ]
sed -n '/Look at it/,$p' "$work/out.txt" | tail -n +2 >"$work/next.sh"
check 'it names two commands' [ "$(wc -l <"$work/next.sh")" -eq 2 ]
(cd "$TMPDIR" && sh -e "$work/next.sh" >"$work/next.out" 2>&1)
check 'and they work' grep -q '^. submission-000001' "$work/next.out"
check 'both' grep -qi '<!doctype' "$TMPDIR/report.html"
rm -f "$TMPDIR/report.html"
