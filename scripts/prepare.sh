# shellcheck shell=bash
# What ./quickstart and ./check share: the Debian packages that are needed, and a build of one preset. To be sourced.
#
#   prepare_packages PURPOSE...   installs what scripts/packages.txt lists for these purposes and is not there yet,
#                                 as root or by sudo; otherwise says what is missing and fails
#   prepare_build PRESET [TARGET...]   configures build/PRESET and builds these targets in it, or all
#   prepare_show                  reads what a build says and shows how far it is: on a terminal in one line that
#                                 changes, else in a few lines

prepare_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

prepare_say() {
    printf '%s\n' "$*" >&2
}

# The packages of these purposes that are not installed, one a line.
prepare_missing() {
    local purpose package wanted=" $* "
    while read -r purpose package; do
        if [[ $wanted == *" $purpose "* ]] &&
            [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            printf '%s\n' "$package"
        fi
    done < <(grep -v '^#' "$prepare_root/scripts/packages.txt")
}

prepare_packages() {
    local missing as_root=()
    if ! command -v dpkg-query >/dev/null; then
        prepare_say "This is not a Debian system: make sure that what scripts/packages.txt lists is installed."
        return 0
    fi
    mapfile -t missing < <(prepare_missing "$@")
    if [ ${#missing[@]} -eq 0 ]; then
        return 0
    fi
    if [ "$(id -u)" -ne 0 ]; then
        # With a terminal sudo may ask for the password; without one it must not wait for it.
        if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            as_root=(sudo)
        else
            prepare_say "These Debian packages are missing: ${missing[*]}."
            prepare_say "Only root, or a user who may use sudo, can install them. Have this run, then try again:"
            prepare_say "    apt-get install --no-install-recommends ${missing[*]}"
            return 1
        fi
    fi
    prepare_say "Installing Debian packages: ${missing[*]}"
    # What waits for a mirror is bounded; what changes the system is not, so that it is never cut off.
    if ! prepare_apt 300 update; then
        prepare_say "The lists of packages could not be read anew: going on with those that there are."
    fi
    if ! prepare_apt 1800 install --download-only --no-install-recommends "${missing[@]}" ||
        ! prepare_apt 0 install --no-install-recommends "${missing[@]}"; then
        prepare_say "The packages could not be installed: see what apt-get says above." \
            "When a mirror does not answer, try again later, or name another one in /etc/apt. What is missing:" \
            "${missing[*]}"
        return 1
    fi
}

# prepare_apt SECONDS ARGUMENT...: apt-get with the caller's `as_root`, for so long at most (0: as long as it takes). It
# asks nothing, waits for another apt-get to end, and gives a mirror that falls silent up after a while.
prepare_apt() {
    local limit=$1 code=0
    shift
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive timeout --foreground -k 10 "$limit" \
        apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 "$@" >&2 || code=$?
    if [ "$code" -eq 124 ]; then
        prepare_say "apt-get $1 was not done in $limit seconds: the mirror is too slow, or out of reach."
    fi
    return "$code"
}

prepare_show() {
    local line percent step=0
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
            percent=$((100 * BASH_REMATCH[1] / BASH_REMATCH[2]))
            if [ -t 2 ]; then
                printf '\rBuilding: %d of %d \e[K' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
            elif [ $((percent / 25)) -gt "$step" ]; then
                step=$((percent / 25))
                prepare_say "Building: $percent %"
            fi
        fi
    done
    if [ -t 2 ]; then
        printf '\r\e[K' >&2
    fi
}

prepare_build() {
    local preset=$1 build="$prepare_root/build/$1" options=() targets=() was
    shift
    if [ $# -gt 0 ]; then
        targets=(--target "$@")
    fi
    if command -v ccache >/dev/null; then
        options=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    fi
    if [ -e "$build" ] && [ ! -w "$build" ]; then
        prepare_say "$build belongs to another user: remove it, or build in a clone of your own."
        return 1
    fi
    # A tree that was moved or copied with its build: CMake refuses that build, so it is made anew.
    was=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt" 2>/dev/null || true)
    if [ -n "$was" ] && [ "$was" != "$prepare_root" ]; then
        rm -rf -- "$build"
    fi
    (cd -- "$prepare_root" && cmake --preset "$preset" "${options[@]}" && cmake --build --preset "$preset" "${targets[@]}") >&2
}
