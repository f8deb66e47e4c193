#!/usr/bin/env bash
# run.sh - runs real programs without and with the library, in several modes, and compares all that they leave
#
# usage: run.sh LIBEMPTY_SO LIBKPROF_SO [--quick] [--table FILE] [PATTERN...]
#   --quick   only the light programs that every machine has after scripts/setup test (CI)
#   --table   writes a row of times for each program (docs/internals/evidence/real-programs.md)
#   PATTERN   only programs whose name holds it
# Each program runs twice beside an empty library; after its `normal` (what differs between any two runs) both must be equal. Then once
# beside ours in each mode. With --quick the second run is made when one beside ours differs: it says whether the program differs from itself. Compared: standard output, standard error, exit status, the files left
# behind; nothing is said by us (KPROF_LOG=none). Speaks TAP: one line a program and mode, and a total. Programs: *.programs in this folder; how one is written: program() below.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${KPROF_REAL_TMP:-/var/tmp}/kprof-real-XXXXXX") || exit 2
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
mkdir "$work/plain" "$work/kprof" "$work/data" # names of one length: stacks and environments lie alike
# what a run reads lies here: it has a /tmp of its own, and the project may be in that which is not seen then
cp "$1" "$work/plain/libkprof.so" && cp "$2" "$work/kprof/libkprof.so" && cp -r "$here" "$work/real" || exit 2
shift 2
quick_only=0 table="" patterns=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick_only=1 ;;
    --table) table=$2; shift ;;
    *) patterns+=("$1") ;;
  esac
  shift
done
# shellcheck source=test/hosts/compare.sh
. "$here/../compare.sh"
quiet() { cat "$1"; } # nothing is said (KPROF_LOG=none): a line of ours is a difference
ok=0 failed=0 skipped=0 programs=0
ulimit -c 0

pass() { ok=$((ok + 1)); echo "ok - $1"; }
fail() { failed=$((failed + 1)); echo "not ok - $1"; }
skip() { skipped=$((skipped + 1)); echo "ok - $1 # SKIP $2"; }
wanted() {
  local pattern
  [ "$quick_only" = 0 ] || [ "${quick:-0}" = 1 ] || return 1
  [ ${#patterns[@]} = 0 ] && return 0
  for pattern in "${patterns[@]}"; do [[ $1 == *$pattern* ]] && return 0; done
  return 1
}

# --- the room a program runs in: its own processes, loopback, /tmp and /dev/shm where the kernel lets us ---------------------------
# Every process of a run ends with it, ports and process numbers are the same in each. Without it programs that listen are skipped.
printf 'mount --bind "%s/tmp" /tmp && mount -t tmpfs none /dev/shm && ip link set lo up && exec "$@"\n' "$work" >"$work/room.sh"
clean=(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$work/home" LC_ALL=C.UTF-8 TZ=UTC OMP_NUM_THREADS=1
  SHELL=/bin/bash USER=root LOGNAME=root TERM=dumb data="$work/data" real="$work/real")
alone=(unshare --pid --fork --kill-child --mount --mount-proc --net --ipc bash "$work/room.sh")
mkdir -m 1777 "$work/tmp"
is_alone=0 around=(setsid -w "${clean[@]}")
if [ "$(id -u)" = 0 ] && "${alone[@]}" true 2>/dev/null; then is_alone=1 around=("${alone[@]}" "${clean[@]}"); fi

# --- the modes ---------------------------------------------------------------------------------------------------------------------
options="KPROF_RECORD_SHAPES=1 KPROF_WITH_STACK=1 KPROF_PROFILE_MEMORY=1 KPROF_WITH_FLOPS=1 KPROF_WITH_MODULES=1 KPROF_COMPILE_RANGES=1"
declare -A modes=(
  [idle]=""
  [full]="$options KPROF_MALLOC=count KPROF_SCHEDULE=warmup=1,active=1,repeat=4 KPROF_STEP=time:50ms KPROF_CHILDREN=1"
  [malloc]="KPROF_MALLOC=trace KPROF_CHILDREN=1"
)
order=(idle full malloc)

# One run: where to keep what is seen, the library, settings. Leaves out, err, status, files and ms there.
run() {
  local at=$1 preload=$2 began
  shift 2
  rm -rf "${work:?}/tmp" "${work:?}/home" "${work:?}/traces"
  mkdir -m 1777 "$work/tmp" "$work/home" "$work/traces"
  began=${EPOCHREALTIME/./}
  LIMIT=$((${limit:-180} * ${KPROF_REAL_SLOWER:-1})) once "$at" "$preload" "$@" bash "$work/program.sh"
  echo $(((${EPOCHREALTIME/./} - began) / 1000)) >"$at/ms"
  normalise "$at"
}
normalise() { # folder of a run
  sed -E -i.raw -e 's/(line [0-9]+:) +[0-9]+ ([A-Z])/\1 PID \2/' -e "${normal:-}" "$1/out" "$1/err" "$1/files"
}

# What recording left: nothing broken, and something at all where the program can be recorded.
recorded() { # mode
  local n bad
  n=$(find "$work/traces" -name '*.pt.trace.json.gz' | wc -l)
  bad=$(find "$work/traces" -name '*.pt.trace.json.gz' -print0 | xargs -0 -r gzip -t 2>&1 | head -n 1)
  [ -z "$bad" ] || printf ' broken trace: %s;' "$bad"
  bad=$(find "$work/traces" -type f ! -name '*.gz' ! -name '*.heap.zst' ! -name '*.kprof' ! -name '*.table.txt' ! -name '*.stacks.txt' ! -name '*.memory.html' ! -name '*.family' ! -name '*.ends' ! -name '.*.part' | head -n 1)
  [ -z "$bad" ] || printf ' left %s;' "${bad#"$work/traces/"}"
  if [ "$1" = malloc ] && [ "$n" = 0 ]; then printf ' it was not recorded;'; fi
}

version_of() { # command -> version of the package that it comes from
  local package
  package=$(dpkg -S "$(readlink -f "$(command -v "$1")")" 2>/dev/null | head -n 1 | cut -d: -f1)
  if [ -n "$package" ]; then dpkg-query -W -f "\${Version}" "$package"; else echo "-"; fi
}

# Of program(): whether the run without us in $a is one of a program that runs here.
does_run() {
  case $(cat "$a/status") in 99 | 12[4-7] | 137) fail "$name: it does not run (status $(cat "$a/status"))"; head -n 5 "$a/err"; return 1 ;; esac
}
# Two runs without us, in $a and $c: whether they are the same. What was recorded before stays in traces.
twice() {
  local what
  mv "$work/traces" "$work/kept" 2>/dev/null
  for _ in 1 2 3; do # on a busy machine a program may differ from itself once, by a race of its own
    rm -rf "$a" "$c"
    run "$a" "$work/plain/libkprof.so"
    run "$c" "$work/plain/libkprof.so"
    compare "$a" "$c"
    what=$differences
    [ -n "$what" ] || break
    echo "# $name: two runs without us differ:$what"
  done
  if [ -e "$work/kept" ]; then rm -rf "$work/traces" && mv "$work/kept" "$work/traces"; fi
  if [ -n "$what" ]; then fail "$name: two runs without us differ:$what"; show "$a" "$c"; head -n 5 "$a/err"; return 1; fi
  does_run
}

# [NAME=VALUE...] program NAME 'COMMANDS OR FILES IT NEEDS' <<'END' ... a bash script that runs it in an empty folder ... END
#   quick=1        one of those that CI runs
#   net=1          listens on loopback: needs a room of its own
#   limit=SECONDS  180 when not said; KPROF_REAL_SLOWER=4 allows four times as much, on a machine that is busy all the time
#   normal=SED     sed -E script for output, errors and the list of files: only what differs between two runs without us
#   unrecorded=1   a program that no preloaded library gets into (static, set-user-id)
#   never='MODE...: why'  modes in which it cannot be equal (docs/decisions/035)
program() {
  local name=$1 needs=$2 command mode a=$work/a b=$work/b c=$work/c what plain ratio row
  cat >"$work/program.sh"
  wanted "$name" || return 0
  programs=$((programs + 1))
  bash -n "$work/program.sh" || { fail "$name: its script cannot be read"; return 0; }
  for command in $needs; do
    command -v "$command" >/dev/null 2>&1 || [ -e "$command" ] || { skip "$name" "no $command here (scripts/setup real)"; return 0; }
  done
  if [ "${net:-0}" = 1 ] && [ $is_alone = 0 ]; then skip "$name" "needs a network namespace"; return 0; fi
  rm -rf "$a" "$b" "$c"
  if [ $quick_only = 1 ]; then run "$a" "$work/plain/libkprof.so"; does_run; else twice; fi || return 0
  plain=$(cat "$a/ms" "$c/ms" 2>/dev/null | sort -n | head -n 1)
  row=""
  [ -z "$table" ] || row="| $name | $(version_of "${needs%% *}") | $plain"
  for mode in "${order[@]}"; do
    if [[ " ${never:+${never%%: *}} " == *" $mode "* ]]; then skip "$name $mode" "${never#*: }"; row+=" | -"; continue; fi
    # shellcheck disable=SC2086
    run "$b" "$work/kprof/libkprof.so" KPROF_LOG=none KPROF_DIR="$work/traces" KPROF_MAX_MB=256 ${modes[$mode]}
    compare "$a" "$b"
    what=$differences
    if [ -n "$what" ] && [ ! -e "$c" ]; then # does the program differ from itself?
      twice || return 0
      compare "$a" "$b"
      what=$differences
    fi
    [ "${unrecorded:-0}" = 1 ] || what+=$(recorded "$mode")
    ratio=$(($(cat "$b/ms") * 100 / (plain ? plain : 1)))
    ratio=$(printf '%d.%02d' $((ratio / 100)) $((ratio % 100)))
    row+=" | $ratio"
    if [ -z "$what" ]; then pass "$name $mode # time x $ratio, $(find "$work/traces" -name '*.gz' | wc -l) traces"; else fail "$name $mode:$what"; show "$a" "$b"; fi
  done
  [ -z "$table" ] || echo "$row |" >>"$table"
}

if [ -n "$table" ]; then
  echo '| program | version | ms alone | idle | full | malloc |' >"$table"
  echo '|---|---|---|---|---|---|' >>"$table"
fi
# Input for programs that read much: the same in each run. Half of it is still more than a block of xz and what sort keeps in memory.
awk -v lines=$((quick_only ? 30000 : 60000)) 'BEGIN { s = 1; for (i = 0; i < lines; i++) { line = ""; for (j = 0; j < 8; j++) { s = (s * 1103515245 + 12345) % 2147483648; line = line " w" (s % 5000) } print i line } }' >"$work/data/words.txt"
for file in "$here"/*.programs; do
  # shellcheck disable=SC1090
  . "$file"
done
[ "$programs" -gt 0 ] || { echo "not ok - no such program"; failed=1; }
echo "# real programs: $programs; $ok passed, $failed failed, $skipped skipped"
echo "1..$((ok + failed + skipped))"
[ "$failed" = 0 ]
