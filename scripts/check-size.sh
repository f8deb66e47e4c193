#!/usr/bin/env bash
# check-size.sh - form of every file: length of files, functions and lines, heads, tabs, blanks at line ends
#
# usage: check-size.sh [FILES]    (default: every tracked C source, header and script)
# Ceilings: .c 700 lines, .h 250, a function 70 lines (aim at 40), a line 120 columns, a folder of the product 30 files.
# Tables of tests (.def) are freer.
set -uo pipefail
if [ $# = 0 ]; then mapfile -t files < <(git ls-files '*.c' '*.h' '*.S' '*.def' '*.sh' 'scripts/*'); else files=("$@"); fi
if [ $# = 0 ]; then
  git ls-files preload collector schedule export | sed 's|/[^/]*$||' | sort | uniq -c |
    awk '$1 > 30 { print $2 ": has " $1 " files"; bad = 1 } END { exit bad }' || exit 1
fi
for f in "${files[@]}"; do [ -f "$f" ] && present+=("$f"); done
awk '
  function say(text) { print FILENAME ":" FNR ": " text; bad = 1 }
  FNR == 1 { depth = 0; start = 0; c = FILENAME ~ /\.[chS]$/; ceiling = FILENAME ~ /\.h$/ ? 250 : 700
             if (FILENAME ~ /\.[ch]$/ && $0 !~ "^(//|/[*]) SPDX-License-Identifier: Apache-2[.]0") say("does not begin with the licence line") }
  FNR == 2 && FILENAME ~ /\.[ch]$/ && $0 !~ /^(\/\*| \*)/ { say("has no head comment that says what it does") }
  FNR == ceiling + 1 && FILENAME !~ /\.def$/ && FILENAME !~ /^test\// { say("is longer than " ceiling " lines") }
  length($0) > 120 && (FILENAME ~ /\.[chS]$/ || (FILENAME ~ /\.def$/ && FILENAME !~ /^test\//)) { say("is " length($0) " columns wide") }
  /\t/ && c { say("has a tab") }
  /[ \t]$/ { say("ends in a blank") }
  # a function: from a line that opens a brace in column 1 (or ends the signature) to the brace that closes there
  c && /^\{/ { start = FNR }
  c && /^}/ { if (start && FNR - start - 1 > 70) say("a function of " FNR - start - 1 " lines"); start = 0 }
  END { exit bad }
' "${present[@]}"
