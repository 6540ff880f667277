#!/usr/bin/env bash
# What no file of the repository may hold: paths of one developer's machine, package registry hosts, traces of the
# tools that wrote it, files too long to read. The words are written with brackets, so that this file is clean itself.
set -u
. "$(dirname -- "${BASH_SOURCE[0]}")/rules.sh"

words='/wor[k]/|(^|[^[:alnum:]._/-])/roo[t]/([^.]|\.[^s])|/tm[p]/[a-z]*[0-9]{4}'
words+='|registr[y]\.[a-z]+\.|pyp[i]\.org|pythonhoste[d]|npm[j]s|crate[s]\.io|deb\.debia[n]|prox[y]\.golang'
words+='|[Ii]ssu[e]s? #?[0-9]|[Cc]o-[Aa]uthored-b[y]|[Gg]enerated (b[y]|wit[h]) (Claud[e]|Code[x]|GP[T]|an? A[I])'
words+='|AI assistan[t]|language mode[l] wrote|\b(TOD[O]|FIXM[E]|XX[X])\b'

# Data taken as it is from elsewhere is held to the machine's paths and hosts too: it has none.
check_words() {
    tree_files "$1" | xargs -0 -r grep -nIE -e "$words" -- /dev/null | while IFS= read -r found; do
        breach "${found#"$1"/}"
    done
}

longest=700
check_length() {
    local path lines
    while IFS= read -r -d '' path; do
        lines=$(wc -l <"$path")
        [ "$lines" -le $longest ] || breach "${path#"$1"/}: $lines lines; $longest at most, better under 600"
    done < <(tree_files "$1" ! -path "$1/*/data/*" \( -name '*.[ch]' -o -name '*.py' -o -name '*.sh' -o -name '*.md' \
        -o -name '*.txt' -o -perm -u+x \))
}

# Guests bring nothing but the standard library of CPython 3.9: no later syntax, no other import.
check_python() {
    command -v python3 >/dev/null || return 0
    tree_files "$1" -name '*.py' ! -path "$1/*/data/*" | xargs -0 -r python3 -I -c '
import ast, sys
ours = {"evopolicygym", "policy", "agent"}
root = sys.argv[1]
for path in sys.argv[2:]:
    name = path[len(root) + 1:]
    try:
        tree = ast.parse(open(path, encoding="utf-8").read(), name, feature_version=(3, 9))
    except SyntaxError as error:
        print(f"{name}:{error.lineno}: not Python 3.9: {error.msg}")
        continue
    if not name.startswith(("harness/", "agents/")):
        continue
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        for top in {full.split(".")[0] for full in names} - ours - set(sys.stdlib_module_names):
            print(f"{name}:{node.lineno}: {top} is not in the standard library")
' "$1"
}

must_catch check_words docs/a.md <<<"see /wor""k/main"
must_catch check_words docs/a.md <<<"cd /roo""t/x"
must_catch check_words docs/a.md <<<"https://registr""y.npm""js.org"
must_catch check_words docs/a.md <<<"as issu""e 12 asks"
must_pass check_words docs/a.md <<<'the workspace/program of RUN/workspace/ and the /tmp directory'
must_pass check_words build/a.md <<<"cd /roo""t/x"
must_catch check_length runs/a.c < <(yes | head -n 701)
must_pass check_length runs/a.c < <(yes | head -n 700)
must_catch check_python agents/demo/a.py <<<'import numpy'
must_catch check_python tests/a.py <<<$'match x:\n    case 1:\n        pass'
must_pass check_python agents/demo/a.py <<<'import json, os.path'

judge "$EPG_SOURCE" check_words check_length check_python
