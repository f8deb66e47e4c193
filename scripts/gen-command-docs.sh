#!/usr/bin/env bash
# gen-command-docs.sh - writes docs/reference/commands from the rows that `kprof help` prints, a page a command
#
# usage: scripts/gen-command-docs.sh [--check]      (--check: exit 1 when a page is not what the rows make)
set -euo pipefail
cd "$(dirname "$0")/.."
kprof=${KPROF_COMMAND:-build/kprof}
[ -x "$kprof" ] || { echo "gen-command-docs: $kprof is missing: run make" >&2; exit 2; }
folder=docs/reference/commands
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

{
  cat <<'TEXT'
# Commands

Made by `scripts/gen-command-docs.sh` from the rows that `kprof help` prints: change those, not these pages. The man
page kprof(1) has each command at length.

| command | what it does |
|---|---|
TEXT
  sed -n 's/^KP_COMMAND(\([a-z]*\),.*/\1/p' export/cli/commands.def | while read -r name; do
    "$kprof" help --markdown "$name" >"$made/$name.md"
    summary=$(sed -n "3s/^\`kprof $name\` //p" "$made/$name.md")
    echo "| [kprof $name]($name.md) | ${summary//|/\\|} |"
  done
} >"$made/README.md"

if [ "${1:-}" = --check ]; then
  diff -r "$made" "$folder" >/dev/null || { echo "gen-command-docs: $folder is not what the rows of help make: run scripts/gen-command-docs.sh" >&2; exit 1; }
  exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
cp "$made"/*.md "$folder/"
