#!/usr/bin/env bash
# units.sh - runs unit tests of another processor in a root of it, two at once, and says of each test how it went (TAP)
#
# usage: units.sh ROOT PROGRAM...      inside scripts/arm64-enter; the programs lie below the current folder
#        units.sh -L ROOT PROGRAM...   anywhere: qemu runs each program, and nobody runs what it executes (skips-alone.txt)
# UNITS_MATCH=REGEX: only programs of these names (ROOM/test_x) run.
# What an emulator cannot do is in skips.txt: those tests are expected to fail, and are skipped with their reason. Another version of it may pass them.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
how=in skips=$(cat "$here/skips.txt")
if [ "$1" = -L ]; then how=alone skips+=$'\n'$(cat "$here/skips-alone.txt"); shift; fi
root=$1
shift
export here how skips

run() { # root, program
  if [ $how = alone ]; then KPROF_TEST_FAIL=unwiped:1+ timeout -k 10 900 qemu-aarch64-static -L "$1" "$2"
  else timeout -k 10 900 "$here/in-root" "$1" "$PWD" KPROF_TEST_FAIL=unwiped:1+ "$2"; fi
}
one() { # root, program
  local root=$1 program=$2 log code why short=${2#*/test/unit/}
  [[ -z ${UNITS_MATCH:-} || $short =~ ^(${UNITS_MATCH:-})$ ]] || return 0
  why=$(grep -F "$short:* " <<<"$skips") && { echo "ok - $short # SKIP ${why#* }"; return; }
  log=$(mktemp)
  run "$root" "$program" >"$log" 2>&1 </dev/null
  code=$?
  awk -v short="$short" -v code="$code" '
    BEGIN { n = split(ENVIRON["skips"], lines, "\n"); for (i = 1; i <= n; i++) if (match(line = lines[i], /^[a-z][^ ]* /)) why[substr(line, 1, RLENGTH - 1)] = substr(line, RLENGTH + 1) }
    function tell(ok, name) {
      said++
      if (short ":" name in why) {
        if (ok) print "ok - " short ": " name "\n# it passes here: perhaps skips.txt needs it no more"
        else print "ok - " short ": " name " # SKIP " why[short ":" name]
      } else if (ok) print "ok - " short ": " name
      else { print "not ok - " short ": " name; bad++ }
    }
    /^\[ RUN      \]/ { if (open != "") tell(0, open); open = $4 }
    /^\[       OK \]/ { tell(1, open); open = "" }
    /^\[  FAILED  \]/ && open != "" { tell(0, open); open = "" }
    /^\[  SKIPPED \]/ && open != "" { print "ok - " short ": " open " # SKIP as it says itself"; said++; open = "" }
    END { if (open != "") tell(0, open)
          if (!said || (code >= 124 && !bad)) { print "not ok - " short " ended with " code; bad++ }
          exit bad > 0 }' "$log" || grep -v '^\[ RUN\|^\[       OK' "$log" | sed 's/^/# /' | tail -n 30
  rm -f "$log"
}
export -f one run
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(env -u OMP_NUM_THREADS nproc)" bash -c 'one "$0" "$1"' "$root"
