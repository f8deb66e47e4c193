#!/usr/bin/env bash
# check-abi.sh - what libkprof.so needs, exports and asks of glibc
#
# usage: check-abi.sh [LIBRARY]
# Fails on: a NEEDED entry but libc.so.6 and the loader, an export outside the list, a version node on an export, an
# executable stack, text relocations, lazy binding, and a glibc newer than FLOOR (2.34 on Debian 12).
set -uo pipefail
export LC_ALL=C
lib=${1:-build/libkprof.so} floor=${FLOOR:-2.34} bad=0
[ -r "$lib" ] || { echo "check-abi: no such library: $lib" >&2; exit 2; }
wrong() { echo "check-abi: $1"; bad=1; }

dynamic=$(readelf -dW "$lib") || exit 2
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
for n in $needed; do
  case $n in
    libc.so.6) ;;
    *) wrong "needs $n: only libc.so.6 may be needed" ;;
  esac
done

exports=$(nm -D --defined-only --with-symbol-versions "$lib" | awk '{print $NF}')
for e in $exports; do
  case $e in
    *@*) wrong "$e carries a version node: it would not stand in for an unversioned name" ;;
    kprof_*|InitializeInjection) ;;
    *) wrong "exports $e, which is not on the list (kprof_*, InitializeInjection)" ;;
  esac
done

grep -q 'TEXTREL' <<<"$dynamic" && wrong "has text relocations"
grep -qE 'BIND_NOW|FLAGS_1.*NOW' <<<"$dynamic" || wrong "is bound lazily"
grep -q 'FLAGS_1.*NODELETE' <<<"$dynamic" || wrong "may be unmapped (no -z nodelete)"
readelf -lW "$lib" | grep 'GNU_STACK' | grep -q 'RWE' && wrong "wants an executable stack"
readelf -lW "$lib" | grep -q 'GNU_RELRO' || wrong "has no RELRO"

newest=$(nm -D --undefined-only --with-symbol-versions "$lib" | sed -n 's/.*@GLIBC_\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
highest=$(printf '%s\n%s\n' "$newest" "$floor" | sort -V | tail -n 1)
[ "$highest" = "$floor" ] || wrong "asks for glibc $newest, more than $floor"

[ $bad = 0 ] && echo "check-abi: needs $(echo "$needed" | tr '\n' ' ')only, $(wc -w <<<"$exports") exports, glibc $newest or newer"
exit $bad
