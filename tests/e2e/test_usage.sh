#!/usr/bin/env bash
# What an Agent used is added up over all its starts: after an interruption, after the Host was killed, and where limits
# count it.
. "$EPG_SOURCE/tests/e2e/lib.sh"

mkdir "$work/bin"
cat >"$work/meter.json" <<'J'
{"schema": "evopolicygym/agent-adapter/v1", "name": "meter", "title": "An agent that tells what it uses",
 "executable": {"names": ["meter-agent"], "install": "there is no such thing"},
 "task": {"ways": ["file"]}, "arguments": [],
 "stream": {"format": "json-lines", "rules": [
   {"match": {"k": "use"}, "usage": {"count": "add", "input": "in", "output": "out", "cost": "usd"}}]}}
J
# Uses 100 + 10 tokens and half a dollar a start. The first two starts wait for their end, the third finishes.
cat >"$work/bin/meter-agent" <<'A'
#!/bin/bash
echo '{"k":"use","in":100,"out":10,"usd":0.5}'
echo x >>analysis/starts
if [ "$(wc -l <analysis/starts)" -lt "${METER_STARTS:-3}" ]; then
    evopolicygym-session submit program --episodes 0
    touch "analysis/ready-$(wc -l <analysis/starts)"
    sleep 1000
fi
evopolicygym-session finish last
A
chmod +x "$work/bin/meter-agent"
export PATH="$work/bin:$PATH"

begin() { # NAME OPTION...: a Run in the background; $host is its Host
    run="$work/$1"
    shift
    "$EPG_BIN/evopolicygym" run "$run" -b test/one-step -p "$work/start" --execution process --allow-unsafe-process \
        --progress none --episode-budget 20 --agent-file "$work/meter.json" "$@" >"$run.out" 2>&1 &
    host=$!
}
again() { # resume in the background
    "$EPG_BIN/evopolicygym" resume "$run" --progress none >>"$run.out" 2>&1 &
    host=$!
}

begin summed
wait_for "$run/workspace/analysis/ready-1"
kill -INT $host
wait $host
check 'interrupted: 130' [ $? -eq 130 ]
check 'one start' holds 'host["usage"]["tokens"]["input"] == 100 and host["usage"]["tokens"]["output"] == 10'
check 'its submission is told the same in its event and in the record' holds '[e["agent_tokens"] for e in events
    if e["event"] == "submission_published"] == [None if one["tokens"]["input"] is None
    else one["tokens"]["input"] + one["tokens"]["output"] for one in host["usage_by_submission"]] != []'
again
wait_for "$run/workspace/analysis/ready-2"
kill -KILL $host
wait $host
again
wait $host
check 'it finished' holds 'record["terminal_reason"] == "finished"'
check 'tokens of three starts' holds 'host["usage"]["tokens"]["input"] == 300 and host["usage"]["tokens"]["output"] == 30'
check 'cost of three starts' holds 'host["usage"]["cost"] == 1.5'
check 'a lower bound, since two were cut off' holds 'host["usage"]["tokens_known"] == host["usage"]["cost_known"] == "lower_bound"'
check 'by submission, of all starts' holds '[(one["submission_id"], one["tokens"]["input"], one["cost"]) for one in host["usage_by_submission"]] == [("submission-000001", 100, 0.5), ("submission-000002", 100, 0.5)]'
check 'as the events tell' holds '[e["agent_tokens"] for e in find("submission_published")] == [110, 110]'
check 'the ends of the Run add up' holds 'sum(e["agent_tokens"] for e in events if e["event"] in ("run_interrupted", "run_finished")) == 330'
check 'verify' "$EPG_BIN/evopolicygym" verify "$run" >/dev/null

# 110 tokens a start: the limit is passed in the second.
METER_STARTS=9 begin limited --max-tokens 150
wait_for "$run/workspace/analysis/ready-1"
kill -INT $host
wait $host
again
wait $host
check 'a limit counts all starts' holds 'host["agent_cause"] == "max_tokens" and host["usage"]["tokens"]["input"] == 200'
check 'nothing lives' none_living
