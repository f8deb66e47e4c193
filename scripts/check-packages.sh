#!/usr/bin/env bash
# check-packages.sh - says in one line what the build lacks, and which packages have it; make runs it once a build folder
#
# usage: check-packages.sh COMPILER FLAGS...    FLAGS are those that find headers and libraries (CROSS_FLAGS)
# environment: ZLIB_A, ZSTD_A  the static libraries that ours links; OS_RELEASE  read in place of /etc/os-release (tests)
# Exit 0: all is there. 1: something is missing, or this C library is not supported.
set -uo pipefail

compiler=${1:?usage: check-packages.sh COMPILER FLAGS...}
shift
flags=("$@")

say() { echo "kprof: cannot build here: $1" >&2; exit 1; }

# header: packages of Debian and Ubuntu, of Fedora and its family, of SUSE
packages='
stdio.h            libc6-dev    glibc-devel             glibc-devel
zlib.h             zlib1g-dev   zlib-devel              zlib-devel
libz.a             zlib1g-dev   zlib-static             zlib-devel-static
zstd.h             libzstd-dev  libzstd-devel           libzstd-devel
libzstd.a          libzstd-dev  libzstd-static          libzstd-devel-static
gelf.h             libelf-dev   elfutils-libelf-devel   libelf-devel
'

# The line that installs, for the family of this system; nothing where it is unknown.
install_line() { # column of the table, words before the packages, missing...
  local column=$1 words=$2 name
  shift 2
  for name in "$@"; do awk -v want="$name" -v column="$column" '$1 == want { print $column }' <<<"$packages"; done |
    sort -u | paste -sd' ' | sed "s/^/; to install: $words /"
}
how_to_install() { # missing...
  local like
  like=$(sed -nE 's/^ID(_LIKE)?="?([^"]*)"?$/\2/p' "${OS_RELEASE:-/etc/os-release}" 2>/dev/null | paste -sd' ')
  case " $like " in
    *\ debian\ *|*\ ubuntu\ *) install_line 2 'apt-get install' "$@" ;;
    *\ fedora\ *|*\ rhel\ *|*\ centos\ *) install_line 3 'dnf install' "$@" ;;
    *\ suse\ *|*\ opensuse\ *|*\ sles\ *) install_line 4 'zypper install' "$@" ;;
  esac
}

compiles() { printf '#include <%s>\nint main(void) { return 0; }\n' "$1" | "$compiler" ${flags[@]+"${flags[@]}"} -E -x c - >/dev/null 2>&1; }

command -v "$compiler" >/dev/null || say "no C compiler '$compiler' (gcc or clang: CC=clang)"
compiles stdio.h || say "stdio.h is missing$(how_to_install stdio.h)"
printf '#include <features.h>\n#ifndef __GLIBC__\n#error\n#endif\n' | "$compiler" ${flags[@]+"${flags[@]}"} -E -x c - >/dev/null 2>&1 ||
  say "this system's C library is not glibc, and PyTorch's wheels need glibc: musl (Alpine) is not supported"

missing=()
for header in zlib.h zstd.h gelf.h; do compiles "$header" || missing+=("$header"); done
[ -n "${ZLIB_A:-}" ] || missing+=(libz.a)
[ -n "${ZSTD_A:-}" ] || missing+=(libzstd.a)
[ ${#missing[@]} = 0 ] || say "missing: $(printf '%s, ' "${missing[@]}" | sed 's/, $//')$(how_to_install "${missing[@]}")"
