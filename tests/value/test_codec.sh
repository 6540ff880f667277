#!/usr/bin/env bash
# The Python codec against the vectors and, over random values and bytes in both directions, against the C codec; with
# the default interpreter and every other CPython >= 3.9 that can be found.
set -eu
tried=0
for name in "${EPG_PYTHON:-python3}" python3.9 python3.10 python3.11 python3.12 python3.13; do
    python=$("$name" -c 'import sys; print(sys.executable)' 2>/dev/null) || continue
    version=$("$python" -c 'import sys; print(sys.version_info >= (3, 9) and sys.version.split()[0])')
    case " ${seen:-} " in *" $version "*) continue ;; esac
    if [ "$version" = False ]; then continue; fi
    seen="${seen:-} $version"
    "$python" -B -I -S "$EPG_SOURCE/tests/value/codec.py" "$EPG_SOURCE" "$EPG_BIN/value-tool"
    tried=$((tried + 1))
done
if [ "$tried" = 0 ]; then
    echo "no CPython >= 3.9 found"
    exit 77
fi
