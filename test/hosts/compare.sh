#!/usr/bin/env bash
# compare.sh - read by run.sh and real/run.sh: runs a program in an empty folder, and says in what two such runs differ
#
# The reader sets: $work (a folder of its own), and where it wants to, the array `around` (a command that makes a room for the program).
# shellcheck disable=SC2154
around=()

once() { # folder for what is seen, preload, command...
  local at=$1 preload=$2
  shift 2
  mkdir -p "$at"
  rm -rf "$work/cwd"
  mkdir -m 777 "$work/cwd"
  (
    cd "$work/cwd" || exit 99
    exec "${around[@]}" env LD_PRELOAD="$preload" timeout -k 5 "${LIMIT:-180}" "$@" >"$at/out" 2>"$at/err" </dev/null
  ) 2>/dev/null
  echo $? >"$at/status"
  (cd "$work/cwd" && find . -path ./kprof -prune -o -type f -print | sort | while read -r f; do echo "$f $(cksum <"$f")"; done) >"$at/files"
}

quiet() { grep -av '^kprof:' "$1"; return 0; }

# Prints in what two runs differ; nothing when they are the same.
differences() { # folder of the first, folder of the second
  cmp -s "$1/status" "$2/status" || printf ' status %s became %s;' "$(cat "$1/status")" "$(cat "$2/status")"
  cmp -s "$1/out" "$2/out" || printf ' stdout;'
  [ "$(quiet "$1/err" | tr -d '\0')" = "$(quiet "$2/err" | tr -d '\0')" ] || printf ' stderr;'
  cmp -s "$1/files" "$2/files" || printf ' files;'
}

show() { # folder of the first, folder of the second
  diff -a "$1/out" "$2/out" | head -n 8 | sed 's/^/#   out /'
  diff -a <(quiet "$1/err") <(quiet "$2/err") | head -n 8 | sed 's/^/#   err /'
  diff -a "$1/files" "$2/files" | head -n 8 | sed 's/^/#   files /'
}
