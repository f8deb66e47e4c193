#!/usr/bin/env bash
# volumes.sh - read by run.sh: small volumes on loop devices, what freezes, fills and slows them, and their end
#
# A case has one volume at $vol, or several below $at/NAME. Whatever happens a frozen one is thawed: a process that
# nothing of the case ends does so.
# shellcheck disable=SC2154,SC2034,SC2015,SC2016
mounted=() slowed=() groups=()
vol=""

skip() { echo "ok - $case # SKIP $1"; } # reason

# Makes and mounts a volume; says why it cannot, and is false then.
volume() { # file system, MB, [name, [options of mount]]
  local fs=$1 mb=$2 name=${3:-vol} options=${4:-} said
  vol=$at/$name
  mkdir -p "$vol"
  if [ "$fs" = tmpfs ]; then
    said=$(mount -t tmpfs -o "size=${mb}m" none "$vol" 2>&1) || { skip "no tmpfs can be mounted: ${said##*: }"; return 1; }
  else
    command -v "mkfs.$fs" >/dev/null || { skip "no mkfs.$fs here"; return 1; }
    truncate -s "${mb}M" "$vol.img"
    # shellcheck disable=SC2046
    said=$("mkfs.$fs" -q $(mkfs_words "$fs") "$vol.img" 2>&1) || { skip "mkfs.$fs fails: ${said##*$'\n'}"; return 1; }
    said=$(mount -o "loop${options:+,$options}" "$vol.img" "$vol" 2>&1) || { skip "no $fs can be mounted: $(head -n 1 <<<"${said##*: }")"; return 1; }
  fi
  mounted+=("$vol")
  chmod 777 "$vol"
}

mkfs_words() { # file system
  case $1 in
    btrfs) echo "-f --mixed" ;;
    ext4) echo "-F -m 0 ${EXT4_WORDS:-}" ;;
    xfs) echo "-f ${XFS_WORDS:-}" ;;
  esac
}

# Writes everything back, so that each page of a file is clean, and stops the volume; it goes on after so many seconds.
freeze() { # seconds
  sync -f "$vol"
  setsid bash -c 'sleep "$1"; fsfreeze -u "$2"' - "$1" "$vol" >/dev/null 2>&1 </dev/null &
  thawing=$!
  fsfreeze -f "$vol"
}
thaw_await() { wait "$thawing"; touch "$at"/{alone,ours}/side.thawed; }

# Writes until nothing is left, and keeps the file system writing back for some seconds.
fill() { # seconds
  dd if=/dev/zero of="$vol/junk" bs=1M 2>/dev/null
  for ((i = 0; i < $1 * 4; i++)); do
    sync -f "$vol"
    dd if=/dev/zero of="$vol/junk$i" bs=4k 2>/dev/null
    sleep 0.25
  done
}

number_of_device() { cat "/sys/block/$(basename "$(findmnt -no SOURCE "$vol")")/dev"; }
# Each write to the volume's device waits, so that it takes so many bytes a second. Says by what in $slow_by.
slow() { # bytes a second
  local knob
  for knob in /sys/fs/cgroup/blkio/blkio.throttle.write_bps_device /sys/fs/cgroup/blkio.throttle.write_bps_device; do
    [ -w "$knob" ] && echo "$(number_of_device) $1" 2>/dev/null >"$knob" || continue
    slow_by="blkio.throttle.write_bps_device of $1 bytes a second"
    slowed+=("$knob $(number_of_device)")
    return 0
  done
  return 1
}
slow_no_more() {
  local each
  for each in "${slowed[@]}"; do echo "${each#* } 0" >"${each% *}"; done
  slowed=()
}

# A file system behind a process, as those of networks are: it stands while the process is stopped. A thread that waits
# for it can be killed, unlike one that waits for a frozen one.
behind_process() {
  command -v bindfs >/dev/null || { skip "no bindfs here"; return 1; }
  local said
  volume tmpfs 128 below || return 1
  vol=$at/vol
  mkdir -p "$vol"
  said=$(bindfs "$at/below" "$vol" 2>&1) || { skip "bindfs does not mount: $(head -n 1 <<<"$said")"; return 1; }
  mounted=("$vol" "${mounted[@]}")
  behind=$(pgrep -f "^bindfs $at/below $vol\$")
}
stop_process() { # seconds
  setsid bash -c 'sleep "$1"; kill -CONT "$2"' - "$1" "$behind" >/dev/null 2>&1 </dev/null &
  thawing=$!
  kill -STOP "$behind"
}

# A memory control group of so many MB; $group is its folder. Of version 2 where it can be had, else of version 1.
memory_group() { # MB
  local root=/sys/fs/cgroup/memory limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes
  if grep -qsw memory /sys/fs/cgroup/cgroup.subtree_control; then root=/sys/fs/cgroup limit=memory.max peak=memory.peak; fi
  group=$root/kprof-$$-$case group_peak=$peak
  mkdir "$group" 2>/dev/null && echo "$1M" 2>/dev/null >"$group/$limit" || { rmdir "$group" 2>/dev/null; return 1; }
  groups+=("$group")
}

volumes_away() {
  local each
  [ -z "${behind:-}" ] || kill -CONT "$behind" 2>/dev/null
  slow_no_more
  for each in "${mounted[@]}"; do
    fsfreeze -u "$each" 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do umount "$each" 2>/dev/null && break; sleep 0.3; done
    mountpoint -q "$each" && umount -l "$each"
    rm -f "$each.img"
  done
  for each in "${groups[@]}"; do rmdir "$each"; done
}
