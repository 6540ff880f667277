#!/bin/bash
# The same attempts by an ordinary user, when the tests themselves run as root: his sandboxes are made in another way.
# Everything that is needed is copied to where he can read it.
set -eu
if [ "$(id -u)" != 0 ]; then
    echo "run by an ordinary user already: the other tests were this one"
    exit 0
fi
user=54321
place=$(mktemp -d /var/tmp/epg-as-user-XXXXXX)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/bin" "$place/share/evopolicygym/guest" "$place/source/tests/hostile" "$place/tmp"
for name in hostile-test_policies hostile-test_agents execution-test_sandbox; do
    cp "$EPG_BIN/tests/$name" "$place/bin/"
done
cp "$EPG_BIN/evopolicygym-contain" "$EPG_BIN/evopolicygym-cell.so" "$place/bin/"
cp -r "$EPG_SOURCE/harness/guest/python/." "$place/share/evopolicygym/guest/"
cp "$EPG_SOURCE/tests/hostile/policy_tools.py" "$place/source/tests/hostile/"
chmod -R a+rX "$place"
chown -R $user:$user "$place/tmp"

python=
for candidate in /usr/bin/python3 /usr/local/bin/python3 "$(readlink -f "$(command -v python3)")"; do
    if setpriv --reuid $user --regid $user --clear-groups "$candidate" -c 'import ctypes' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || { echo "no python3 that an ordinary user can run"; exit 1; }

cd "$place/tmp"
failed=0
for name in hostile-test_policies hostile-test_agents execution-test_sandbox; do
    env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$place/tmp" TMPDIR="$place/tmp" EPG_PYTHON="$python" \
        EPG_SOURCE="$place/source" CK_DEFAULT_TIMEOUT=200 \
        setpriv --reuid $user --regid $user --clear-groups "$place/bin/$name" || failed=1
done
left=$(ls -A "$place/tmp")
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
exit $failed
