#!/usr/bin/env bash
# check-names.sh - each file, struct and non-static function of the product has a name of its own
#
# usage: check-names.sh [ROOT]        checks the tree at ROOT (default: here)
#        check-names.sh --self-test   adds a pair of each kind to a copy and demands to be told of it
set -euo pipefail

# KIND NAME: REASON. A line whose name is there once is an error as well, so the list only shrinks.
allowed() {
  cat <<'LIST'
file files.mk: each room has one
function kp_debugfile_can: debugfile_none.c is built where libdw is missing
function kp_debugfile_close: debugfile_none.c is built where libdw is missing
function kp_debugfile_find: debugfile_none.c is built where libdw is missing
function kp_debugfile_open: debugfile_none.c is built where libdw is missing
function kp_sqlite_close: sqlitefile_none.c is built where SQLite is missing
function kp_sqlite_event: sqlitefile_none.c is built where SQLite is missing
function kp_sqlite_head: sqlitefile_none.c is built where SQLite is missing
function kp_sqlite_name: sqlitefile_none.c is built where SQLite is missing
function kp_sqlite_open: sqlitefile_none.c is built where SQLite is missing
function kp_view_run: viewscreen_none.c is built where ncurses is missing
function kp_plainname: plainname_none.c is built where libiberty is missing
function kp_plainname_can: plainname_none.c is built where libiberty is missing
function kp_plainname_cpp: plainname_none.c is built where libiberty is missing
LIST
}

# root -> "KIND NAME FILE" for all that is named in it. The C is formed by clang-format, so what is defined begins a line.
named() {
  local file
  cd "$1"
  find collector schedule export preload -type f | while read -r file; do echo "file ${file##*/} $file"; done
  # shellcheck disable=SC2016
  find collector schedule export preload -type f -name '*.[ch]' -print0 | LC_ALL=C xargs -0 awk '
    match($0, /^(static )?(const )?struct [a-z0-9_]+ \{/) {
      text = $0; sub(/ \{.*/, "", text); sub(/.*struct /, "", text); print "struct", text, FILENAME
    }
    FILENAME ~ /\.c$/ && /^[a-z]/ && !/^(static|extern|typedef)/ && !/;$/ && match($0, /kp(rof)?_[a-z0-9_]+\(/) {
      print "function", substr($0, RSTART, RLENGTH - 1), FILENAME
    }' | sort -u
}

check() { # root
  local bad=0 pairs kind name files
  pairs=$(named "$1" | LC_ALL=C sort | awk '{ n[$1 " " $2]++; of[$1 " " $2] = of[$1 " " $2] " " $3 } END { for (i in n) if (n[i] > 1) print i of[i] }' | LC_ALL=C sort)
  while read -r kind name files; do
    [ -n "$name" ] || continue
    if allowed | grep -q "^$kind $name:"; then continue; fi
    echo "check-names: one $kind name, $name, in: $files"
    bad=1
  done <<<"$pairs"
  while read -r kind name; do
    grep -q "^$kind ${name%%:*} " <<<"$pairs" || { echo "check-names: there once, take it off the list: $kind ${name%%:*}"; bad=1; }
  done < <(allowed)
  return $bad
}

self_test() {
  local copy failed=0 name
  copy=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$copy'" EXIT
  cp -r collector schedule export preload "$copy/"
  echo 'struct kp_kineto {' >"$copy/collector/base/breach_a.h"
  printf 'static const struct op_breach {\n};\nint kp_kineto_read(void)\n{\n}\n' >"$copy/collector/base/breach_b.c"
  echo 'struct op_breach {' >"$copy/preload/run/breach_c.c"
  echo 'struct breach' >"$copy/schedule/json.c"
  check "$copy" >"$copy/told" || true
  for name in 'file name, json.c,' 'struct name, kp_kineto,' 'struct name, op_breach,' 'function name, kp_kineto_read,'; do
    grep -qF "one $name" "$copy/told" || { echo "check-names: not seen: $name"; failed=1; }
  done
  [ $failed = 0 ] && echo "check-names: every pair was seen"
  return $failed
}

case ${1:-} in
  --self-test) self_test ;;
  *) check "${1:-.}" ;;
esac
