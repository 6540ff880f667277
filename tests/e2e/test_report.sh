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
assert page.tags.count("script") == 2 and page.tags.count("style") == 1, page.tags
assert not {"link", "img", "iframe", "object", "base"} & set(page.tags), page.tags
script, style = page.texts["script", None].rstrip("\n"), page.texts["style", None]
def named(content):
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"
script = text[text.rindex("<script>") + len("<script>"):text.rindex("</script>")]
style = text[text.index("<style>") + len("<style>"):text.index("</style>")]
assert "default-src 'none'" in page.policy and named(script) in page.policy and named(style) in page.policy, page.policy
for word in ("fetch(", "XMLHttpRequest", "WebSocket", "import(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
    assert word not in script, word
assert "url(" not in style and "@import" not in style
document = json.loads(page.texts["script", "application/json"])
first, made = document["runs"]
assert hostile in first["submissions"][1]["diff"]["text"]
assert any(hostile in event.get("text", "") for event in first["timeline"]["events"])
assert hostile in json.loads(made["submissions"][2]["feedback"]["text"])
assert len(first["submissions"][0]["episodes"]["indices"]) == 3
P
}
check 'the page is whole, and what a Run holds stays data in it' whole

check 'the same Runs give the same page' bash -c '"$1" report "$2" -o "$3/again" && "$1" report "$2" -o - | cmp - "$3/again"' _ "$EPG_BIN/evopolicygym" "$run" "$work"

# Bounded: 200 submissions, and far more than the page has room for.
check 'a Run of 200 submissions is made up' "$EPG_BIN/epg-make-run" "$work/long" 200 50
check 'its report is written' "$EPG_BIN/evopolicygym" report "$work/long" -o "$work/long.html"
check 'and is under 5 MB' [ "$(stat -c %s "$work/long.html")" -le 5000000 ]
check 'a Run of 3000 submissions is made up' "$EPG_BIN/epg-make-run" "$work/longer" 3000 30
python3 - "$work/longer" <<'P'
import json, os, sys
agent = os.path.join(sys.argv[1], "agent", "transcript.jsonl")
with open(agent, "w") as file:
    for i in range(20000):
        file.write(json.dumps({"event": "message", "time_unix_ns": i, "text": "<" * 1500}) + "\n")
for i in range(1, 3001):
    path = os.path.join(sys.argv[1], "submissions", "submission-%06d" % i, "feedback.json")
    with open(path) as file:
        feedback = json.load(file)
    feedback["content"] = {"text": "<\x01\"" * 3000}
    os.unlink(path)
    with open(path, "w") as file:
        json.dump(feedback, file)
P
check 'its report is written' "$EPG_BIN/evopolicygym" report "$work/longer" -o "$work/longer.html"
check 'and is under 5 MB too' [ "$(stat -c %s "$work/longer.html")" -le 5000000 ]
told() {
    python3 - "$work/longer.html" <<'P'
import json, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
one = json.loads(re.search(r'id="document">(.*?)</script>', text, re.S).group(1))["runs"][0]
assert one["without"]["submissions"] == 3000 - len(one["submissions"]) > 0, one["without"]
assert one["without"]["feedback"] > 0 and one["without"]["events"] > 0, one["without"]
numbers = [s["number"] for s in one["submissions"]]
assert numbers[0] == 1 and numbers[-1] == 3000 and numbers == sorted(set(numbers))
P
}
check 'what was left out is told' told

# A Run that has no run.json is shown as far as it went.
chmod u+w "$made" && rm -f "$made/run.json"
check 'a Run without a record' "$EPG_BIN/evopolicygym" report "$made" -o "$work/killed.html"
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
