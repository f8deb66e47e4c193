#!/usr/bin/env bash
# check-headers.sh - compiles each header alone; the public one also as C99 and as C++
#
# usage: check-headers.sh [COMPILER]
set -uo pipefail
cc=${1:-cc} bad=0
flags=(-D_GNU_SOURCE -I. -DKP_VERSION='"0"' -Wall -Wextra -fsyntax-only -Wno-pragma-once-outside-header)
for h in $(git ls-files 'collector/*.h' 'schedule/*.h' 'export/*.h' 'preload/*.h'); do
  printf '#include "%s"\n' "$h" | "$cc" -std=gnu11 "${flags[@]}" -Wno-unused-function -x c - || { echo "check-headers: $h does not stand alone"; bad=1; }
done
public=preload/kprof.h
if [ -f $public ]; then
  printf '#include "%s"\n' $public | "$cc" -std=c99 -pedantic-errors -I. -Wall -Wextra -fsyntax-only -x c - || { echo "check-headers: $public is not C99"; bad=1; }
  printf '#include "%s"\n' $public | "$cc" -std=c++11 -pedantic-errors -I. -Wall -Wextra -fsyntax-only -x c++ - || { echo "check-headers: $public is not C++"; bad=1; }
  grep -n '#include "' $public && { echo "check-headers: $public includes a file of the project"; bad=1; }
fi
exit $bad
