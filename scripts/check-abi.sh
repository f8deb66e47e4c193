#!/usr/bin/env bash
# check-abi.sh - what libkprof.so needs, exports and asks of glibc
#
# usage: check-abi.sh [LIBRARY]
# Fails on: a NEEDED entry but libc.so.6 and the loader, an export outside the list, a version node on an export, an
# executable stack, text relocations, lazy binding, and a glibc newer than FLOOR (2.34 on Debian 12). Also on a function, in
# the library or the command beside it, that glibc 2.17 has not: the wheel is linked for that (decisions/054).
set -uo pipefail
export LC_ALL=C
lib=${1:-build/libkprof.so} floor=${FLOOR:-2.34} bad=0
[ -r "$lib" ] || { echo "check-abi: no such library: $lib" >&2; exit 2; }
cross=${CROSS_COMPILE:-} # another processor's tools
readelf() { command "${cross}readelf" "$@"; }
nm() { command "${cross}nm" "$@"; }
wrong() { echo "check-abi: $1"; bad=1; }

dynamic=$(readelf -dW "$lib") || exit 2
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
for n in $needed; do
  case $n in
    libc.so.6) ;;
    ld-linux-aarch64.so.1) ;; # the loader itself: AArch64 keeps the guard word of stacks there, and zlib.a looks at it
    *) wrong "needs $n: only libc.so.6 may be needed" ;;
  esac
done

exports=$(nm -D --defined-only --with-symbol-versions "$lib" | awk '{print $NF}')
for e in $exports; do
  case $e in
    *@*) wrong "$e carries a version node: it would not stand in for an unversioned name" ;;
    kprof_*|InitializeInjection|InitializeInjectionNvtx2) ;;
    # a symbol of no value, which no loader takes until it gets one (decisions/100)
    __gmon_start__) nm -D --defined-only "$lib" | grep -qE '^0+ A __gmon_start__$' || wrong "exports a __gmon_start__ that has a value" ;;
    *) wrong "exports $e, which is not on the list (kprof_*, InitializeInjection, InitializeInjectionNvtx2, __gmon_start__)" ;;
  esac
done

grep -q 'TEXTREL' <<<"$dynamic" && wrong "has text relocations"
grep -qE 'BIND_NOW|FLAGS_1.*NOW' <<<"$dynamic" || wrong "is bound lazily"
grep -q 'FLAGS_1.*NODELETE' <<<"$dynamic" || wrong "may be unmapped (no -z nodelete)"
readelf -lW "$lib" | grep 'GNU_STACK' | grep -q 'RWE' && wrong "wants an executable stack"
readelf -lW "$lib" | grep -q 'GNU_RELRO' || wrong "has no RELRO"

# only glibc has these: a strong reference keeps a musl program from starting (collector/base/elf/kp_otherlibc.h)
undefined=$(nm -D --undefined-only "$lib")
for name in gnu_get_libc_version dlmopen dlvsym renameat2 __libc_single_threaded __register_atfork; do
  grep -qE "^ +U $name(@|\$)" <<<"$undefined" && wrong "asks strongly for $name, which musl has not"
done

# what other preloaded libraries stand in for (fakeroot) is asked of the kernel (collector/base/sys/io_file.c)
for name in stat fstat lstat fstatat __xstat __fxstat statx mkdir unlink rename renameat renameat2; do
  grep -qE "^ +[Uw] $name(@|\$)" <<<"$undefined" && wrong "calls $name by name: a preloaded fakeroot would answer"
done

newest=$(nm -D --undefined-only --with-symbol-versions "$lib" | sed -n 's/.*@GLIBC_\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
highest=$(printf '%s\n%s\n' "$newest" "$floor" | sort -V | tail -n 1)
[ "$highest" = "$floor" ] || wrong "asks for glibc $newest, more than $floor"

# names that glibc 2.17 has, too, under an older version
older='pthread_.*|dl[a-z]*|[fl]?stat(at)?(64)?|fcntl(64)?|__libc_start_main|pow|exp|log|hypot|__isoc23_.*'
for file in "$lib" "$(dirname "$lib")/kprof"; do
  [ -r "$file" ] || continue
  while read -r name version; do
    [ "$(printf '%s\n2.17\n' "$version" | sort -V | tail -n 1)" = 2.17 ] || grep -qxE "$older" <<<"$name" ||
      wrong "$(basename "$file") calls $name, which glibc 2.17 has not ($version): no wheel can be made"
  done < <(nm -D --undefined-only --with-symbol-versions "$file" | sed -nE 's/^ +U ([^@]*)@GLIBC_([0-9.]+)$/\1 \2/p')
done

[ $bad = 0 ] && echo "check-abi: needs $(echo "$needed" | tr '\n' ' ')only, $(wc -w <<<"$exports") exports, glibc $newest or newer"
exit $bad
