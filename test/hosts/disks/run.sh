#!/usr/bin/env bash
# run.sh - programs beside disks that stand, are full or slow: with us no step, save, fork or exit waits for such a disk
#
# usage: run.sh FOLDER_OF_PROGRAMS LIBKPROF_SO [PATTERN]
# Each case makes a small volume (a loop device, a tmpfs), starts test/hosts/disks/steps.c beside an empty preloaded
# library and beside ours at the same time, and disturbs the volume while both run. Claimed: status, output and files
# are the same; no step took longer than alone by a tenth of the disturbance; what is lost is told, to the record.
# HOSTS_MATCH=REGEX: only these cases. HOSTS_JOBS=N: so many at once (4), since they wait most of the time.
# HOSTS_LONG=1: longer disturbances, 200 kills, and trainings with torch (KPROF_PYTHON).
# Needs root. Speaks TAP; what the machine lacks is skipped with its reason, and counted. Exit 0 when nothing failed.
set -uo pipefail
bin=$(cd "$1" && pwd) lib=$2 only=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
kprof=$(dirname "$lib")/kprof
empty=$bin/libempty.so
long=${HOSTS_LONG:-}
stand=4 kills=20
[ -z "$long" ] || stand=12 kills=200
work=$(mktemp -d "${TMPDIR:-/tmp}/kprof-disks-XXXXXX") || exit 2
work=$(cd "$work" && pwd -P)
chmod 755 "$work"
ulimit -c 0
export LC_ALL=C OMP_NUM_THREADS=1

# shellcheck source=test/hosts/compare.sh
. "$here/../compare.sh"
# shellcheck source=test/hosts/disks/volumes.sh
. "$here/volumes.sh"
# shellcheck source=test/hosts/disks/claims.sh
. "$here/claims.sh"
# shellcheck source=test/hosts/disks/cases.sh
. "$here/cases.sh"

# A case runs in a shell of its own, with $case and $at, a folder; what it mounted goes with it.
one_case() { # name
  # shellcheck disable=SC2034  # the files read above use them
  case=$1 at=$work/$1
  mkdir -p "$at" && touch "$at/begun"
  trap volumes_away EXIT
  trap 'exit 143' INT TERM
  { "case_$1"; claim_left_nothing; } >"$at/tap" 2>"$at/mistakes"
  [ -s "$at/tap" ] || echo "not ok - $1: the case told nothing" >>"$at/tap"
  [ ! -s "$at/mistakes" ] || { echo "not ok - $1: $(head -n 1 "$at/mistakes")"; sed 's/^/# /' "$at/mistakes"; } >>"$at/tap"
}

# One at a time comes what would disturb the others.
chosen=() running=0
mapfile -t all < <(declare -F | sed -n 's/^declare -f case_//p')
for name in "${all[@]}"; do
  [[ -z $only || $name == *$only* ]] && [[ -z ${HOSTS_MATCH:-} || $name =~ ^(${HOSTS_MATCH:-})$ ]] && chosen+=("$name")
done
trap 'trap "" TERM; kill 0; wait; exit 143' INT TERM
for name in "${chosen[@]}"; do
  if [ "$(id -u)" != 0 ]; then
    mkdir -p "$work/$name" && echo "ok - $name # SKIP needs root" >"$work/$name/tap"
    continue
  fi
  if [ $running -ge "${HOSTS_JOBS:-4}" ]; then wait -n; running=$((running - 1)); fi
  one_case "$name" &
  running=$((running + 1))
done
wait
for name in "${chosen[@]}"; do cat "$work/$name/tap" 2>/dev/null || echo "not ok - $name: the case did not run"; done >"$work/tap"
cat "$work/tap"
read -r ok failed skipped < <(awk '/^ok .*# SKIP/ {s++; next} /^ok / {o++} /^not ok / {f++} END {print o+0, f+0, s+0}' "$work/tap")
echo "# disks: $ok passed, $failed failed, $skipped skipped"
echo "1..$((ok + failed + skipped))"
if [ -n "${HOSTS_KEEP:-}" ]; then echo "# kept: $work"; else rm -rf "$work"; fi
[ "$failed" = 0 ]
