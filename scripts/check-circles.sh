#!/usr/bin/env bash
# check-circles.sh - no circle of files that call each other, and none of folders, but those listed here
#
# usage: check-circles.sh OBJECT...    (of the product: the objects of libkprof.so and of kprof)
#        check-circles.sh --self-test  draws small circles and demands to be told of each
# An object depends on those that define what it leaves undefined (nm). What goes through a registered pointer is no call.
set -euo pipefail

# FILES: REASON. A circle must lie within one line. A line without a circle is an error as well, so the list only shrinks.
allowed() {
  cat <<'LIST'
preload/calltrace/calls preload/calltrace/slow preload/calltrace/stubs_x86_64 preload/calltrace/stubtable: a stub calls C that patches stubs
LIST
}

# stdin: "A B", A calls B -> the strongly connected sets of two or more, one a line, sorted (Tarjan, without recursion)
circles() {
  LC_ALL=C awk '
    !($1 in id) { id[$1] = ++n; name[n] = $1 }
    !($2 in id) { id[$2] = ++n; name[n] = $2 }
    $1 != $2 && !(($1, $2) in seen) { seen[$1, $2]; to[id[$1], ++out[id[$1]]] = id[$2] }
    function enter(v) { low[v] = order[v] = ++count; stack[++height] = v; on[v] = 1; call[++depth] = v; at[v] = 0 }
    function leave(v, w, text, size) {
      depth--
      if (depth && low[v] < low[call[depth]]) low[call[depth]] = low[v]
      if (low[v] != order[v]) return
      do { w = stack[height--]; on[w] = 0; text = text " " name[w]; size++ } while (w != v)
      if (size > 1) print substr(text, 2)
    }
    function step(v, w) {
      if (at[v] == out[v]) { leave(v); return }
      w = to[v, ++at[v]]
      if (!order[w]) enter(w)
      else if (on[w] && order[w] < low[v]) low[v] = order[w]
    }
    END { for (i = 1; i <= n; i++) if (!order[i]) for (enter(i); depth;) step(call[depth]) }
  ' | while read -r -a files; do printf '%s\n' "${files[@]}" | LC_ALL=C sort | paste -sd ' '; done | LC_ALL=C sort
}

# objects -> "A B NAME": A calls B by NAME; a file is its path from the root, without an ending
calls() {
  nm -A "$@" | LC_ALL=C awk '
    { colon = index($0, ":"); file = substr($0, 1, colon - 1); sub(/\.o$/, "", file)
      if (!match(file, /(^|\/)(collector|schedule|export|preload)\//)) next
      file = substr(file, RSTART); sub(/^\//, "", file)
      kind = $(NF - 1); what = $NF }
    kind == "U" { used[++n] = file; name[n] = what; next }
    kind ~ /^[TDBRCVWGS]$/ { owner[what] = owner[what] " " file }
    END { for (i = 1; i <= n; i++) { k = split(owner[name[i]], of, " ")
            for (j = 1; j <= k; j++) if (of[j] != used[i]) print used[i], of[j], name[i] } }'
}

# "a b c" within one of the allowed lines?
is_allowed() {
  local line rest file
  while IFS= read -r line; do
    rest=" ${line%%:*} "
    for file in $1; do [[ $rest == *" $file "* ]] || continue 2; done
    return 0
  done < <(allowed)
  return 1
}

check() { # file of "A B NAME"
  local bad=0 circle folder
  while read -r circle; do
    is_allowed "$circle" && { echo "$circle" >>"$work/met"; continue; }
    echo "check-circles: these files call each other: $circle"
    awk -v circle=" $circle " 'index(circle, " " $1 " ") && index(circle, " " $2 " ") && !($0 in seen) { seen[$0]; text[$1 " -> " $2] = text[$1 " -> " $2] " " $3 }
                               END { for (e in text) print "    " e ":" substr(text[e], 1, 120) }' "$1" | LC_ALL=C sort
    bad=1
  done < <(cut -d ' ' -f 1,2 "$1" | circles)
  while read -r folder; do
    is_allowed "$folder" && { echo "$folder" >>"$work/met"; continue; }
    echo "check-circles: these folders call each other: $folder"
    bad=1
  done < <(awk '{ sub(/\/[^\/]*$/, "", $1); sub(/\/[^\/]*$/, "", $2); if ($1 != $2) print $1, $2 }' "$1" | LC_ALL=C sort -u | circles)
  return $bad
}

# A line of the list, all of whose files were built, and of which no circle is left.
stale() {
  local line file bad=0
  while IFS= read -r line; do
    for file in ${line%%:*}; do grep -qE "(^| )$file(/[^/ ]*)? " "$work/calls" || continue 2; done
    while read -r file; do [[ " ${line%%:*} " == *" ${file%% *} "* ]] && continue 2; done <"$work/met"
    echo "check-circles: no circle any more, take it off the list: ${line%%:*}"
    bad=1
  done < <(allowed)
  return $bad
}

self_test() {
  local failed=0 text want
  while IFS='|' read -r text want; do
    printf '%b' "$text" >"$work/calls"
    if [ "$(check "$work/calls" | grep -c '^check-circles:')" != "$want" ]; then echo "check-circles: not seen: $text"; failed=1; fi
  done <<'CASES'
a/x b/y f\nb/y c/z g\n|0
a/x a/y f\na/y a/x g\n|1
a/x a/y f\na/y a/z g\na/z a/x h\nb/p b/q i\nb/q b/p j\n|2
a/x b/y f\nb/z a/w g\n|1
preload/calltrace/calls preload/calltrace/slow f\npreload/calltrace/slow preload/calltrace/calls g\n|0
CASES
  [ $failed = 0 ] && echo "check-circles: every circle was seen"
  return $failed
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/met"
if [ "${1:-}" = --self-test ]; then self_test; exit; fi
[ $# -gt 50 ] || { echo "check-circles: $# objects are not the product" >&2; exit 1; }
calls "$@" >"$work/calls"
bad=0
check "$work/calls" || bad=1
stale || bad=1
exit $bad
