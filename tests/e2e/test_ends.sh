#!/usr/bin/env bash
# Every way in which a Run can end leaves a truthful record and nothing that lives.
. "$EPG_SOURCE/tests/e2e/lib.sh"

run exits -- 'evopolicygym-session submit program --episodes 0:2; exit 0'
check 'nothing selected: exit code 1' [ $code -eq 1 ]
check 'agent_exited' holds 'record["terminal_reason"] == "agent_exited" and record["final_submission_id"] is None'
check 'the next step is told' grep -qF "finish $run best" "$run.out"
"$EPG_BIN/evopolicygym" resume "$run" >"$work/out" 2>"$work/err"
check 'resume is refused' [ $? -eq 2 ]
check 'resume names the way' grep -qF "evopolicygym finish $run best" "$work/err"
cp "$run/events.jsonl" "$work/events"
"$EPG_BIN/evopolicygym" finish "$run" 2 >"$work/out" 2>"$work/err"
check 'an unknown candidate is refused' [ $? -eq 2 ]
check 'what there is is told' grep -q '"2" is no published submission of this Run: there is submission-000001 alone' "$work/err"
check 'a refused hand-over leaves no trace' cmp -s "$work/events" "$run/events.jsonl"
check 'operator finishes' "$EPG_BIN/evopolicygym" finish "$run" best --progress none
check 'marked as the operator'"'"'s' holds 'record["terminal_reason"] == "finished" and record["final_submission_id"] == "submission-000001" and find("finish_requested")[0]["by"] == "operator"'
check 'twice is refused' [ "$("$EPG_BIN/evopolicygym" finish "$run" submission-000001 2>&1 | grep -c 'candidates already')" -eq 1 ]

run spent -- 'evopolicygym-session submit program --episodes 0:20; exit 0'
check 'budget_exhausted' holds 'record["terminal_reason"] == "budget_exhausted"'
run nonzero -- 'exit 7'
check 'agent_failed' holds 'record["terminal_reason"] == "agent_failed" and record["agent"]["returncode"] == 7'
check 'the exit code is told' grep -qx '  why         the Agent ended with exit code 7' "$run.out"
run signalled -- 'kill -9 $$'
check 'the signal is told' grep -q 'why .*signal 9' "$run.out"
run best --on-agent-exit best=2 --validation-episodes 2 -- '
for n in 5 9 7; do sed -i "s/return [0-9]/return $n/" program/policy.py; evopolicygym-session submit program --episodes 0; done; exit 3'
check 'the best are handed over' holds 'record["terminal_reason"] == "finished" and record["candidate_submission_ids"] == ["submission-000002", "submission-000003"] and find("finish_requested")[0]["by"] == "host"'
run fault -- 'sed -i "s/return 1/return 99/" program/policy.py; evopolicygym-session submit program --episodes 0:2 >analysis/out 2>&1; echo $? >>analysis/out; sleep 100'
check 'a trusted fault: exit code 3' [ $code -eq 3 ]
check 'evaluation_failed, charged, not refunded' holds 'record["terminal_reason"] == "evaluation_failed" and find("evaluation_failed")[0]["episodes_remaining"] == 18 and "evaluation_failed" in text("workspace/analysis/out")'

run slow_timeout --agent-timeout 2 -- 'printf "import time\nclass P:\n    def act(self, o):\n        time.sleep(25)\n        return 1\ndef make_policy(c):\n    return P()\n" >program/policy.py; evopolicygym-session submit program --episodes 0:8; sleep 100'
check 'the deadline stops the evaluation' holds 'record["terminal_reason"] == "agent_failed" and record["agent"]["timed_out"] and find("evaluation_stopped")[0]["reason"] == "agent_timeout" and host["wall_seconds"] < 20'

grace=1 run grace -- 'evopolicygym-session submit program --episodes 0; evopolicygym-session finish submission-000001; trap "" TERM; sleep 1000 & sleep 1000'
check 'an Agent that stays after finish is ended after its grace' holds 'record["terminal_reason"] == "finished" and record["agent"]["stopped_after_terminal"] and host["agent_tree"]["complete"]'
run at_once -- 'exit 0'
check 'an Agent that ends at once' holds 'record["terminal_reason"] == "agent_exited" and record["submissions"] == []'
# The sandbox's own processes end on their own time: none of them was left by the Agent.
check 'it left nothing' holds 'host["agent_tree"]["left_behind"] == 0 and host["agent_tree"]["killed"] == 0'
run one_daemon -- 'setsid sleep 1003 & exit 0'
check 'one daemon is counted' holds 'host["agent_tree"]["left_behind"] == 1 and host["agent_tree"]["killed"] == 1'
run stopped_child -- '(setsid sleep 1003 & setsid sleep 1003 & kill -STOP $!); sleep 0.01; exit 4'
check 'two are, one of them stopped; the exit code is the Agent'"'"'s' holds 'host["agent_tree"]["left_behind"] == 2 and host["agent_tree"]["complete"] and record["agent"]["returncode"] == 4'

# --- names that are not UTF-8 ---
odd=$(printf '%s/odd\377' "$work")
mkdir "$odd"
cp -r "$work/start" "$odd/start"
run="$work/odd_program"
"$EPG_BIN/evopolicygym" run "$run" -b test/one-step -p "$odd/start" --execution process --allow-unsafe-process \
    --progress none -- sh -c 'evopolicygym-session submit program --episodes 0 && evopolicygym-session finish submission-000001'
check 'a Program from any path' holds 'record["terminal_reason"] == "finished"'
check 'and its record is sound' "$EPG_BIN/evopolicygym" verify "$run"
run refused --inherit "$(printf 'A\377')" -- true
check 'what no record can hold is refused' [ $code -eq 2 ]
check 'before anything is created' [ ! -e "$run" ]
"${command[@]}" "$(printf '\377')" >/dev/null 2>&1
check "an argument too" [ $? -eq 2 ]
check 'before anything is created' [ ! -e "$run" ]

# --- daemons that ignore everything do not outlive the Run ---
run daemons -- '
(setsid bash -c "trap \"\" TERM HUP INT; exec -a epg-test-marker-'$$' sleep 1000" &)
(setsid setsid bash -c "trap \"\" TERM; while :; do echo edited >>program/policy.py; sleep 0.05; done" >/dev/null 2>&1 &)
evopolicygym-session submit program --episodes 0 && evopolicygym-session finish submission-000001; exit 0'
check 'daemons are ended and told' holds 'host["agent_tree"]["left_behind"] >= 1 and host["agent_tree"]["complete"]'
check 'nothing lives after the ends above' none_living

# --- signals ---
sleeper='printf "import time\nclass P:\n    def act(self, o):\n        time.sleep(25)\n        return 1\ndef make_policy(c):\n    return P()\n" >program/policy.py; (setsid sleep 1001 &); touch analysis/ready; evopolicygym-session submit program --episodes 0:4; sleep 100'
for signal in INT TERM; do
    run_command "signal-$signal" -- "$sleeper"
    "${command[@]}" >"$run.out" 2>"$run.err" &
    pid=$!
    wait_for "$run/workspace/analysis/ready"
    sleep 0.5
    began=$(date +%s%N)
    kill -$signal $pid
    wait $pid
    code=$?
    took=$((($(date +%s%N) - began) / 1000000))
    check "$signal: exit code 130" [ $code -eq 130 ]
    check "$signal: a truthful record" holds 'record["terminal_reason"] == "interrupted" and names[-1] == "run_interrupted"'
    check "$signal: nothing lives" none_living
    echo "SIG$signal: ended in $took ms"
done

# --- SIGKILL of the Host, in the Agent's phase and in an evaluation ---
run_command killed -- "$sleeper"
"${command[@]}" >"$run.out" 2>"$run.err" &
pid=$!
wait_for "$run/workspace/analysis/ready"
sleep 0.5
check 'before the kill something lives' [ -n "$(living)" ]
kill -KILL $pid
wait $pid 2>/dev/null
check 'SIGKILL: nothing survives a second' none_living
check 'SIGKILL: the events say what was charged' holds 'record is None and len(find("evaluation_started")) <= 1'
check 'the temporary directory is empty' [ -z "$(ls -A "$TMPDIR" | grep -v '^epg-[0-9a-f]*$')" ]
