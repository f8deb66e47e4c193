#!/usr/bin/env bash
# check-format.sh - every C file is as clang-format 14 makes it (.clang-format); other versions break lines elsewhere
#
# usage: check-format.sh [FILES]    (default: every tracked C source and header). `make format FILES=..` mends.
set -uo pipefail
formatter=
for name in clang-format-14 clang-format; do
  "$name" --version 2>/dev/null | grep -q 'version 14\.' && { formatter=$name; break; }
done
if [ -z "$formatter" ]; then
  echo "check-format: there is no clang-format 14 here, the form of the C files was not looked at"
  exit 0
fi
if [ $# = 0 ]; then mapfile -t files < <(git ls-files '*.c' '*.h' '*.cc'); else files=("$@"); fi
if ! "$formatter" -n -Werror "${files[@]}"; then
  echo "check-format: run: make format FILES=\"..\" for the files named above" >&2
  exit 1
fi
# kp_fmt and kp_log copy a conversion that collector/base/text/fmt.c does not know, where the compiler sees no fault.
mapfile -t product < <(printf '%s\n' "${files[@]}" | grep -E '^(preload|collector|schedule|export)/.*\.[ch]$')
[ ${#product[@]} = 0 ] || awk -v RS=';' '
  match($0, /(kp_fmt|kp_log|KP_LOG_ONCE)\(/) {
    text = substr($0, RSTART)
    gsub(/%%|%(0[1-9])?(z|ll?)?[duxscp]|%\.\*s|%" *PRI/, "", text)
    for (; match(text, /"[^"]*"/); text = substr(text, RSTART + RLENGTH))
      if (index(substr(text, RSTART, RLENGTH), "%")) { print FILENAME ": fmt.c has no such conversion: " substr(text, RSTART, RLENGTH); bad = 1 }
  }
  END { exit bad }' "${product[@]}" || exit 1
