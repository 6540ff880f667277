#!/usr/bin/env bash
# Nothing of a finished Run can be altered, taken away or added unseen: see seals.py.
# EPG_SEALS= (empty) tries every alteration of every file.
. "$EPG_SOURCE/tests/e2e/lib.sh"
mkdir "$work/skill" "$work/start/sub"
printf -- '---\nname: skill\ndescription: how to count\n---\n' >"$work/skill/SKILL.md"
echo one >"$work/start/sub/data.txt"
run whole --skill "$work/skill" --bulk-retention-bytes 60 --validation-episodes 2 --max-candidates 2 \
    --assessment-episodes 2 -- '
echo said; echo complained >&2; echo mine >analysis/notes
evopolicygym-session submit program --episodes 0:3; sed -i "s/return 1/return 3/" program/policy.py
evopolicygym-session submit program --episodes 1,9; sed -i "s/return 3/return 1//0/" program/policy.py
evopolicygym-session submit program --episodes 5
evopolicygym-session finish submission-000001 submission-000002'
check "the Run ends well: $(cat "$run.err")" [ $code -eq 0 ]
check 'a bulk artifact was evicted' grep -q '"evicted"' "$run/submissions/submission-000001/availability.json"
check 'nothing is unseen' python3 "$EPG_SOURCE/tests/faults/seals.py" "$run" ${EPG_SEALS-few}
# The same for a Run whose Host died, and that went on to its end.
EPG_IO_FAULT=kill@300 run killed --validation-episodes 2 --assessment-episodes 2 -- '
evopolicygym-session submit program --episodes 0:3; evopolicygym-session submit program --episodes 1
evopolicygym-session finish submission-000001'
check 'it was killed' [ $code -eq 137 ]
"$EPG_BIN/evopolicygym" verify "$run" >"$work/out" 2>&1
check "what a death left is sound: $(cat "$work/out")" [ $? -eq 0 ]
"$EPG_BIN/evopolicygym" resume "$run" >"$work/out" 2>&1
check "it goes on: $(cat "$work/out")" [ $? -eq 0 ]
check 'nothing is unseen in what went on' python3 "$EPG_SOURCE/tests/faults/seals.py" "$run" few
