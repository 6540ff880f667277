#!/usr/bin/env bash
# An Agent that misbehaves changes nothing: publication, budget, the Host's copies and the history stay true, and what
# was tampered with is told.
. "$EPG_SOURCE/tests/e2e/lib.sh"
true_record='record["terminal_reason"] == "finished" and [s["score"] for s in record["submissions"]] == [1.0]'
finish='evopolicygym-session submit program --episodes 0 && evopolicygym-session finish submission-000001'
told() { check "$1: told" holds "len(host['tampering']) > 0"; }
whole() { # NAME: the record is true and the Host's copy stands
    check "$1: the record is true" holds "$true_record"
    check "$1: the Host's copy" grep -q 'return 1' "$run/submissions/submission-000001/program/policy.py"
    check "$1: the history" [ "$(git -C "$run/history.git" show submission-000001:policy.py | grep -c 'return 1')" -eq 1 ]
}

run precreated -- "mkdir -p feedback/submissions/submission-000001/x; echo trap >feedback/submissions/submission-000001/feedback.json; $finish"
whole precreated
told precreated
run latest_directory -- "mkdir -p feedback/latest.json/deep; $finish"
whole latest_directory
told latest_directory
run latest_link -- "echo safe >analysis/target; ln -s ../analysis/target feedback/latest.json; $finish"
whole latest_link
check 'a link is not followed' grep -qx safe "$run/workspace/analysis/target"
run feedback_removed -- "chmod -R u+w feedback; rm -rf feedback; $finish"
whole feedback_removed
told feedback_removed
run feedback_link -- "chmod -R u+w feedback; rm -rf feedback; mkdir /tmp/epg-e2e-trap-$$; ln -s /tmp/epg-e2e-trap-$$ feedback; $finish"
whole feedback_link
check 'nothing is written through a link' [ -z "$(ls -A "/tmp/epg-e2e-trap-$$")" ]
rmdir "/tmp/epg-e2e-trap-$$"
run feedback_filled -- "cd feedback; seq 100000 | xargs -n 5000 touch; cd ..; $finish"
whole feedback_filled
run edits_published -- "$finish; chmod -R u+w feedback; echo forged >feedback/submissions/submission-000001/feedback.json"
whole edits_published
told edits_published
run adds_odd_name -- "$finish; chmod -R u+w feedback; touch \"feedback/submissions/submission-000001/\$(printf 'odd\\377')\""
whole adds_odd_name
told adds_odd_name
run program_link -- 'mv program elsewhere; ln -s elsewhere program; evopolicygym-session submit program --episodes 0 2>analysis/out; rm program; mv elsewhere program; '"$finish"
whole program_link
check 'a link is no Program, and costs nothing' holds '"program_invalid" in text("workspace/analysis/out") or "client_error" in text("workspace/analysis/out")'
run program_gone -- 'rm -rf program; evopolicygym-session submit program --episodes 0; evopolicygym-session status >analysis/status; mkdir program; printf "class P:\n    def act(self, o):\n        return 1\ndef make_policy(c):\n    return P()\n" >program/policy.py; '"$finish"
whole program_gone
run edited_while_captured -- '(while [ ! -e analysis/stop ]; do for i in 1 2 3 4 5 6 7 8; do echo "#$i" >program/f$i; done; done) & w=$!
n=0; for i in 1 2 3 4 5 6 7 8; do evopolicygym-session submit program --episodes $i >/dev/null 2>&1 && n=$((n+1)); done; touch analysis/stop; wait $w; echo $n >analysis/accepted; exit 0'
check 'a torn snapshot is never taken: each stored Program is the digest that was charged' sh -c "
    for tag in \$(git -C '$run/history.git' tag); do git -C '$run/history.git' cat-file -e \$tag:policy.py || exit 1; done"
check 'what was refused as changed cost nothing' holds 'len(find("evaluation_started")) == int(text("workspace/analysis/accepted"))'

run loud -- "head -c 60000000 /dev/zero | tr '\\0' 'x' ; echo the-end; $finish >/dev/null"
whole loud
check 'the log is bounded, its end is kept and the cut is told' holds 'len(text("agent/stdout.log")) < 12000000 and "the-end" in text("agent/stdout.log") and "were not kept" in text("agent/stdout.log") and host["agent_output"]["stdout_dropped"] > 40000000'
run bomb -- 'for i in $(seq 500); do sleep 1002 & done 2>/dev/null; '"$finish; exit 0"
whole bomb
check 'the bomb is ended' holds 'host["agent_tree"]["complete"]'
MY_TOKEN='s3cret/Value+42' run secret --inherit MY_TOKEN --secret MY_TOKEN -- 'echo "token $MY_TOKEN"; printf %s "$MY_TOKEN" | base64; '"$finish"
check 'no secret is kept' sh -c "! grep -rn -e 's3cret/Value' -e \"\$(printf %s 's3cret/Value+42' | base64)\" '$run/agent' '$run/config.json' '$run/run.json' '$run/events.jsonl'"
check 'nothing lives' none_living

# --- clients ---
run clients -- '
python3 - "$EVOPOLICYGYM_SESSION_SOCKET" <<P
import json, socket, struct, sys, threading, time
path = sys.argv[1]
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect(path); return s
def frame(o):
    b = json.dumps(o).encode(); return struct.pack(">I", len(b)) + b
def read(s):
    data = b""
    while True:
        part = s.recv(65536)
        if not part: break
        data += part
    return json.loads(data[4:])
submit = lambda *i: {"protocol": "agent-session/v3", "method": "submit", "episode_indices": list(i)}
stalled = [connect() for _ in range(10)]                      # connect and stall
slow = connect(); slow.send(frame(submit(0))[:3])             # a byte now and then
vanish = connect(); vanish.send(frame(submit(0))); time.sleep(0.01); vanish.close()
junk = connect(); junk.send(struct.pack(">I", 3) + b"{x}"); assert read(junk)["error"]["code"] == "invalid_request"
huge = connect(); huge.send(b"\xff\xff\xff\xff"); assert read(huge)["error"]["code"] == "invalid_request"
results = []
def one(i):
    s = connect(); s.send(frame(submit(i))); results.append(read(s))
threads = [threading.Thread(target=one, args=(i,)) for i in range(10)]
[t.start() for t in threads]; [t.join() for t in threads]
assert all(r["ok"] for r in results), results
assert len({r["result"]["submission_id"] for r in results}) == 10
P
echo $? >analysis/code
evopolicygym-session finish submission-000002'
check 'none blocks another, none is charged twice' holds 'text("workspace/analysis/code").strip() == "0" and len(find("submission_published")) in (10, 11) and record["terminal_reason"] == "finished"'
