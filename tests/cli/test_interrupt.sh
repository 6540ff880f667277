#!/usr/bin/env bash
# Ctrl-C on a terminal ends evaluate and run at once, with 130; a Run says how it goes on, and does. What stands on a
# terminal and what does not: colours and the live line.
. "$EPG_SOURCE/tests/e2e/lib.sh"

# terminal KEYS-AFTER COMMAND...: COMMAND on a terminal of its own; a Ctrl-C is typed when KEYS-AFTER (a file) is there,
# none for "-". Its output goes to $work/seen; its exit code is ours.
terminal() {
    python3 - "$work/seen" "$@" <<'P'
import os, pty, select, sys, time
seen, after, command = sys.argv[1], sys.argv[2], sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = os.environ.get("EPG_TERM", "xterm")
    os.execvp(command[0], command)
limit = time.monotonic() + 100
typed = after == "-"
with open(seen, "wb") as out:
    while True:
        if time.monotonic() > limit:
            os.kill(pid, 9)
            sys.exit("no end was seen")
        if not typed and os.path.exists(after):
            os.write(fd, b"\x03")
            typed = True
        if select.select([fd], [], [], 0.05)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            out.write(data)
            out.flush()
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
P
}
host=$EPG_BIN/evopolicygym
unsafe=(--execution process --allow-unsafe-process)

# A Policy that says when it began, and never ends.
mkdir "$work/endless"
cat >"$work/endless/policy.py" <<P
import time
class P:
    def act(self, o):
        open("$work/began", "w").close()
        time.sleep(1000)
def make_policy(c):
    return P()
P
terminal "$work/began" "$host" evaluate "$work/endless" -b test/one-step -n 5 --episode-timeout 1000 "${unsafe[@]}"
check 'evaluate: 130' [ $? -eq 130 ]
check 'evaluate: says so' grep -q 'evopolicygym: interrupted' "$work/seen"

run_command stopped -- 'evopolicygym-session submit program --episodes 0; touch analysis/ready; sleep 1000'
terminal "$run/workspace/analysis/ready" "${command[@]}"
check 'run: 130' [ $? -eq 130 ]
check 'run: says how it goes on' grep -q "resume $run" "$work/seen"
check 'run: nothing of it lives' none_living
echo 'evopolicygym-session finish best' >"$run.sh"
terminal - "$host" resume "$run"
check 'resume: done' [ $? -eq 0 ]
check 'resume: to its end' holds 'record["terminal_reason"] == "finished"'

# The live line is for a terminal that can write over a line; everywhere else there are plain lines without colours.
terminal - "$host" evaluate "$work/start" -b test/one-step -n 5 "${unsafe[@]}"
check 'a live line on a terminal' grep -q $'\r\e\\[K' "$work/seen"
EPG_TERM=dumb terminal - "$host" evaluate "$work/start" -b test/one-step -n 5 "${unsafe[@]}"
check 'none on a dumb one' [ "$(grep -c $'\e' "$work/seen")" -eq 0 ]
"$host" evaluate "$work/start" -b test/one-step -n 5 "${unsafe[@]}" >"$work/seen" 2>&1
check 'none in a file' [ "$(grep -c $'\e' "$work/seen")" -eq 0 ]
terminal - "$host" log "$run"
check 'log: colours on a terminal' grep -q $'\e' "$work/seen"
NO_COLOR=1 terminal - "$host" log "$run"
check 'log: none with NO_COLOR' [ "$(grep -c $'\e' "$work/seen")" -eq 0 ]
NO_COLOR='' terminal - "$host" log "$run"
check 'log: an empty NO_COLOR is none' grep -q $'\e' "$work/seen"
"$host" log "$run" >"$work/seen"
check 'log: none in a file' [ "$(grep -c $'\e' "$work/seen")" -eq 0 ]
check 'nothing lives' none_living
