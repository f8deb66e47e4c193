# stages.sh - read by scripts/test: runs the programs of a stage, counts their tests, tells at the end what failed
#
# The reader sets: logs (a folder), jobs, began, fast, and the numbers passed, failed and skipped.
# What fails is run twice more by itself. If it passes both times it counts as passed, and is named as unsteady at the
# end: machines are shared, and a test that waits for another program may wait too long. Else it counts as failed;
# where the end to end tests ran beside it, it is tried once more when they are done, as nothing else runs then.
# shellcheck shell=bash disable=SC2154,SC2034

failures=() unsteady=()
failing() { # stage, what: lines
  local line
  while read -r line; do failures+=("$1: $line"); done <<<"$2"
}

# Seconds of a core that programs took which this shell has waited for. Called without $(...): a shell of its own has no children.
core_seconds() {
  local file=$logs/times.$BASHPID
  times >"$file"
  core=$(awk 'END { split($1, user, /[ms]/); split($2, sys, /[ms]/); printf "%d", 60 * (user[1] + sys[1]) + user[2] + sys[2] }' "$file")
  rm -f "$file"
}

# A background job ends with this: its seconds are told with the stage that it belongs to, not with the one it ran beside.
rm -f "$logs"/core.*
core_keep() { # stage
  local core
  core_seconds
  echo "$core" >"$logs/core.$1.$BASHPID"
}
core_kept() { # stage, or nothing for all
  cat "$logs/core.${1:-}"* 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }'
}

core_told=0
add() { # stage, passed, failed, skipped
  local core
  core_seconds
  core=$((core - $(core_kept)))
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  printf '== %-22s %5d passed, %d failed, %d skipped   (%d s; of a core %d)\n' "$1" "$2" "$3" "$4" "$((SECONDS - began))" "$((core - core_told + $(core_kept "$1.")))"
  core_told=$core
}

# The last lines are what is left of a log that somebody cut: they name what failed.
closing() {
  [ ${#unsteady[@]} = 0 ] || printf 'unsteady (failed once, then passed twice alone): %s\n' "${unsteady[@]:0:60}" | cut -c1-300
  [ ${#failures[@]} = 0 ] || printf 'failed: %s\n' "${failures[@]:0:60}" | cut -c1-300
  echo "$passed passed, $failed failed, $skipped skipped"
  if [ "$failed" = 0 ] && [ "$passed" -gt 0 ]; then exit 0; fi
  exit 1
}

# Whether a command that runs what failed passes twice: it has to succeed, and to say so of at least one test.
passes_twice() { # stage, what a test that passed looks like, command...
  local log=$logs/$1.again.log sign=$2 round
  shift 2
  for round in 1 2; do
    "$@" >"$log.$round" 2>&1 </dev/null || return 1
    grep -qE "$sign" "$log.$round" || return 1
    ! grep -qE '^not ok|^\[  FAILED' "$log.$round" || return 1 # whatever the command's status says
  done
}

# What failed beside the end to end tests waits here for their end: each a line of shell words, as postpone was given them.
e2e_beside=0 postponed=()
postpone() { # stage, failed tests, what failed, what a test that passed looks like, command...
  [ $e2e_beside = 1 ] && postponed+=("$(printf '%q ' "$@")")
}

try_postponed() {
  local entry stage bad what
  local -a words
  for entry in "${postponed[@]}"; do
    eval "words=($entry)"
    stage=${words[0]} bad=${words[1]} what=${words[2]}
    if passes_twice "$stage" "${words[@]:3}"; then
      unsteady+=("$stage: ${what//$'\n'/; }")
      passed=$((passed + bad)) failed=$((failed - bad))
      echo "== $stage, again alone: $bad more passed"
    else
      echo "FAILED: $stage, again alone: $what"
      failing "$stage" "$what"
    fi
  done
}

# One thing that either works or not: name, command...
one() {
  local name=$1 log=$logs/$1.log code
  shift
  "$@" >"$log" 2>&1 </dev/null
  code=$?
  if [ $code = 0 ]; then
    add "$name" 1 0 0
  else
    tail -n 60 "$log"
    echo "FAILED: $name (all of it: $log)"
    failing "$name" "exit $code"
    add "$name" 0 1 0
    return 1
  fi
}

# What xargs starts for each program: its output and exit status lie in files of its own.
cmocka_one() { # folder, program
  local at=$1/${2//\//-}
  timeout -k 10 900 "$2" >"$at.log" 2>&1 </dev/null
  echo $? >"$at.code"
}
export -f cmocka_one

# run, ok, failed, skipped
# shellcheck disable=SC2016
cmocka_counts='/^\[ RUN      \]/ {r++} /^\[       OK \]/ {o++} /^\[  FAILED  \] [^0-9]/ && !/listed below/ {if (!seen[$0]++) f++}
  /^\[  SKIPPED \] [^0-9]/ {if (!seen[$0]++) s++} END {print r+0, o+0, f+0, s+0}'

cmocka_long='/(cli/test_budget|cli/test_crafted|files/test_in_child|schedule/test_job_lead)$'

# Runs cmocka programs on every core; a program that dies counts the test it died in, one that runs no test counts as failed.
cmocka() { # name, programs...
  local name=$1 log=$logs/$1.log each=$logs/$1.each p=0 f=0 s=0 program programs at code run ok bad skip what
  shift
  rm -rf "$each" && mkdir -p "$each" && : >"$log"
  [ $# -gt 0 ] || { failing "$name" "has no test program"; f=1; }
  # what takes longest begins first
  mapfile -t programs < <(printf '%s\n' "$@" | grep -E "$cmocka_long"; printf '%s\n' "$@" | grep -vE "$cmocka_long")
  # shellcheck disable=SC2016
  printf '%s\0' "${programs[@]}" | xargs -0 -r -P "$jobs" -I{} bash -c 'cmocka_one "$1" "$2"' - "$each" {}
  for program in "$@"; do
    at=$each/${program//\//-}
    code=$(cat "$at.code" 2>/dev/null || echo 125)
    read -r run ok bad skip < <(awk "$cmocka_counts" "$at.log")
    [ $((ok + bad + skip)) -lt "$run" ] && bad=$((run - ok - skip))
    [ "$code" != 0 ] && [ "$bad" = 0 ] && bad=1
    [ "$run" = 0 ] && bad=1
    { echo "## $program (exit $code)"; cat "$at.log"; } >>"$log"
    if [ "$bad" != 0 ]; then
      tail -n 40 "$at.log"
      what="$program (exit $code): $(sed -nE 's/^\[  FAILED  \] ([^0-9].*)/\1/p' "$at.log" | sort -u | tr '\n' ' ')"
      if passes_twice "$name" '^\[  PASSED' timeout -k 10 900 "$program"; then
        unsteady+=("$name: $what")
        ok=$((ok + bad)) bad=0
      elif ! postpone "$name" "$bad" "$what" '^\[  PASSED' timeout -k 10 900 "$program"; then
        echo "FAILED: $what"
        failing "$name" "$what"
      fi
    fi
    p=$((p + ok)) f=$((f + bad)) s=$((s + skip))
  done
  rm -rf "$each"
  add "$name" $p $f $s
}

# How the tests of a TAP stage are run that REGEX names, where a stage can run a part of itself.
again_is_possible() { [[ $1 =~ ^(hosts|hosts-real|gpu|disks|arm64)$ ]]; }
again() { # stage, regex, the stage's command...
  local stage=$1 regex=$2
  shift 2
  [ "$stage" = hosts-real ] && set -- "$@" REAL_ARGS="${regex//|/ }"
  again_is_possible "$stage" && HOSTS_MATCH=$regex UNITS_MATCH=$regex "$@"
}

# Begins what tap of the same name then waits for: what waits most of the time runs beside other stages.
declare -A begun=()
begin() { # name, command...
  local name=$1 code
  shift
  { "$@" >"$logs/$name.log" 2>&1 </dev/null; code=$?; core_keep "$name"; exit $code; } &
  begun[$name]=$!
}

# What failed of a TAP stage: 0 where it passes twice now, 2 where it waits for the end, 1 where it failed.
tap_again() { # stage, failed tests, command...
  local name=$1 bad=$2 log=$logs/$1.log names line
  shift 2
  grep -qE '^1\.\.' "$log" || return 1 # only of a run that reached its plan: what never ran has not passed
  names=$(sed -nE 's/^not ok - ([^ :]+).*/\1/p' "$log" | sort -u | tr '\n' '|')
  if passes_twice "$name" '^ok - ' again "$name" "${names%|}" "$@"; then
    while read -r line; do unsteady+=("$name: $line"); done < <(grep '^not ok' "$log")
    return 0
  fi
  again_is_possible "$name" && postpone "$name" "$bad" "$(grep '^not ok' "$log")" '^ok - ' again "$name" "${names%|}" "$@" && return 2
  return 1
}

# Runs a command that speaks TAP ("ok - x", "not ok - x", "ok - x # SKIP why").
tap() { # name, command...
  local name=$1 log=$logs/$1.log code ok bad skip verdict=1
  shift
  if [ -n "${begun[$name]:-}" ]; then wait "${begun[$name]}"; else "$@" >"$log" 2>&1 </dev/null; fi
  code=$?
  read -r ok bad skip < <(awk '/^ok .*# SKIP/ {s++; next} /^ok / {o++} /^not ok / {f++} END {print o+0, f+0, s+0}' "$log")
  grep '# SKIP' "$log"
  if [ "$bad" != 0 ]; then
    awk '/^not ok/ {shown = 1} /^ok/ {shown = 0} shown' "$log" | head -n 100
    tap_again "$name" "$bad" "$@"
    verdict=$?
    [ $verdict = 0 ] && ok=$((ok + bad)) bad=0 code=0
  fi
  [ "$code" != 0 ] && [ "$bad" = 0 ] && bad=1
  [ $((ok + bad + skip)) = 0 ] && { bad=1; echo "$name ran no test"; }
  if [ "$bad" != 0 ] && [ $verdict != 2 ]; then
    tail -n 5 "$log"
    echo "FAILED: $name (all of it: $log)"
    failing "$name" "$(grep '^not ok' "$log" || echo "exit $code")"
  fi
  add "$name" "$ok" "$bad" "$skip"
}

# The end to end tests, file by file: each lane takes the next file that no lane has taken. Long files come first.
e2e_files=(test/e2e/gpu/test_gpu_check.py test/e2e/test_{everything,parity,run,steps,wheel,jupyter,html,ranks,advise,forks}.py)
for file in test/e2e/test_*.py test/e2e/gpu/test_*.py; do
  case " ${e2e_files[*]} " in *" $file "*) ;; *) e2e_files+=("$file") ;; esac
done
e2e_args=()

e2e_words=(-q -p no:cacheprovider -p no:anyio -p no:xdist -p no:xdist.looponfail)

e2e_pytest() { # arguments...
  [ -n "${KPROF_PYTHON:-}" ] || return 1
  "$KPROF_PYTHON" -m pytest "$@" "${e2e_words[@]}" </dev/null
}

# The Python with torch that the tests run, made when it is not there yet.
e2e_python() {
  [ -n "${KPROF_PYTHON:-}" ] || KPROF_PYTHON=$(scripts/venv torch-2.15 </dev/null) || KPROF_PYTHON=
  export KPROF_PYTHON
}

# As many lanes as cores (four at most) run beside the other stages; the shell itself is one more when those are done.
e2e_begin() {
  local lane
  e2e_python
  e2e_beside=1
  for ((lane = 0; lane < jobs && lane < 4; lane++)); do { e2e_lane; core_keep e2e; } & done
}

e2e_lane() {
  [ -n "${KPROF_PYTHON:-}" ] || return 1
  "$KPROF_PYTHON" test/support/lane.py "$logs/e2e" "${e2e_files[@]}" -- "${e2e_args[@]}" "${e2e_words[@]}" -rsfE --durations=5 </dev/null
}

# Whether what failed of a file passes twice now: each file by itself, so that one that fails for good hides no other.
e2e_again() { # log, failed tests
  local what line
  local -a ids
  what=$(grep -E '^(FAILED|ERROR) ' "$1")
  mapfile -t ids < <(sed -E 's/^[A-Z]+ //; s/ - .*//' <<<"$what" | sort -u)
  if [ "$(grep -c . <<<"$what")" -ge "$2" ] && passes_twice e2e ' passed' e2e_pytest "${ids[@]}"; then
    while read -r line; do unsteady+=("e2e: $line"); done <<<"$what"
  else
    failing e2e "${what:-a run of pytest ended badly}"
    return 1
  fi
}

# Waits for the lanes, counts what they left, and runs again what failed.
e2e_end() {
  local file at ok bad skip p=0 f=0 s=0
  e2e_lane
  wait
  rm -rf "$logs/forks" # and the process behind it ends
  unset KPROF_TEST_RUNS KPROF_TEST_FORKS # what is run again is recorded anew
  for file in "${e2e_files[@]}"; do
    at=$logs/e2e/$(basename "$file" .py)
    read -r ok bad skip < <(python3 test/support/junit_counts.py "$at.xml" "$(cat "$at.code" 2>/dev/null || echo 125)")
    [ $((ok + bad + skip)) != 0 ] || [ "$fast" = 1 ] || bad=1 # a file of no test
    p=$((p + ok)) s=$((s + skip))
    grep -E '^SKIPPED|^[0-9]+ (passed|failed|skipped)' "$at.log" | sed "s|^[0-9]|$file: &|"
    if [ "$bad" != 0 ]; then
      grep -vE '^SKIPPED' "$at.log" | tail -n 80
      if e2e_again "$at.log" "$bad"; then p=$((p + bad)); else f=$((f + bad)); fi
    fi
  done
  add e2e $p $f $s
  try_postponed
}
