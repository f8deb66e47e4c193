#!/usr/bin/env bash
# check-safety.sh - every test that docs/explain/safety.md's tables of pains name is there
#
# usage: check-safety.sh [--self-test]
# A test is named as `KIND:NAME`: hosts (test/hosts/run.sh), disks (a case of test/hosts/disks/cases.sh), gpu (test/gpu/hosts/run.sh), faults
# (a host of test/hosts/faults.py), unit (FILE:NAME, or a FILE), e2e (a function test_NAME, or a FILE.py), make (a target). Each row of these tables must name one, or say "none:" and why.
set -uo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
page=${SAFETY_PAGE:-$root/docs/explain/safety.md}

# The names a script of hosts gives its tests, as patterns: what a loop fills in is any text.
patterns() { # script, words that come before a name
  grep -oE "(^|[ ;|&(])($2) \"?[A-Za-z0-9_\$\{\}/:+ .-]*" "$1" | sed -E "s/^[ ;|&(]*($2) \"?//; s/\\\$\{[^}]*\}/.+/g; s/\\\$[A-Za-z_]+/.+/g; s/[ \"].*//" | grep -E '[a-z]{3}' | sort -u
}
hosts=$(patterns "$root/test/hosts/run.sh" 'same|records|skip|pass'; grep -oE 'name=[a-z_${}]+' "$root/test/hosts/run.sh" | sed -E 's/name=//; s/\$\{[^}]*\}/.+/g; s/\$[a-z]+/.+/g')
gpu=$(patterns "$root/test/gpu/hosts/run.sh" 'gpu')

declare -A there=() # what was looked up, as "KIND:NAME": the self-test reads the same page eight times
is_there() { # kind, name
  [ -n "${there[$1:$2]:-}" ] || { look_for "$1" "$2"; there[$1:$2]=$?; }
  return "${there[$1:$2]}"
}
look_for() { # kind, name
  case $1 in
    hosts) while read -r p; do [[ $2 =~ ^$p$ ]] && return 0; done <<<"$hosts"; return 1 ;;
    gpu) while read -r p; do [[ $2 =~ ^$p$ ]] && return 0; done <<<"$gpu"; return 1 ;;
    disks) grep -qE "^case_$2\(\)" "$root/test/hosts/disks/cases.sh" ;;
    faults) grep -qE "^        \"$2\": " "$root/test/hosts/faults.py" ;;
    unit)
      local file=${2%%:*} test=${2#*:} path
      path=$(find "$root/test/unit" "$root/test/fuzz" -name "$file.c")
      [ -n "$path" ] || return 1
      [ "$file" = "$test" ] || grep -q "\b$test\b" "$path" ;;
    e2e)
      case $2 in
        *.py) [ -n "$(find "$root/test/e2e" -name "$2")" ] ;;
        *) grep -rqE "^def test_$2\(" "$root/test/e2e" --include='*.py' ;;
      esac ;;
    make) grep -rqE "^$2:" "$root/Makefile" "$root/test" "$root/scripts" --include=Makefile --include='*.mk' ;;
    *) return 1 ;;
  esac
}

check() { # page
  local bad=0 rows=0 row names
  while IFS= read -r row; do
    rows=$((rows + 1))
    names=$(grep -oE '`(hosts|disks|gpu|faults|unit|e2e|make):[^`]+`' <<<"$row" | tr -d '`')
    if [ -z "$names" ] && [[ $row != *"none: "* ]]; then echo "check-safety: no test in: $row"; bad=1; fi
    while IFS=: read -r kind name; do
      [ -z "$kind" ] || is_there "$kind" "$name" || { echo "check-safety: there is no $kind test $name"; bad=1; }
    done <<<"$names"
  done < <(grep -E '^\| (B|D)[0-9]+ ' "$1")
  [ "$rows" -ge 48 ] || { echo "check-safety: $rows rows of pains, of 26 and 22"; bad=1; }
  return $bad
}

if [ "${1:-}" = --self-test ]; then
  made=$(mktemp)
  trap 'rm -f "$made"' EXIT
  check "$page" || exit 1
  for wrong in 'hosts:no_such_host' 'unit:test_io:no_such_test' 'e2e:no_such_thing' 'gpu:nothing_at_all' 'make:no-such-target' 'faults:nobody' 'disks:no_such_case'; do
    { cat "$page"; echo "| B99 | x | \`$wrong\` |"; } >"$made"
    check "$made" >/dev/null && { echo "check-safety: $wrong was not seen to be missing"; exit 1; }
  done
  { cat "$page"; echo '| B99 | a row without a test | |'; } >"$made"
  check "$made" >/dev/null && { echo "check-safety: a row without a test was not seen"; exit 1; }
  exit 0
fi
check "$page"
