#!/usr/bin/env bash
# claims.sh - read by run.sh: starts the program alone and with us, and what is claimed of both
#
# A case sets `settings` (VARIABLE=value of our run) and `inside` (a command that makes a room for the program).
# shellcheck disable=SC2154,SC2034
settings=() inside=()
declare -A pid=()
is_shown=""

launch() { # alone or ours, command...
  local who=$1 preload=$empty vars=()
  shift
  if [ "$who" = ours ]; then preload=$lib vars=("${settings[@]}"); fi
  mkdir -p "$at/$who/cwd"
  (
    cd "$at/$who/cwd" || exit 99
    echo "$EPOCHREALTIME" >../began
    # shellcheck disable=SC2016
    timeout -s KILL "${LIMIT:-120}" "${inside[@]}" bash -c 'echo $$ >../pid; exec env "$@"' - \
      LD_PRELOAD="$preload" "${vars[@]}" "$@" >../out 2>../err </dev/null
    echo $? >../status
    echo "$EPOCHREALTIME" >../ended
  ) 2>/dev/null &
  pid[$who]=$!
}
# The words are those of steps.c.
steps() { # alone or ours, words...
  launch "$1" "$bin/steps" "$bin" ../side "${@:2}"
}
both() { steps alone "$@"; steps ours "$@"; }
# Waits until both came to the meeting, or one of them ended.
meeting() {
  local who
  for who in alone ours; do
    [ -n "${pid[$who]:-}" ] || continue
    for ((i = 0; i < 6000; i++)); do [ -e "$at/$who/side.at" ] || [ -e "$at/$who/status" ] && break; sleep 0.01; done
  done
}
go() { touch "$at"/{alone,ours}/side.go; }
ended() {
  wait "${pid[@]}"
  for who in alone ours; do [ ! -d "$at/$who" ] || files_of "$at/$who/cwd" >"$at/$who/files"; done
}

said() { # alone or ours, word: what the program measured; nothing where it did not come to its end
  [ -e "$at/$1/side.said" ] && sed -n "s/.*\b$2=\([^ ]*\).*/\1/p" "$at/$1/side.said"
}
us() { local t; t=$(<"$at/$1/$2"); echo "${t/./}"; } # alone or ours, began or ended

claim() { # what, what is wrong or nothing
  if [ -z "$2" ]; then echo "ok - $case $1"; return; fi
  echo "not ok - $case $1: $2"
  [ -z "$is_shown" ] || return
  is_shown=1
  grep -a '^kprof:' "$at/ours/err" 2>/dev/null | head -n 6 | sed 's/^/#   /'
}

claim_same() {
  local wrong n
  compare "$at/alone" "$at/ours"
  wrong=$differences
  n=$(grep -ac '^kprof:' "$at/ours/err")
  [ "$n" -le 9 ] || wrong+=" $n lines on stderr;"
  claim "the program is the same" "$wrong"
}
# The longest of what the program measured may be longer than alone by so many ms: a tenth of what a wait would take.
claim_short() { # what (step, save, fork, wait), ms, what is said of it
  local alone ours
  alone=$(said alone "$1_us") ours=$(said ours "$1_us")
  if [ -z "$ours" ] || [ -z "$alone" ]; then claim "$3" "not measured"; return; fi
  if [ $((ours - alone)) -le $(($2 * 1000)) ]; then claim "$3 (longest $1 alone $alone us, with us $ours us)" ""
  else claim "$3" "longest $1 alone $alone us, with us $ours us"; fi
}
claim_no_wait() { claim_short step "${1:-$((stand * 100))}" "no step waits"; }
# From the end of main to the end of the process, ms.
claim_exit() { # ms
  local end took
  end=$(said ours end_us)
  [ -n "$end" ] || { claim "exit is bounded" "the program did not come to its end"; return; }
  took=$((($(us ours ended) - end) / 1000))
  if [ "$took" -le "$1" ]; then claim "exit is bounded ($took ms)" ""; else claim "exit is bounded" "it took $took ms of $1"; fi
}
# A line tells the loss and its cause (a second may tell that there is no trace), and none another cause.
claim_told() { # pattern of the cause, [pattern of other causes]
  local n lines
  lines=$(grep -aE '^kprof: .*(dropped|kept|no trace|nothing is recorded|left free|stops)' "$at/ours/err" | grep -aE "$1")
  n=$(grep -c . <<<"$lines")
  if [ "$n" -lt 1 ] || [ "$n" -gt 2 ]; then claim "the loss is told" "$n lines of '$1'"
  elif [ -n "${2:-}" ] && grep -aqE "^kprof: .*($2)" "$at/ours/err"; then claim "the loss is told" "with another cause: $(grep -aE "^kprof: .*($2)" "$at/ours/err" | head -n 1)"
  else claim "the loss is told" ""; fi
}

# The closing line says so, or where there is no room for a trace, kprof recover.
claim_left_free() {
  if grep -aqE 'left free for the program' "$at/ours/err" "$at/recovered"; then claim "the loss is told" ""
  else claim "the loss is told" "no line says how much room the program keeps"; fi
}

# Records in lines such as "wrote TRACE (N steps by .., N ops, N dropped": of this process, then of kprof recover.
counted_in() { # word (ops, dropped), files
  cat "${@:2}" 2>/dev/null | grep -aE '^kprof: (wrote|kept) ' | grep -aoE "[0-9]+ $1" | awk '{ n += $1 } END { print n + 0 }'
}
# What a recording was left as: its traces go where there is room.
recover() { "$kprof" recover "$(folder)" -o "$at/recovered.traces" >"$at/recovered" 2>&1; }
# Each record that the program made is in the trace, or counted as dropped. $recorded, $dropped say how many.
claim_counted() { # [also at most so many dropped, [a file of what kprof recover said]]
  local made
  made=$(said ours made)
  recover
  recorded=$(counted_in ops "$at/ours/err" "$at/recovered" "${@:2}") dropped=$(counted_in dropped "$at/ours/err" "$at/recovered" "${@:2}")
  if [ $((recorded + dropped)) != "${made:-0}" ]; then
    claim "each record is there or counted" "made ${made:-?}, recorded $recorded, dropped $dropped; $(tail -n 1 "$at/recovered")"
  elif [ -n "${1:-}" ] && [ "$dropped" -gt "$1" ]; then claim "records are kept" "dropped $dropped of $made"
  else claim "each record is there or counted ($recorded recorded, $dropped dropped)" ""; fi
}
folder() { printf '%s\n' "${settings[@]}" | sed -n 's/^KPROF_DIR=//p'; }

# How often a name is in the traces.
in_traces() { # name
  local f n=0
  for f in "$(folder)"/*.pt.trace.json.gz "$at"/recovered.traces/*.pt.trace.json.gz; do
    [ -e "$f" ] && n=$((n + $(zcat "$f" | grep -ac "\"$1\"")))
  done
  echo "$n"
}
claim_goes_on() { # at least this many of 100
  local there thawed
  there=$(in_traces aten::after_thaw) thawed=$(said ours thawed)
  if [ "${thawed:-0}" -gt 0 ] && [ $((there * 100)) -ge $((thawed * $1)) ]; then claim "recording goes on after the thaw ($there of $thawed ops)" ""
  else claim "recording goes on after the thaw" "$there of ${thawed:-no} ops after it are in the traces"; fi
}
# Memory outlives a process, so what it kept there must go with its recording, at the latest when that is recovered.
claim_left_nothing() {
  local one left=()
  [ -e "$at/ours/pid" ] && cat "$at/ours/pid" >>"$at/pids"
  [ -e "$at/pids" ] || return
  recover
  while read -r one; do left+=(/dev/shm/kprof.*/*_"$one".*); done <"$at/pids"
  for one in "${!left[@]}"; do [ "${left[one]}" -nt "$at/begun" ] || unset "left[one]"; done # numbers of processes come again
  claim "nothing of it stays in /dev/shm" "${left[*]}"
  rm -f "${left[@]}"
}
