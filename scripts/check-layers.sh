#!/usr/bin/env bash
# check-layers.sh - who may include whom (docs/internals/architecture.md), and that other rooms come in by the door
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
    export/answers/advise/*/*) d=${1#export/answers/advise/}; room="${d%%/*}" ;;
    export/write/*/* | export/read/*/* | export/answers/*/*) d=${1#export/*/}; room="${d%%/*}" ;;
    export/*/*) d=${1#export/}; room="${d%%/*}" ;; # show cli
    export/*) room="export" ;;
    preload/hook/*) room=hook ;;
    preload/unwind/*) room=unwind ;;
    preload/run/* | preload/control/* | preload/finish/* | preload/blackbox/* | preload/window/*) d=${1#preload/}; room=${d%%/*} ;;
    preload/host/*) room=host ;;
    preload/procfacts/*) room=procfacts ;;
    preload/summary/*) room=summary ;;
    preload/*/*) d=${1#preload/}; room="preload_${d%%/*}" ;;
    preload/*) room=preload ;; *) room=other ;;
  esac
}

may_see() { # room -> rooms, those it may include besides itself
  local low="store show base"
  local model="facts tree parse frames kineto $low"
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
    show|store) rooms="base" ;;
    json) rooms="store base" ;;
    kineto) rooms="show store base" ;;
    frames) rooms="kineto $low" ;;
    parse) rooms="json frames kineto $low" ;;
    tree) rooms="parse frames kineto $low" ;;
    facts) rooms="tree frames kineto $low" ;;
    files) rooms="export read format $low" ;;
    symbols) rooms="files export $low" ;;
    folder) rooms="symbols files $model names out export read format base" ;;
    stacks|torchtable) rooms="$model" ;;
    top) rooms="stacks torchtable $model" ;;
    ranks) rooms="top $model" ;;
    hang) rooms="$model" ;;
    memory) rooms="top torchtable $model" ;;
    trace) rooms="gpu heap names out export read format base" ;;
    parts) rooms="ranks top stacks torchtable $model" ;;
    stepkinds) rooms="parts ranks top stacks torchtable $model" ;;
    opsrules) rooms="stepkinds parts ranks top stacks torchtable $model" ;;
    rules) rooms="opsrules stepkinds parts ranks top stacks torchtable $model" ;;
    advise) rooms="rules opsrules stepkinds parts ranks top stacks torchtable $model" ;;
    diff) rooms="advise parts ranks top torchtable $model" ;;
    page|view) rooms="advise parts memory ranks top stacks torchtable $model" ;;
    convert) rooms="folder files $model" ;;
    watch) rooms="files format $low" ;;
    heapview) rooms="stacks folder symbols files names export $model" ;;
    runadvice) rooms="heapview advise rules parts ranks top folder symbols files $model" ;;
    doctor) rooms="files $low" ;;
    jobs) rooms="runadvice hang memory ranks folder symbols files $model export schedule format base" ;;
    cli) rooms="jobs doctor watch view page runadvice heapview convert diff advise stepkinds parts memory ranks hang top stacks torchtable folder symbols files $model names export schedule read format base" ;;
    hook) rooms="preload record format base" ;; # of preload only guard.h and run.h
    unwind) rooms="record format base" ;;
    host) rooms="hook preload record base" ;;
    procfacts) rooms="preload record base" ;;
    summary) rooms="procfacts format base" ;;
    preload_*) rooms="preload hook unwind record schedule format base" ;;
    preload) rooms="record format base" ;;
    window) rooms="summary procfacts preload record schedule format base" ;;
    blackbox) rooms="window procfacts preload schedule out base" ;;
    finish) rooms="window procfacts preload hook record schedule export read format base" ;;
    control) rooms="finish blackbox window preload hook record schedule base" ;;
    run) rooms="control finish blackbox window host summary procfacts preload hook unwind record schedule format base" ;; # boot.c and its files wire everything
  esac
}

# The headers by which a room may be entered from elsewhere; the rooms of the first line are open.
is_door() { # room, header
  case $1 in
    base|format|host|procfacts|summary|window|blackbox|finish|control|names|out|show|store|json|kineto|frames|parse|tree|facts|files|symbols|folder|stacks|torchtable|top|ranks|hang|heapview|runadvice|jobs) return 0 ;;
    record) [ "$2" = collector/record/kp_record.h ] ;;
    read) [ "$2" = collector/read/kp_read.h ] ;;
    schedule) [[ $2 == schedule/kp_schedule.h || $2 == schedule/ctl_proto.h || $2 == schedule/trigger.h || $2 == schedule/job/job.h ]] ;;
    export) [ "$2" = export/kp_export.h ] ;;
    gpu) [[ $2 == export/write/gpu/gpu.h || $2 == export/write/gpu/collectives.h ]] ;;
    heap) [ "$2" = export/write/heap/allocations.h ] ;;
    advise) [[ $2 == export/answers/advise/advice.h || $2 == export/answers/advise/adviceprint.h || $2 == export/answers/advise/steplist.h ]] ;;
    parts|stepkinds|opsrules|rules)
      [[ $from =~ ^(advise|rules|opsrules|stepkinds)$ || $2 == */parts/finding.h || $2 == */stepkinds/steppieces.h || $2 == */rules/load/loadsavings.h ]] ;;
    convert) [[ $2 == export/answers/convert/convert.h || $2 == export/answers/convert/formats.h ]] ;;
    diff) [ "$2" = export/answers/diff/diff.h ] ;;
    page) [ "$2" = export/answers/page/page.h ] ;;
    view) [ "$2" = export/answers/view/view.h ] ;;
    doctor) [ "$2" = export/answers/doctor/doctor.h ] ;;
    watch) [ "$2" = export/answers/watch/watch.h ] ;;
    memory) [ "$2" = export/answers/memory/memblocks.h ] || [ "$2" = export/answers/memory/oomtext.h ] || [ "$2" = export/answers/memory/oomfiles.h ] ;;
    hook) [[ $2 == preload/hook/hook.h || $2 == preload/hook/getenv.h ]] ;;
    unwind) [ "$2" = preload/unwind/kp_unwind.h ] ;;
    preload) [[ $2 == preload/guard.h || $2 == preload/source.h || $2 == preload/run.h || $2 == preload/python_bridge.h || $2 == preload/torch_bridge.h || $2 == preload/kprof.h ]] ;;
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
export/write/trace/breach.c export/answers/torchtable/keyavg.h
export/write/trace/breach.c schedule/kp_schedule.h
export/write/gpu/breach.c export/write/heap/allocations.h
export/write/heap/breach.c export/write/gpu/gpu.h
export/write/names/breach.c export/write/gpu/gpu.h
export/write/out/breach.c export/write/names/demangle.h
export/read/tree/breach.c collector/read/kp_read.h
export/read/kineto/breach.c export/read/parse/kineto_parse.h
export/read/tree/breach.c export/answers/memory/memblocks.h
export/answers/memory/breach.c export/write/out/json.h
export/answers/advise/parts/breach.c export/answers/advise/stepkinds/longsteps.h
export/answers/advise/stepkinds/breach.c export/answers/advise/opsrules/opsrules.h
export/answers/advise/opsrules/breach.c export/answers/advise/rules/rules.h
export/answers/advise/rules/breach.c export/answers/advise/advice.h
export/answers/diff/breach.c export/answers/advise/parts/costrules.h
export/cli/breach.c export/write/trace/parts.h
export/cli/breach.c export/write/out/json.h
export/cli/breach.c export/write/gpu/gpu.h
export/cli/breach.c export/answers/page/pageparts.h
export/cli/breach.c collector/record/kp_record.h
preload/run/breach.c export/answers/torchtable/keyavg.h
preload/torch/breach.c collector/record/record_internal.h
preload/torch/breach.c preload/hook/got.h
preload/hook/breach.c preload/torch/torch.h
preload/torch/breach.c preload/python/python.h
preload/python/breach.c preload/torch/torch.h
preload/torch/breach.c preload/unwind/codemap.h
preload/unwind/breach.c preload/source.h
preload/hook/breach.c schedule/kp_schedule.h
preload/run/breach.c preload/hook/tap_modules.h
preload/torch/breach.c preload/window/window.h
preload/breach.c preload/hook/hook.h
preload/breach.c room.h
BREACHES
}

case ${1:-} in
  --self-test) self_test ;;
  *) check_tree "${1:-.}" ;;
esac
