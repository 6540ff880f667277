#!/usr/bin/env bash
# Modules that are imported once for all Policies: asked for, refused when they can't be had, kept with the Run.
. "$EPG_SOURCE/tests/e2e/lib.sh"
mkdir "$work/needs"
cat >"$work/needs/policy.py" <<'P'
import sys

missing = [name for name in ("colorsys", "xml.dom") if name not in sys.modules]  # nothing else imports them


class P:
    def act(self, observation):
        return 1


def make_policy(context):
    assert not missing, missing
    return P()
P
evaluate() { # OPTION...; sets $code
    "$EPG_BIN/evopolicygym" evaluate "$work/needs" -b test/one-step -n 3 -q "$@" >"$work/out" 2>"$work/err"
    code=$?
}
for profile in '--execution process --allow-unsafe-process' '--execution sandbox'; do
    # shellcheck disable=SC2086
    evaluate $profile --preload colorsys,xml.dom
    check "$profile: they are there" grep -q '3 completed, 0 failed' "$work/out"
    # shellcheck disable=SC2086
    evaluate $profile --preload colorsys
    check "$profile: no others are" grep -q '0 completed, 3 failed' "$work/out"
done
refused() { # VALUE PATTERN
    evaluate --preload "$1"
    check "--preload '$1' is refused" [ $code -eq 2 ]
    check "--preload '$1': one line" [ "$(wc -l <"$work/err")" -eq 1 ]
    check "--preload '$1': why" grep -qE -- "--preload: .*$2" "$work/err"
}
refused no_such_module "can't import no_such_module: ModuleNotFoundError"
refused '' 'no list of modules'
refused 'a b' 'no list of modules'
refused 'math,' 'no list of modules'
refused '.x' 'no list of modules'
(cd "$work" && touch lying_here.py && evaluate --preload lying_here && [ $code -eq 2 ]) || fail 'a module of the directory here'

# A Run keeps it, and goes on with it.
run="$work/run"
cat >"$work/agent.sh" <<'A'
echo x >>analysis/starts
if [ "$(wc -l <analysis/starts)" -eq 1 ]; then
    evopolicygym-session submit program --episodes 0
    touch analysis/ready
    sleep 1000
fi
evopolicygym-session submit program --episodes 1
evopolicygym-session finish last
A
"$EPG_BIN/evopolicygym" run "$run" -b test/one-step -p "$work/needs" --execution process --allow-unsafe-process \
    --preload colorsys,xml.dom --progress none --episode-budget 5 -- bash "$work/agent.sh" >"$work/out" 2>&1 &
host=$!
wait_for "$run/workspace/analysis/ready"
kill -INT $host
wait $host
check 'it is recorded' grep -q '"preload": "colorsys,xml.dom"' "$run/config.json"
"$EPG_BIN/evopolicygym" resume "$run" --progress none >"$work/out" 2>&1 || fail "resume: $(cat "$work/out")"
check 'no Policy failed, before and after' holds \
    'all(e["failure"] is None for n in (1, 2) for e in json.loads(text("submissions/submission-00000%d/feedback.json" % n))["episodes"])'
check 'nothing lives' none_living
