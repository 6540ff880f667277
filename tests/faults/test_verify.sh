#!/usr/bin/env bash
# What was changed after the fact shows; a record of a newer schema, a torn or missing part is told, never a crash.
. "$EPG_SOURCE/tests/e2e/lib.sh"
run whole --validation-episodes 2 --max-candidates 2 --assessment-episodes 2 -- '
evopolicygym-session submit program --episodes 0:3; sed -i "s/return 1/return 3/" program/policy.py
evopolicygym-session submit program --episodes 1,9; evopolicygym-session finish submission-000001 submission-000002'
verify() { "$EPG_BIN/evopolicygym" verify "$1" >"$work/out" 2>"$work/err"; }
verify "$run"
check 'an untouched Run is sound' [ $? -eq 0 ]
changed() { # WHAT COMMAND-ON-A-COPY WORD
    rm -rf "$work/copy" && cp -a "$run" "$work/copy" && chmod -R u+w "$work/copy"
    (cd "$work/copy" && eval "$2")
    verify "$work/copy"
    local code=$?
    check "$1 is found (exit code $code)" [ $code -eq 1 ]
    check "$1: $(cat "$work/out" "$work/err")" grep -q -e "$3" "$work/out" "$work/err"
}
changed 'an edited Program' 'echo "# x" >>submissions/submission-000001/program/policy.py' submission-000001
changed 'an altered score in run.json' 'sed -i "s/\"score\": 3.0/\"score\": 4.0/" run.json' 'another score'
changed 'an altered score in feedback.json' 'sed -i "s/\"score\": 3.0/\"score\": 4.0/" submissions/submission-000002/feedback.json' feedback.json
changed 'an altered score in a report' 'sed -i "s/\"score\": 3.0/\"score\": 4.0/" assessment/report.json' assessment/report.json
changed 'an altered artifact' 'echo x >>submissions/submission-000001/artifacts/trace.txt' trace.txt
changed 'a removed event' 'sed -i 3d events.jsonl' 'events.jsonl'
changed 'an altered event' 'sed -i "s/\"policy_failures\":0/\"policy_failures\":1/" events.jsonl' 'events.jsonl'
changed 'removed last events' 'head -n -2 events.jsonl >e && mv e events.jsonl' 'events.jsonl'
changed 'a moved tag' 'git -C history.git tag -f submission-000001 submission-000002' 'history.git'
changed 'a lost git object' 'find history.git/objects -name "*.pack" -delete; find history.git/objects -type f -path "*/??/*" -delete' 'history.git'
changed 'a lost main' 'rm -f history.git/refs/heads/main' 'refs/heads/main'
changed 'a lost main of a Run that was cut off' 'rm -f history.git/refs/heads/main run.json; sed -i "/final_submission_selected/,\$d" events.jsonl' 'refs/heads/main'
changed 'an old main of a Run that was cut off' 'cp history.git/refs/tags/initial history.git/refs/heads/main; rm run.json; sed -i "/final_submission_selected/,\$d" events.jsonl' 'refs/heads/main'
changed 'a raised budget' 'sed -i "s/\"episode_budget\": 20/\"episode_budget\": 30/" run.json' ''
changed 'a missing config.json' 'rm config.json' config.json
changed 'a missing config.json with a moved tag' 'rm config.json; git -C history.git tag -f submission-000001 submission-000002' history.git
changed 'an edited initial Program' 'echo "# x" >>initial/program/policy.py' initial/program
changed 'a missing initial Program' 'rm -rf initial' initial/program
changed 'an added submission' 'cp -r submissions/submission-000001 submissions/submission-000003' submission-000003
changed 'a missing submission' 'rm -rf submissions/submission-000002' submission-000002
changed 'a missing run.json' 'rm run.json' 'run.json'
changed 'a newer schema' 'sed -i "s/run-record.v8/run-record\/v99/" run.json' 'schema'
changed 'a half-written run.json' 'head -c 200 run.json >e && mv -f e run.json' 'run.json'
changed 'the edited copy of the Agent' 'echo x >>workspace/feedback/submissions/submission-000001/feedback.json' workspace
"$EPG_BIN/evopolicygym" verify "$work/start" >"$work/out" 2>"$work/err"
check 'no Run: exit code 2' [ $? -eq 2 ]

# It reads only, whatever it finds: no call that writes, and every file and directory as it was, its times too.
reads_only() { # WHAT COMMAND-ON-A-COPY
    rm -rf "$work/copy" && cp -a "$run" "$work/copy" && chmod -R u+w "$work/copy"
    (cd "$work/copy" && eval "$2")
    (cd "$work/copy" && find . -printf '%p %i %m %s %T@ %C@\n' | sort) >"$work/before"
    : >"$work/log"
    EPG_IO_FAULT="log=$work/log" "$EPG_BIN/evopolicygym" verify "$work/copy" >"$work/out" 2>"$work/err"
    (cd "$work/copy" && find . -printf '%p %i %m %s %T@ %C@\n' | sort) >"$work/after"
    check "verify of $1 changes nothing" cmp -s "$work/before" "$work/after"
    check "verify of $1 makes no call that writes: $(head -n 1 "$work/log")" [ ! -s "$work/log" ]
}
reads_only 'a whole Run' true
reads_only 'a Run without its published copies' 'rm -rf submissions workspace/feedback'
reads_only 'a Run without its git history and reports' 'rm -rf history.git validation assessment records'
reads_only 'a Run with a torn event and a stale lock' 'printf "{\"event\":" >>events.jsonl; touch history.git/refs/heads/main.lock'
reads_only 'a Run whose Host died' 'rm run.json; sed -i "/final_submission_selected/,\$d" events.jsonl; touch .epg-tmp-0123456789abcdef'

# resume refuses, in one line, what it can't go on with.
refused() { # WHAT WORD [COMMAND-ON-A-COPY]
    rm -rf "$work/copy" && cp -a "$run" "$work/copy" && chmod -R u+w "$work/copy"
    (cd "$work/copy" && eval "${3:-true}")
    "$EPG_BIN/evopolicygym" resume "$work/copy" >"$work/out" 2>"$work/err"
    local code=$?
    check "resume of $1: exit code $code" [ $code -eq 2 ]
    check "resume of $1: $(cat "$work/err")" sh -c "[ \"\$(wc -l <'$work/err')\" -eq 1 ] && grep -q '$2' '$work/err'"
}
cut='sed -i "/final_submission_selected/,\$d" events.jsonl; rm run.json'
refused 'a complete Run' complete
refused 'altered events' altered "$cut; sed -i 3d events.jsonl"
refused 'removed last events' altered 'head -n -2 events.jsonl >e && mv e events.jsonl'
refused 'another Benchmark in config.json' 'config.json' "$cut; sed -i 's/test.one-step\"/cartpole\"/' config.json"
refused 'an altered initial Program' 'initial/program no longer fits' "$cut; echo '# x' >>initial/program/policy.py"
refused 'an altered published Program' 'submission-000002/program no longer fits' "$cut; echo '# x' >>submissions/submission-000002/program/policy.py"
refused 'a missing published Program' 'submission-000001/program' "$cut; rm -rf submissions/submission-000001/program"
EPG_IO_FAULT=errno=EROFS@1:open refused 'a Run in a read-only place' 'must be writable' "$cut"
refused 'another git history' 'git history' "$cut; git -C history.git tag -f submission-000001 submission-000002"
refused 'another Host at work' 'another Host' "$cut; (exec 9>>lock; flock 9; sleep 20) & sleep 0.3"
