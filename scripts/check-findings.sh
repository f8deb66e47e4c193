#!/usr/bin/env bash
# check-findings.sh - docs/reference/findings.md has a heading for each id of a finding in the sources, and no other
#
# usage: check-findings.sh [--self-test]
# An id is words joined by dashes in the rooms that give advice, or one of the four that are one word.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
page=${FINDINGS_PAGE:-$root/docs/reference/findings.md}
sources=("$root/export/answers/advise" "$root/export/answers/runadvice")

ids() { grep -rhoE '"([a-z0-9]+(-[a-z0-9]+)+|recompilation|dependency|float64)"' "${sources[@]}" | tr -d '"' | sort -u; }

check() {
  local wrong
  wrong=$(diff <(ids) <(sed -n 's/^### //p' "$page" | sort) | sed -n 's/^< /no heading: /p; s/^> /no such finding: /p')
  [ -z "$wrong" ] || { echo "$page: $wrong"; return 1; }
}

self_test() {
  local made
  made=$(mktemp)
  # shellcheck disable=SC2064
  trap "rm -f '$made'" EXIT
  sed 's/^### slow-steps$/### slow-stairs/' "$page" >"$made"
  FINDINGS_PAGE=$made "$0" >/dev/null && { echo "check-findings: a wrong heading was not seen"; return 1; }
  return 0
}

if [ "${1:-}" = --self-test ]; then self_test; else check; fi
