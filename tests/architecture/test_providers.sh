#!/usr/bin/env bash
# An agent CLI is known by data alone: neither an adapter's name nor that of an agent's program or package stands in C.
set -u
. "$(dirname -- "${BASH_SOURCE[0]}")/rules.sh"

names=$(python3 -c '
import glob, json, re, sys
words = set()
for path in glob.glob(sys.argv[1] + "/agents/adapters/*.json"):
    adapter = json.load(open(path))
    words |= {adapter["name"], *adapter["executable"]["names"]}
    words |= set(re.findall(r"[a-z0-9]{5,}", adapter["executable"]["install"].split()[-1]))
print("|".join(sorted(words - {"agent"})))' "$EPG_SOURCE")
[ -n "$names" ] || { echo 'no adapter was found'; exit 1; }

check_providers() {
    tree_files "$1" \( -name '*.c' -o -name '*.h' \) ! -path "$1/tests/*" | xargs -0 -r grep -nIiwE -e "$names" -- /dev/null |
        while IFS= read -r found; do
            breach "${found#"$1"/}"
        done
}

must_catch check_providers agents/a.c <<<'if (strcmp(name, "codex") == 0) {'
must_catch check_providers harness/cli/a.c <<<'/* as Claude wants it */'
must_pass check_providers agents/a.c <<<'if (strcmp(name, adapter->name) == 0) {'

judge "$EPG_SOURCE" check_providers
