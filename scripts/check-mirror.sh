#!/usr/bin/env bash
# check-mirror.sh - each unit test lies in its room's folder and is named for a file of that room
#
# usage: check-mirror.sh [ROOT]        checks the tree at ROOT (default: here)
#        check-mirror.sh --self-test   adds a breach of each kind to a copy and demands to be told of it
# test/unit/ROOM/test_NAME.c needs NAME.c, NAME.h, kp_NAME.h or cmd_NAME.c in the room. A list that names a unit test
# (skips of another processor, those that begin first) names one that is there.
set -euo pipefail

# ROOM/NAME: REASON. A line whose test mirrors a file, or is gone, is an error as well, so the list only shrinks.
allowed() {
  cat <<'LIST'
cli/budget: a command that reads under a limit, which needs the command
cli/crafted: every command on traces made to be slow
cli/memview: the memory room and the command's view of it, which needs the command
cli/plain: what every command prints, which needs the commands
cuda_hooks/library: hook/library.c, and what this room asks of it
heapview/heapprofile: folder/heapprofile.c, and what this room makes of it
hook/guard: preload/guard.h, below every room of preload
parse/kineto: the room: a trace as text, and what is read out of it
read/damaged: file.c and reader.c on spools that are torn or damaged
read/named_calls: records of one kind through reader.c and events.c
record/crash: the room as a whole in a process that is killed
stepkinds/promptpieces: promptsteps.c, of a trace that is read in pieces
trace/collectives: the room export/write/gpu through a whole trace
trace/files: the room, by the files that stay
trace/gpu_trace: the room export/write/gpu through a whole trace
LIST
}

# The folders of a room's files.
folder_of() { # root, room
  case $2 in
    schedule) echo "$1/schedule" "$1/schedule/job" ;;
    *) for at in "$1"/collector/"$2" "$1"/export/"$2" "$1"/export/*/"$2" "$1"/export/answers/advise/"$2" "$1"/preload/"$2"; do [ ! -d "$at" ] || find "$at" -type d; done ;;
  esac
}

# ROOM/test_NAME[:TEST] of each list, a line each.
listed() { # root
  sed -nE 's/^([a-z0-9_]+\/test_[^ ]+) .*/\1/p' "$1"/test/arm64/skips*.txt
  sed -nE "s/^cmocka_long='\/\((.*)\)\\$'\$/\1/p" "$1/test/support/stages.sh" | tr '|' '\n'
}

check_lists() { # root
  local bad=0 name test
  while read -r name; do
    test=${name#*:} name=${name%%:*}
    [ -e "$1/test/unit/$name.c" ] || { echo "check-mirror: a list names a test that is not there: $name"; bad=1; continue; }
    [[ $test == */* || $test == '*' ]] || grep -q "cmocka_unit_test[a-z_]*(${test}[,)]" "$1/test/unit/$name.c" ||
      { echo "check-mirror: a list names a test that is not there: $name:$test"; bad=1; }
  done < <(listed "$1")
  return $bad
}

check() { # root
  local bad=0 test room name at odd=" "
  for test in "$1"/test/unit/*/test_*.c; do
    room=$(basename "$(dirname "$test")") name=$(basename "$test" .c) name=${name#test_}
    case $room in doubles | simgpu) continue ;; esac # they test the doubles
    at=$(folder_of "$1" "$room")
    [ -n "$at" ] || { echo "check-mirror: no room is called $room: test/unit/$room/test_$name.c"; bad=1; continue; }
    for file in "$name.c" "$name.h" "kp_$name.h" "cmd_$name.c"; do
      for folder in $at; do [ ! -e "$folder/$file" ] || continue 3; done
    done
    odd+="$room/$name "
    allowed | grep -q "^$room/$name:" || { echo "check-mirror: no file $name in the room: test/unit/$room/test_$name.c"; bad=1; }
  done
  while read -r name; do
    [[ $odd == *" ${name%%:*} "* ]] || { echo "check-mirror: take it off the list: ${name%%:*}"; bad=1; }
  done < <(allowed)
  check_lists "$1" || bad=1
  return $bad
}

self_test() {
  local copy failed=0 told
  copy=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$copy'" EXIT
  cp -r --parents collector schedule export preload test/unit test/arm64 test/support "$copy/"
  mkdir "$copy/test/unit/breach"
  : >"$copy/test/unit/breach/test_log.c"
  : >"$copy/test/unit/base/test_breach.c"
  rm "$copy/test/unit/record/test_crash.c"
  echo 'base/test_io:breach it is not there' >>"$copy/test/arm64/skips.txt"
  sed -i 's/^cmocka_long=.*schedule/&\/test_breach|schedule/' "$copy/test/support/stages.sh"
  check "$copy" >"$copy/told" || true
  for told in 'no room is called breach:' 'no file breach in the room: test/unit/base' 'take it off the list: record/crash' \
    'not there: base/test_io:breach' 'not there: schedule/test_breach'; do
    grep -qF "$told" "$copy/told" || { echo "check-mirror: not seen: $told"; failed=1; }
  done
  [ $failed = 0 ] && echo "check-mirror: every breach was seen"
  return $failed
}

case ${1:-} in
  --self-test) self_test ;;
  *) check "${1:-.}" ;;
esac
