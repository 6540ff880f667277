#!/usr/bin/env bash
# The page of `report`: one file that needs nothing else, bounded, and data in it that can't leave its place.
. "$(dirname -- "$0")/lib.sh"
. "$(dirname -- "$0")/report.sh"
make_hostile_report

whole() { # the page's parts, told apart by a parser that knows nothing of ours
    python3 - "$page" "$hostile" <<'P'
import base64, hashlib, html.parser, json, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
hostile = sys.argv[2]
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.policy = [], {}, None
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.key = (tag, attributes.get("type"))
        if "content-security-policy" == attributes.get("http-equiv", "").lower():
            self.policy = attributes["content"]
        assert not {"src", "href", "onerror", "onload", "style"} & set(attributes), attributes
    def handle_data(self, data):
        if self.tags and self.tags[-1] in ("script", "style"):
            self.texts[self.key] = self.texts.get(self.key, "") + data
page = Page()
page.feed(text)
assert page.tags.count("script") == 6 and page.tags.count("style") == 1, page.tags
assert not {"link", "img", "iframe", "object", "base"} & set(page.tags), page.tags
def named(content):
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"
scripts = re.findall("<script>(.*?)</script>", text, re.S)
assert len(scripts) == 5
script = "".join(scripts)
style = text[text.index("<style>") + len("<style>"):text.index("</style>")]
assert "default-src 'none'" in page.policy and all(named(one) in page.policy for one in scripts) and named(style) in page.policy, page.policy
for word in ("fetch(", "XMLHttpRequest", "WebSocket", "import(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
    assert word not in script, word
assert "url(" not in style and "@import" not in style
document = json.loads(page.texts["script", "application/json"])
first, made = document["runs"]
assert hostile in first["submissions"][1]["diff"]["text"]
assert any(hostile in event.get("text", "") for event in first["timeline"]["events"])
assert hostile in json.loads(made["submissions"][2]["feedback"]["text"])
assert len(first["submissions"][0]["episodes"]["indices"]) == 3
assert first["verification"]["checks"] > 20 and first["verification"]["findings"] == [], first["verification"]
assert any("submission-000003/program: is gone" in finding for finding in made["verification"]["findings"]), made["verification"]
P
}
check 'the page is whole, and what a Run holds stays data in it' whole

check 'the same Runs give the same page' bash -c '"$1" report "$2" -o "$3/again" && "$1" report "$2" -o - | cmp - "$3/again"' _ "$EPG_BIN/evopolicygym" "$run" "$work"

# Bounded: 200 submissions, and far more than the page has room for.
check 'a Run of 200 submissions is made up' "$EPG_BIN/epg-make-run" "$work/long" 200 50
written() { # RUN FILE: whatever is found in a made-up record
    "$EPG_BIN/evopolicygym" report "$1" -o "$2" >/dev/null 2>&1
    [ $? -le 1 ]
}
check 'its report is written' written "$work/long" "$work/long.html"
check 'and is under 5 MB' [ "$(stat -c %s "$work/long.html")" -le 5000000 ]
check 'a Run of 1300 submissions is made up' "$EPG_BIN/epg-make-run" "$work/longer" 1300 20
python3 - "$work/longer" <<'P'
import json, os, sys
agent = os.path.join(sys.argv[1], "agent", "transcript.jsonl")
with open(agent, "w") as file:
    for i in range(20000):
        file.write(json.dumps({"event": "message", "time_unix_ns": i, "text": "<" * 1500}) + "\n")
for i in range(1, 1301):
    path = os.path.join(sys.argv[1], "submissions", "submission-%06d" % i, "feedback.json")
    with open(path) as file:
        feedback = json.load(file)
    feedback["content"] = {"text": "<\x01\"" * 3000}
    os.unlink(path)
    with open(path, "w") as file:
        json.dump(feedback, file)
P
check 'its report is written' written "$work/longer" "$work/longer.html"
check 'and is under 5 MB too' [ "$(stat -c %s "$work/longer.html")" -le 5000000 ]
told() {
    python3 - "$work/longer.html" <<'P'
import json, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
one = json.loads(re.search(r'id="document">(.*?)</script>', text, re.S).group(1))["runs"][0]
assert one["without"]["submissions"] == 1300 - len(one["submissions"]) > 0, one["without"]
assert one["without"]["feedback"] > 0 and one["without"]["events"] > 0, one["without"]
numbers = [s["number"] for s in one["submissions"]]
assert numbers[0] == 1 and numbers[-1] == 1300 and numbers == sorted(set(numbers))
P
}
check 'what was left out is told' told

# A Run that has no run.json is shown as far as it went.
chmod u+w "$made" && rm -f "$made/run.json"
check 'a Run without a record' written "$made" "$work/killed.html"

# What was altered after the fact is told in the page, on standard error and by the exit code; the page is written.
run measured --validation-episodes 4 --max-candidates 2 --assessment-episodes 3 -- '
evopolicygym-session submit program --episodes 0:3
evopolicygym-session submit program --episodes 3:5
evopolicygym-session finish submission-000001 submission-000002'
page="$work/measured.html"
check 'a sound record is no warning' bash -c '"$1" report "$2" -o "$3" 2>"$3.err" && [ ! -s "$3.err" ]' _ "$EPG_BIN/evopolicygym" "$run" "$page"
held_out() {
    python3 - "$page" "$run" <<'P'
import json, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
one = json.loads(re.search(r'id="document">(.*?)</script>', text, re.S).group(1))["runs"][0]
events = [json.loads(line) for line in open(sys.argv[2] + "/events.jsonl")]
told = [(m["phase"], m["number"], len(m["episodes"]["indices"]), m["episodes"]["rewards"]) for m in one["held_out"]]
assert [t[:3] for t in told] == [("validation", 1, 4), ("validation", 2, 4), ("assessment", 1, 3)], told
for phase, number, count, rewards in told:
    theirs = {e["episode_index"]: e["reward"] for e in events if e["event"] == phase + "_episode_completed" and e["submission_id"].endswith(str(number))}
    assert rewards == [theirs[i] for i in range(count)], (phase, rewards, theirs)
P
}
check 'Episodes of Validation and Assessment are in it' held_out
chmod u+w "$run" "$run/submissions/submission-000002" "$run/submissions/submission-000002/program" "$run/submissions/submission-000002/program/policy.py"
printf '# <script>altered\n' >>"$run/submissions/submission-000002/program/policy.py"
"$EPG_BIN/evopolicygym" report "$run" -o "$page" >/dev/null 2>"$work/err"
check 'an altered record is exit code 1' [ $? -eq 1 ]
check 'and one line on standard error' grep -q "^evopolicygym: the record of '$run' does not hold (1 finding; submissions/submission-000002/program: " "$work/err"
check 'and stands in the page' grep -q '"findings":\["submissions/submission-000002/program: ' "$page"

# Where it goes: -o replaces, at once; what the user did not name is not lost.
mkdir "$work/here" && cd "$work/here" || exit 1
epg="$EPG_BIN/evopolicygym"
ran() { # EXPECTED-CODE ARGUMENTS...
    local expected=$1
    shift
    "$epg" report "$@" >"$work/out" 2>"$work/err"
    [ $? -eq "$expected" ]
}
check 'report.html, when nothing is named' ran 1 "$run"
check 'an older report is replaced' ran 1 "$run"
printf 'my own page\n' >report.html
check 'something else is not' ran 2 "$run"
check 'with the reason' grep -q "'report.html' is there and is no report; name a file with -o" "$work/err"
check 'it stays' grep -qx 'my own page' report.html
check 'unless it is named' ran 1 "$run" -o report.html
check 'then it is replaced' grep -q 'name="generator" content="evopolicygym"' report.html
printf old >real.html && ln -s real.html link.html
check 'a link' ran 1 "$run" -o link.html
check 'stays a link' [ -L link.html ]
check 'to the page' grep -q evopolicygym real.html
check 'a device' bash -c '"$1" report "$2" -o /dev/stdout 2>/dev/null | head -c 15 | grep -q "<!DOCTYPE html>"' _ "$epg" "$run"
check 'no file at all' ran 2 "$run" -o .
check 'nothing half is left' [ "$(ls -A | sort | tr '\n' ' ')" = 'link.html real.html report.html ' ]
cd "$work" || exit 1
refused() { # EXPECTED ARGUMENTS...
    local expected=$1
    shift
    "$EPG_BIN/evopolicygym" report "$@" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q "$expected" "$work/err"
}
check 'no Run' refused 'name 1 to'
check 'a directory that is no Run' refused "$work/start" "$work/start" -o "$work/none.html"
check 'a place that is not there' refused 'no directory' "$run" -o "$work/none/page.html"
check 'nothing was left behind' [ ! -e "$work/none.html" ]
