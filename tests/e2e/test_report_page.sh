#!/usr/bin/env bash
# The page of `report` in a real browser: it draws itself without a fault, and hostile content stays text.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo 'skipped: no Chromium is installed'
    exit 77
}
. "$(dirname -- "$0")/lib.sh"
. "$(dirname -- "$0")/report.sh"
make_hostile_report

dom() { # FRAGMENT: the page as the browser has it, in $work/dom
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync --user-data-dir="$work/browser" \
        --virtual-time-budget=4000 --dump-dom "file://$page#$1" >"$work/dom" 2>"$work/browser.err"
}
drawn() {
    grep -q 'data-drawn="yes"' "$work/dom" && ! grep -q 'id="trouble"' "$work/dom"
}
clean() { # what the page built, without what it was made of
    python3 - "$work/dom" "$1" <<'P'
import html, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
main = text[text.index('<main id="page">'):text.index("</main>")]
assert "owned" not in re.search(r"<title>(.*?)</title>", text).group(1)
assert "<img" not in main and "<script" not in main
assert html.escape(sys.argv[2], quote=False) in main, "the hostile text is not shown"
P
}
shows() { # FRAGMENT PATTERN...
    dom "$1" && drawn || return 1
    shift
    local pattern
    for pattern in "$@"; do
        grep -q -- "$pattern" "$work/dom" || { echo "not on the page: $pattern"; return 1; }
    done
}
check 'the Run, its changes and its timeline are drawn' shows 'run=0&submission=2&tab=diff' 'What was run' 'class="dots"' 'class="add"' 'class="timeline"'
check 'hostile Program and output stay text' clean "$hostile"
check 'a record that does not hold is told' shows 'run=1' 'role="alert"' 'This record does not hold.' 'submission-000003/program: is gone'
check 'Feedback is drawn' shows 'run=1&submission=3&tab=feedback' 'role="tabpanel"'
check 'hostile Feedback stays text' clean '<img src=x onerror=document.title='
check 'Episodes are drawn' shows 'run=1&submission=1&tab=episodes' 'Episodes of this submission'

"$EPG_BIN/evopolicygym" run "$work/pole" -b cartpole -p "$EPG_SOURCE/programs/examples/cartpole" --execution process \
    --allow-unsafe-process --progress plain --episode-budget 4 -- \
    bash -c 'evopolicygym-session submit program --episodes 0:2 && evopolicygym-session finish submission-000001' \
    >"$work/pole.out" 2>&1
check 'a CartPole Run ended' [ $? -eq 0 ]
page="$work/pole.html"
check 'its report' "$EPG_BIN/evopolicygym" report "$work/pole" -o "$page"
check 'an Episode is there to replay' shows 'tab=replay' '<canvas role="img"' 'step 0 ' 'push '
