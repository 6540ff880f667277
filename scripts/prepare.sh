# shellcheck shell=bash
# What ./quickstart and ./check share: the Debian packages that are needed, and a build of one preset. To be sourced.
#
#   prepare_packages PURPOSE...   installs what scripts/packages.txt lists for these purposes and is not there yet,
#                                 as root or by sudo; otherwise says what is missing and fails
#   prepare_build PRESET          configures and builds build/PRESET

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
            prepare_say "These Debian packages are missing: ${missing[*]}" \
                "and only root, or a user who may use sudo, can install them. Have this run, then try again:"
            prepare_say "    sudo apt-get install --no-install-recommends ${missing[*]}"
            return 1
        fi
    fi
    prepare_say "Installing Debian packages: ${missing[*]}"
    if ! prepare_apt update || ! prepare_apt install --no-install-recommends "${missing[@]}"; then
        prepare_say "The packages could not be installed. Mend what apt-get says above, or install them yourself:" \
            "${missing[*]}"
        return 1
    fi
}

# apt-get with the caller's `as_root`, which asks nothing and waits for another apt-get to end.
prepare_apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@" >&2
}

prepare_build() {
    local preset=$1 build="$prepare_root/build/$1" options=() was
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
    (cd -- "$prepare_root" && cmake --preset "$preset" "${options[@]}" && cmake --build --preset "$preset") >&2
}
