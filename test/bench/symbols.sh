#!/usr/bin/env bash
# symbols.sh - what a hooked call costs: alone, hooked and not recording, recording; uftrace beside it, in turns of one run
#
# usage: symbols.sh BENCH LIBKPROF_SO [TURNS]
# One function called from one place, then many from many.
set -euo pipefail
bench=$1 lib=$(realpath "$2") turns=${3:-7} calls=900000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export KPROF_SYMBOLS=zlibVersion,zlibCompileFlags,get_crc_table,zError,crc32,adler32
declare -A of
median() { tr ' ' '\n' | grep . | sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
for how in "" many; do
  of=()
  for ((i = 0; i < turns; i++)); do
    of[alone]+=" $("$bench" $calls $how)"
    of[idle]+=" $(LD_PRELOAD=$lib KPROF_SCHEDULE=wait=1000,active=1 KPROF_STEP=time:1000s "$bench" $calls $how 2>/dev/null)"
    of[recorded]+=" $(LD_PRELOAD=$lib KPROF_EXPORT=none "$bench" $calls $how 2>/dev/null)"
    if command -v uftrace >/dev/null; then
      of[uftrace]+=" $(uftrace record --force --no-event -d "$work/uf" "$bench" $calls $how 2>/dev/null | tail -n 1)"
    fi
    rm -rf "$work"/kprof "$work"/uf*
  done
  echo "${how:-one} of them called:"
  alone=$(median <<<"${of[alone]}")
  for what in alone idle recorded uftrace; do
    [ -n "${of[$what]:-}" ] || { echo "$what: not here"; continue; }
    ns=$(median <<<"${of[$what]}")
    awk -v what="$what" -v ns="$ns" -v alone="$alone" 'BEGIN {printf "%-9s %7.1f ns a call, %6.1f added\n", what, ns, ns - alone}'
  done
  if [ -n "${of[uftrace]:-}" ]; then
    awk -v a="$alone" -v r="$(median <<<"${of[recorded]}")" -v u="$(median <<<"${of[uftrace]}")" 'BEGIN {printf "ratio to uftrace %.2f\n", (r - a) / (u - a)}'
  fi
done
