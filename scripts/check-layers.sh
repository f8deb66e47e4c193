#!/usr/bin/env bash
# check-layers.sh - who may include whom (docs/architecture.md), and that other rooms come in by the door
#
# usage: check-layers.sh [ROOT]        checks the tree at ROOT (default: here)
#        check-layers.sh --self-test   breaks each rule once in a copy and demands to be told
# Prints FILE:LINE: what is wrong, and exits 1, when a rule is broken.
set -uo pipefail

room_of() { # path -> room
  case $1 in
    collector/base/*) echo base ;; collector/format/*) echo format ;;
    collector/record/*) echo record ;; collector/read/*) echo read ;;
    schedule/*) echo schedule ;; export/cli/*) echo cli ;; export/*) echo export ;;
    preload/hook/*) echo hook ;;
    preload/unwind/*) echo unwind ;;
    preload/run/*) echo run ;;
    preload/*/*) d=${1#preload/}; echo "preload_${d%%/*}" ;;
    preload/*) echo preload ;; *) echo other ;;
  esac
}

may_see() { # room -> the rooms it may include besides itself
  case $1 in
    base) echo "" ;;
    format) echo "base" ;;
    record|read) echo "format base" ;;
    schedule) echo "base" ;;
    export) echo "read format base" ;;
    cli) echo "export read format base schedule" ;;
    hook) echo "preload record format base" ;; # of preload only guard.h and run.h
    unwind) echo "record format base" ;;
    preload_*) echo "preload hook unwind record schedule format base" ;;
    preload) echo "record format base" ;;
    run) echo "preload hook unwind record schedule export read format base" ;; # boot.c and its files wire everything
  esac
}

# The headers by which a room may be entered from elsewhere; base and format are open.
is_door() { # room, header
  case $1 in
    base|format) return 0 ;;
    record) [ "$2" = collector/record/kp_record.h ] ;;
    read) [ "$2" = collector/read/kp_read.h ] ;;
    schedule) [[ $2 == schedule/kp_schedule.h || $2 == schedule/ctl_proto.h || $2 == schedule/ctl_client.h ]] ;;
    export) [ "$2" = export/kp_export.h ] ;;
    hook) [[ $2 == preload/hook/hook.h || $2 == preload/hook/getenv.h ]] ;;
    unwind) [ "$2" = preload/unwind/kp_unwind.h ] ;;
    preload) [[ $2 == preload/guard.h || $2 == preload/source.h || $2 == preload/run.h || $2 == preload/python_bridge.h || $2 == preload/kprof.h ]] ;;
    *) return 1 ;;
  esac
}

check_tree() { # root
  local bad=0 file line header from to
  cd "$1" || return 2
  while IFS=: read -r file line header; do
    header=${header#*\"}
    header=${header%%\"*}
    from=$(room_of "$file")
    [ "$from" = other ] && continue
    [ -e "$header" ] || { echo "$file:$line: includes $header, which is not a path from the root"; bad=1; continue; }
    to=$(room_of "$header")
    [ "$from" = "$to" ] && continue
    # the command line is part of export: it may use what its own parent folder keeps to itself
    [ "$from $to" = "cli export" ] && continue
    case " $(may_see "$from") " in
      *" $to "*) is_door "$to" "$header" || { echo "$file:$line: enters the room $to by $header, which is not its door"; bad=1; } ;;
      *) echo "$file:$line: $from must not know $to ($header)"; bad=1 ;;
    esac
  done < <(find collector schedule export preload \( -name '*.[chS]' -o -name '*.def' \) -print0 2>/dev/null | xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' /dev/null)
  return $bad
}

self_test() {
  local copy file text failed=0
  copy=$(mktemp -d) || exit 2
  # shellcheck disable=SC2064
  trap "rm -rf '$copy'" EXIT
  while read -r file text; do
    rm -rf "${copy:?}/tree"
    mkdir "$copy/tree"
    cp -r collector schedule export preload "$copy/tree/"
    (check_tree "$copy/tree" >/dev/null) || { echo "check-layers: the tree is broken before any breach"; return 1; }
    mkdir -p "$copy/tree/$(dirname "$file")"
    echo "#include \"$text\"" >>"$copy/tree/$file"
    if (check_tree "$copy/tree" >/dev/null); then echo "check-layers: not seen: $file including $text"; failed=1; fi
  done <<'BREACHES'
collector/base/breach.c collector/record/kp_record.h
collector/record/breach.c collector/read/kp_read.h
collector/read/breach.c collector/record/kp_record.h
schedule/breach.c preload/source.h
schedule/breach.c collector/record/kp_record.h
export/breach.c collector/record/kp_record.h
export/breach.c schedule/kp_schedule.h
preload/torch/breach.c collector/record/record_internal.h
preload/torch/breach.c preload/hook/got.h
preload/hook/breach.c preload/torch/torch.h
preload/torch/breach.c preload/python/python.h
preload/python/breach.c preload/torch/torch.h
preload/torch/breach.c preload/unwind/rule.h
preload/unwind/breach.c preload/source.h
preload/hook/breach.c schedule/kp_schedule.h
preload/run/breach.c preload/hook/modules.h
preload/torch/breach.c preload/run/cycle.h
preload/breach.c preload/hook/hook.h
preload/breach.c room.h
BREACHES
  [ $failed = 0 ] && echo "check-layers: every breach was seen"
  return $failed
}

case ${1:-} in
  --self-test) self_test ;;
  *) check_tree "${1:-.}" ;;
esac
