# Shared by the tests of `report`: a Run whose Program, Feedback and agent try to be markup. Sourced after lib.sh.
hostile='</script><script>document.title="owned"</script><img src=x onerror=document.title="owned"><!--<script>'
# $page: a report of $run (two submissions) and of $made (made up, with hostile Feedback).
make_hostile_report() {
    page="$work/page.html"
    run hostile -- "evopolicygym-session submit program --episodes 0:3
cat >>program/policy.py <<'EOF'
# $hostile
EOF
evopolicygym-session submit program --episodes 0:3
echo '$hostile'"
    check 'the Run with a hostile Agent ended' [ "$code" -le 1 ]
    made="$work/made"
    check 'a Run was made up' "$EPG_BIN/epg-make-run" "$made" 3 4
    python3 - "$made" "$hostile" <<'P'
import json, os, sys
path = os.path.join(sys.argv[1], "submissions", "submission-000003", "feedback.json")
with open(path) as file:
    feedback = json.load(file)
feedback["content"] = {sys.argv[2]: sys.argv[2]}
os.unlink(path)
with open(path, "w") as file:
    json.dump(feedback, file)
P
    "$EPG_BIN/evopolicygym" report "$run" "$made" -o "$page" >"$work/report.out" 2>"$work/report.err"
    check 'the report is written, and a made-up record is told' [ $? -eq 1 ]
}
