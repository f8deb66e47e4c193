#!/usr/bin/env bash
# check-layers.sh - who may include whom (docs/architecture.md), and that other rooms come in by the door
#
# usage: check-layers.sh [ROOT]        checks the tree at ROOT (default: here)
#        check-layers.sh --self-test   breaks each rule in a copy and demands to be told of each
# Prints FILE:LINE: what is wrong, and exits 1, when a rule is broken.
set -uo pipefail

room_of() { # path -> room; a subshell for each include would take most of the time
  case $1 in
    collector/base/*) room=base ;; collector/format/*) room=format ;;
    collector/record/*) room=record ;; collector/read/*) room="read" ;;
    schedule/*) room=schedule ;;
    export/report/memory/*) room=memory ;;
    export/*/*) d=${1#export/}; room="${d%%/*}" ;; # trace gpu heap names out report cli
    export/*) room="export" ;;
    preload/hook/*) room=hook ;;
    preload/unwind/*) room=unwind ;;
    preload/run/*) room=run ;;
    preload/*/*) d=${1#preload/}; room="preload_${d%%/*}" ;;
    preload/*) room=preload ;; *) room=other ;;
  esac
}

may_see() { # room -> rooms, those it may include besides itself
  rooms=
  case $1 in
    base) ;;
    format) rooms="base" ;;
    record|read) rooms="format base" ;;
    schedule) rooms="base" ;;
    export) rooms="read format base" ;;
    out) rooms="export read format base" ;;
    names) rooms="out export read format base" ;;
    heap|gpu) rooms="names out export read format base" ;;
    report) rooms="base" ;;
    memory) rooms="report base" ;;
    trace) rooms="gpu heap names out export read format base" ;;
    advise) rooms="report base" ;;
    diff) rooms="advise report base" ;;
    page) rooms="advise memory report base" ;;
    convert) rooms="report base" ;;
    view) rooms="advise memory report base" ;;
    cli) rooms="view page convert diff advise memory report names export schedule read format base" ;;
    hook) rooms="preload record format base" ;; # of preload only guard.h and run.h
    unwind) rooms="record format base" ;;
    preload_*) rooms="preload hook unwind record schedule format base" ;;
    preload) rooms="record format base" ;;
    run) rooms="preload hook unwind record schedule export read format base" ;; # boot.c and its files wire everything
  esac
}

# The headers by which a room may be entered from elsewhere; base, format, names, out and report are open.
is_door() { # room, header
  case $1 in
    base|format|names|out|report) return 0 ;;
    record) [ "$2" = collector/record/kp_record.h ] ;;
    read) [ "$2" = collector/read/kp_read.h ] ;;
    schedule) [[ $2 == schedule/kp_schedule.h || $2 == schedule/ctl_proto.h || $2 == schedule/job.h ]] ;;
    export) [ "$2" = export/kp_export.h ] ;;
    gpu) [[ $2 == export/gpu/gpu.h || $2 == export/gpu/collectives.h ]] ;;
    heap) [ "$2" = export/heap/allocations.h ] ;;
    advise) [ "$2" = export/advise/advise.h ] ;;
    convert) [ "$2" = export/convert/convert.h ] ;;
    diff) [ "$2" = export/diff/diff.h ] ;;
    page) [ "$2" = export/page/page.h ] ;;
    view) [ "$2" = export/view/view.h ] ;;
    memory) [ "$2" = export/report/memory/memblocks.h ] ;;
    hook) [[ $2 == preload/hook/hook.h || $2 == preload/hook/getenv.h ]] ;;
    unwind) [ "$2" = preload/unwind/kp_unwind.h ] ;;
    preload) [[ $2 == preload/guard.h || $2 == preload/source.h || $2 == preload/run.h || $2 == preload/python_bridge.h || $2 == preload/kprof.h ]] ;;
    *) return 1 ;;
  esac
}

check_tree() { # root
  local bad=0 file line header from to room rooms
  cd "$1" || return 2
  while IFS=: read -r file line header; do
    header=${header#*\"}
    header=${header%%\"*}
    room_of "$file"
    from=$room
    [ "$from" = other ] && continue
    [ -e "$header" ] || { echo "$file:$line: includes $header, which is not a path from the root"; bad=1; continue; }
    room_of "$header"
    to=$room
    [ "$from" = "$to" ] && continue
    may_see "$from"
    case " $rooms " in
      *" $to "*) is_door "$to" "$header" || { echo "$file:$line: enters the room $to by $header, which is not its door"; bad=1; } ;;
      *) echo "$file:$line: $from must not know $to ($header)"; bad=1 ;;
    esac
  done < <(find collector schedule export preload \( -name '*.[chS]' -o -name '*.def' \) -print0 2>/dev/null | xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' /dev/null)
  return $bad
}

self_test() {
  local copy file text told line failed=0
  copy=$(mktemp -d) || exit 2
  # shellcheck disable=SC2064
  trap "rm -rf '$copy'" EXIT
  cp -r collector schedule export preload "$copy/"
  (check_tree "$copy" >/dev/null) || { echo "check-layers: the tree is broken before any breach"; return 1; }
  while read -r file text; do
    [ -e "$text" ] || [ "$text" = room.h ] || { echo "check-layers: $text, of a breach, is not there"; return 1; }
    mkdir -p "$copy/$(dirname "$file")"
    echo "#include \"$text\"" >>"$copy/$file"
  done < <(breaches)
  told=$(check_tree "$copy")
  while read -r file text; do
    line=$(grep -nF "\"$text\"" "$copy/$file")
    [[ $'\n'$told == *$'\n'"$file:${line%%:*}: "* ]] || { echo "check-layers: not seen: $file including $text"; failed=1; }
  done < <(breaches)
  [ $failed = 0 ] && echo "check-layers: every breach was seen"
  return $failed
}

breaches() { # file, what it must not include
  cat <<'BREACHES'
collector/base/breach.c collector/record/kp_record.h
collector/record/breach.c collector/read/kp_read.h
collector/read/breach.c collector/record/kp_record.h
schedule/breach.c preload/source.h
schedule/breach.c collector/record/kp_record.h
export/breach.c collector/record/kp_record.h
export/breach.c schedule/kp_schedule.h
export/trace/breach.c export/report/table.h
export/trace/breach.c export/gpu/occupancy.h
export/trace/breach.c schedule/kp_schedule.h
export/gpu/breach.c export/heap/allocations.h
export/heap/breach.c export/gpu/gpu.h
export/names/breach.c export/gpu/gpu.h
export/out/breach.c export/names/demangle.h
export/report/breach.c collector/read/kp_read.h
export/report/breach.c export/report/memory/memblocks.h
export/report/memory/breach.c export/out/json.h
export/cli/breach.c export/trace/parts.h
export/cli/breach.c export/out/json.h
export/cli/breach.c export/gpu/gpu.h
export/cli/breach.c export/page/pageparts.h
export/cli/breach.c collector/record/kp_record.h
preload/run/breach.c export/report/table.h
preload/torch/breach.c collector/record/record_internal.h
preload/torch/breach.c preload/hook/got.h
preload/hook/breach.c preload/torch/torch.h
preload/torch/breach.c preload/python/python.h
preload/python/breach.c preload/torch/torch.h
preload/torch/breach.c preload/unwind/rule.h
preload/unwind/breach.c preload/source.h
preload/hook/breach.c schedule/kp_schedule.h
preload/run/breach.c preload/hook/tap_modules.h
preload/torch/breach.c preload/run/window.h
preload/breach.c preload/hook/hook.h
preload/breach.c room.h
BREACHES
}

case ${1:-} in
  --self-test) self_test ;;
  *) check_tree "${1:-.}" ;;
esac
