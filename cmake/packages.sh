# shellcheck shell=bash disable=SC2034
# packages.sh: the Debian packages that the project needs, and how they get installed.
# Sourced by ./run and ./check; not a program.
#
#   shardlab_install "${SHARDLAB_BUILD_PACKAGES[@]}"
#       installs those that are missing, as root or with sudo. Nothing missing: no network, no output,
#       and shardlab_installed stays empty. Otherwise all output goes to standard error and
#       shardlab_installed holds what was installed.
#   shardlab_configure ROOT PRESET FOLDER
#       runs CMake for the preset when the build folder is new or the presets have changed.

SHARDLAB_BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config
  libboost-dev libboost-program-options-dev
  libtomlplusplus-dev libabsl-dev nlohmann-json3-dev libsqlite3-dev
  ccache
)
SHARDLAB_TEST_PACKAGES=(
  libgtest-dev libgmock-dev libbenchmark-dev
  python3 valgrind
  libopenmpi-dev openmpi-bin
)
SHARDLAB_FULL_PACKAGES=(
  clang clang-tidy clang-format libclang-rt-14-dev
)

shardlab_installed=()

shardlab_install() {
  local package missing=() sudo=()
  if ! command -v dpkg-query > /dev/null; then
    echo "shardlab: not a Debian system; these packages are assumed: $*" >&2
    return 0
  fi
  local present
  present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2> /dev/null || true)
  for package in "$@"; do
    grep -qxF "installed $package" <<< "$present" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  echo "shardlab: installing ${missing[*]}" >&2
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
      echo "shardlab: run this as root: apt-get install ${missing[*]}" >&2
      return 1
    fi
    sudo=(sudo)
  fi
  local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update >&2 || echo "shardlab: apt-get update failed; trying with the lists at hand" >&2
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2; then
    echo "shardlab: could not install ${missing[*]}" >&2
    return 1
  fi
  shardlab_installed=("${missing[@]}")
}

shardlab_configure() {
  local root=$1 preset=$2 folder=$3 stamp="$3/.configured"
  if [ ! -e "$folder/build.ninja" ] || [ ${#shardlab_installed[@]} -gt 0 ] ||
    [ ! -e "$stamp" ] || [ "$root/CMakePresets.json" -nt "$stamp" ]; then
    (cd "$root" && cmake --preset "$preset" -B "$folder") || return 1
    touch "$stamp"
  fi
}
