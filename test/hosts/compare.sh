#!/usr/bin/env bash
# compare.sh - read by run.sh and real/run.sh: runs a program in an empty folder, and says in what two such runs differ
#
# The reader sets: $work (a folder of its own), and where it wants to, the arrays `around` (a command that makes a room for the program)
# and `within` (what sets the environment there, as env does). Neither they nor timeout run beside the library.
# What runs hundreds of times starts few processes: a shell's fork costs a millisecond of a core.
# shellcheck disable=SC2154
around=() within=(env)

once() { # folder for what is seen, preload, [VAR=value...] command...
  local at=$1 preload=$2
  shift 2
  for _ in 1 2 3; do
    rm -rf "$work/cwd"
    mkdir -m 777 "$at" "$work/cwd" 2>/dev/null # the first may be there
    (
      cd "$work/cwd" || exit 99
      exec "${around[@]}" timeout -k 5 "${LIMIT:-180}" "${within[@]}" LD_PRELOAD="$preload" "$@" >"$at/out" 2>"$at/err" </dev/null
    ) 2>/dev/null
    echo $? >"$at/status"
    grep -qa 'accel/tcg/.*assertion failed' "$at/err" || break # the emulator's own fault: once more
  done
  files_of "$work/cwd" >"$at/files"
}

files_of() { # folder: its files but those below kprof, with their sums
  local entry
  for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    [ -e "$entry" ] || [ -L "$entry" ] || continue # no such name
    [ "$entry" != "$1/kprof" ] || continue
    (cd "$1" && find . -path ./kprof -prune -o -type f -print | sort | while read -r f; do echo "$f $(cksum <"$f")"; done)
    return
  done
}

quiet() { [ ! -s "$1" ] || grep -av '^kprof:' "$1"; return 0; }

# Whether two files differ.
differ() { { [ -s "$1" ] || [ -s "$2" ]; } && ! cmp -s "$1" "$2"; }

# Says in $differences in what two runs differ; nothing when they are the same. A shell leaves NUL out of what a command says.
compare() { # folder of the first, folder of the second
  local status became first="" second=""
  differences=""
  read -r status <"$1/status"
  read -r became <"$2/status"
  [ "$status" = "$became" ] || differences+=" status $status became $became;"
  ! differ "$1/out" "$2/out" || differences+=" stdout;"
  [ ! -s "$1/err" ] || { first=$(quiet "$1/err"); } 2>/dev/null
  [ ! -s "$2/err" ] || { second=$(quiet "$2/err"); } 2>/dev/null
  [ "$first" = "$second" ] || differences+=" stderr;"
  ! differ "$1/files" "$2/files" || differences+=" files;"
}

show() { # folder of the first, folder of the second
  diff -a "$1/out" "$2/out" | head -n 8 | sed 's/^/#   out /'
  diff -a <(quiet "$1/err") <(quiet "$2/err") | head -n 8 | sed 's/^/#   err /'
  diff -a "$1/files" "$2/files" | head -n 8 | sed 's/^/#   files /'
}
