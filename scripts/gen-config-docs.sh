#!/usr/bin/env bash
# gen-config-docs.sh - writes docs/reference/settings.md and the settings of docs/libkprof.7.scd from config.def, through `kprof config`
#
# usage: scripts/gen-config-docs.sh [--check]      (--check: exit 1 when a file is not what config.def makes)
set -euo pipefail
cd "$(dirname "$0")/.."
kprof=${KPROF_COMMAND:-build/kprof}
[ -x "$kprof" ] || { echo "gen-config-docs: $kprof is missing: run make" >&2; exit 2; }
page=docs/reference/settings.md manual=docs/libkprof.7.scd
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

{
  cat <<'TEXT'
# Configuration

Made by `scripts/gen-config-docs.sh` from `collector/base/config.def`: change that file, not this one.

Every setting is an environment variable, and a flag of `kprof run`. `kprof config` shows each value and where it came
from. A bad value never stops the program: one line on stderr names the variable, the value and what is used instead.
`kprof run` refuses such a value before the program starts, as it refuses a flag's, and tells of unknown names.
An empty value is the same as none. A set-user-id program reads none of them. The spool holds the values in force.

TEXT
  "$kprof" config --markdown
} >"$made/page"

awk -v "rows=$("$kprof" config --scdoc | sed 's/\\/\\\\/g')" '
  /^; settings begin/ { print; print ""; print rows; print ""; skip = 1; next }
  /^; settings end/ { skip = 0 }
  !skip' "$manual" >"$made/manual"

if [ "${1:-}" = --check ]; then
  for f in page manual; do
    if [ $f = page ]; then file=$page; else file=$manual; fi
    cmp -s "$made/$f" "$file" || { echo "gen-config-docs: $file is not what config.def makes: run scripts/gen-config-docs.sh" >&2; exit 1; }
  done
  exit 0
fi
cp "$made/page" "$page"
cp "$made/manual" "$manual"
