#!/usr/bin/env bash
# cases.sh - read by run.sh: each function case_NAME is a case
# shellcheck disable=SC2154,SC2034,SC2054,SC2016,SC2119,SC2120

is_long() { [ -n "$long" ] || { skip "HOSTS_LONG=1 runs it"; return 1; }; }
full='No space left|is full|left free for the program'

# --- a file system that stands -----------------------------------------------------------------------------------------
stop=freeze # or stop_process
standing() { # words of steps.c: both start, the volume stands from their meeting on
  both "$@"
  meeting
  $stop "$stand"
  go
  thaw_await
  ended
}
stand_long() { [ "$stand" -ge 7 ] || stand=7; } # far longer than KPROF_EXIT_S=1, also on a busy machine
case_freeze_middle() {
  volume ext4 128 || return
  settings=(KPROF_DIR="$vol/k")
  standing steps=$((stand * 1000 + 2500)) meet=1000
  claim_same
  claim_no_wait
  claim_counted 0
  claim_goes_on 100
}
case_freeze_xfs() {
  volume xfs 320 || return
  settings=(KPROF_DIR="$vol/k")
  standing steps=$((stand * 1000 + 2500)) meet=1000
  claim_same
  claim_no_wait
  claim_counted 0
}
case_freeze_btrfs() {
  volume btrfs 160 || return
  settings=(KPROF_DIR="$vol/k")
  standing steps=$((stand * 1000 + 2500)) meet=1000
  claim_same
  claim_no_wait
  claim_counted 0
}
case_freeze_spool() { # the recording stands, traces do not
  volume ext4 128 || return
  settings=(KPROF_DIR="$at/k" KPROF_SPOOL_DIR="$vol/spool")
  standing steps=$((stand * 1000 + 2500)) meet=1000
  claim_same
  claim_no_wait
  claim_counted 0
}
case_freeze_windows() { # a window ends and is written while the disk stands
  volume ext4 128 || return
  settings=(KPROF_DIR="$vol/k" KPROF_SCHEDULE=wait=500,active=500,repeat=2)
  standing steps=$((stand * 1000 + 3000)) meet=999
  claim_same
  claim_no_wait
  local n
  n=$(in_traces aten::mul)
  if [ "$n" = 13000 ]; then claim "both windows are written" ""; else claim "both windows are written" "$n of 13000 ops are in traces"; fi
}
case_freeze_window_traces() { # only the folder of traces stands
  volume ext4 128 || return
  settings=(KPROF_DIR="$vol/k" KPROF_SPOOL_DIR="$at/spool" KPROF_SCHEDULE=wait=500,active=500,repeat=2)
  standing steps=$((stand * 1000 + 3000)) meet=999
  claim_same
  claim_no_wait
}
claim_lines() { # steps: each has a line, or is counted as lost
  local file lines lost
  file=$(echo "$vol"/k/*.steps)
  lines=$((($(stat -c %s "$file") - 512) / 96)) lost=$(od -A n -t u8 -j 56 -N 8 "$file" | tr -d ' ')
  if [ $((lines + lost)) = "$1" ]; then claim "a line a step ($lost lost)" ""; else claim "a line a step" "$lines lines, $lost lost, of $1 steps"; fi
}
case_freeze_summary() { # lines of a step, and metrics
  volume ext4 128 || return
  settings=(KPROF_DIR="$vol/k" KPROF_SCHEDULE=none KPROF_SUMMARY=1 KPROF_PROM="$vol/k.prom")
  standing steps=$((stand * 1000 + 2500)) meet=1000
  claim_same
  claim_no_wait
  claim_lines $((stand * 1000 + 2500))
}
case_freeze_start() {
  volume ext4 128 || return
  settings=(KPROF_DIR="$vol/k")
  freeze "$stand"
  both steps=$((stand * 1000 + 2500))
  thaw_await
  ended
  claim_same
  claim_no_wait
  local late=$((($(said ours began_us) - $(us ours began)) / 1000))
  if [ $late -le $((stand * 100)) ]; then claim "main begins ($late ms)" ""; else claim "main begins" "$late ms late"; fi
  claim_short load 1500 "torch is loaded within a bound" # its first window asks the disk for half a second
}
case_freeze_exit() { # the disk comes back in time: nothing is lost
  volume ext4 128 || return
  settings=(KPROF_DIR="$vol/k")
  standing steps=1500 meet=1499
  claim_same
  claim_no_wait
  claim_exit $((stand * 1000 + 3000))
  claim_counted 0
}
# The kernel lets no process go of which a thread is inside a call on a frozen file system. So none of its threads is.
exit_beside_frozen() { # settings...
  settings=("$@" KPROF_EXIT_S=1)
  both steps=1500 meet=1499
  meeting
  freeze "$stand"
  go
  sleep 5
  n=$(grep -ac 'a disk has not answered for 1 s' "$at/ours/err")
  if [ "$n" = 1 ]; then claim "exit does not wait for the thaw" ""; else claim "exit does not wait for the thaw" "$n lines say so within 5 s"; fi
  n=$(ps -o stat= -p "$(cat "$at/ours/pid")")
  claim "the process is gone" "${n/#Z*/}"
  thaw_await
  ended
  claim_same
  claim_no_wait
  claim_exit $((stand * 1000 + 3000))
}
exit_bound() {
  local n
  stand_long
  volume ext4 128 || return
  exit_beside_frozen KPROF_DIR="$vol/k" "$@"
  claim_counted 0
}
case_freeze_exit_bound() { exit_bound; }
case_freeze_exit_bound_control() { exit_bound KPROF_CONTROL=1; }
case_freeze_exit_bound_summary() { exit_bound KPROF_SUMMARY=1; }
case_freeze_exit_bound_traces() { # the recording lies elsewhere
  local n
  stand_long
  volume ext4 128 || return
  exit_beside_frozen KPROF_DIR="$vol/k" KPROF_SPOOL_DIR="$at/spool"
  "$kprof" recover "$at/spool" -o "$at/recovered.traces" >"$at/spool.recovered" 2>&1
  claim_counted 0 "$at/spool.recovered"
}
case_freeze_exit_spool() { # the recording stands, traces do not: they are written meanwhile
  volume ext4 128 || return
  settings=(KPROF_DIR="$at/k" KPROF_SPOOL_DIR="$vol/spool")
  standing steps=1500 meet=1499
  claim_same
  claim_no_wait
  claim_exit $((stand * 1000 + 3000))
  claim_counted 0
}
case_freeze_term() { # ended by a signal meanwhile
  stand_long
  volume ext4 128 || return
  settings=(KPROF_DIR="$vol/k" KPROF_EXIT_S=1)
  both steps=100000 meet=1000
  meeting
  freeze "$stand"
  go
  sleep 0.5
  local since=$((${EPOCHREALTIME/./} / 1000)) took
  kill -TERM "$(cat "$at/alone/pid")" "$(cat "$at/ours/pid")"
  wait "${pid[ours]}"
  took=$(($(us ours ended) / 1000 - since))
  thaw_await
  ended
  claim_same
  if [ "$took" -le 4000 ]; then claim "it ends ($took ms)" ""; else claim "it ends" "it took $took ms"; fi
}
fork_beside() { # how the child ends, ms that it may take, settings...
  stand_long
  volume ext4 128 || return
  settings=(KPROF_DIR="$vol/k" KPROF_EXIT_S=1 "${@:3}")
  standing steps=$((stand * 1000 + 2000)) meet=1000 fork=1000 child="$1"
  claim_same
  claim_no_wait
  claim_short fork $((stand * 100)) "the fork does not wait"
  claim_short wait "$2" "the child ends"
}
case_freeze_fork() { fork_beside _exit $((stand * 100)); }
case_freeze_fork_exit() { fork_beside exit $((stand * 100)); }
case_freeze_fork_recorded() { fork_beside _exit 4000 KPROF_CHILDREN=1; }
case_freeze_fork_recorded_exit() { fork_beside exit 4000 KPROF_CHILDREN=1; }
case_freeze_rate() { # a million records a second beside a disk that stands: more than the memory for them
  [ -z "$long" ] || stand=60
  volume ext4 1536 || return
  settings=(KPROF_DIR="$vol/k" KPROF_BUFFER_MB=32)
  standing steps=$((stand * 1000 + 1500)) meet=500 ops=1000
  claim_same
  claim_no_wait 400
  claim_counted
  if [ "$dropped" -gt 0 ]; then claim "what does not fit is dropped" ""; else claim "what does not fit is dropped" "nothing was"; fi
  claim_goes_on 50
}
case_freeze_memory_limit() { # two million a second, where the control group lets the program have 192 MB
  memory_group 192 || { skip "no memory control group can be made here"; return; }
  volume ext4 1536 || return
  settings=(KPROF_DIR="$vol/k")
  # shellcheck disable=SC2016
  inside=(bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group")
  standing steps=$((stand * 1000 + 1000)) meet=200 ops=2000
  claim_same
  claim_no_wait
  claim_counted
  echo "# $case: of 192 MB both took at most $(($(cat "$group/$group_peak") >> 20)) MB"
}

# --- a file system whose process stands, as a server's does -----------------------------------------------------------------
case_process_middle() {
  behind_process || return
  stop=stop_process settings=(KPROF_DIR="$vol/k")
  standing steps=$((stand * 1000 + 2500)) meet=1000
  claim_same
  claim_no_wait
  claim_counted 0
  claim_goes_on 100
}
case_process_exit_bound() { process_exit_bound; }
case_process_exit_bound_control() { process_exit_bound KPROF_CONTROL=1; }
process_exit_bound() { # settings...
  stand_long
  behind_process || return
  stop=stop_process settings=(KPROF_DIR="$vol/k" KPROF_EXIT_S=1 "$@")
  standing steps=1500 meet=1499
  claim_same
  claim_no_wait
  claim_exit 4000
  claim_counted 0
}
case_process_exit_control() { # nothing is recorded, and the names of control lie in a folder that stands
  stand_long
  behind_process || return
  stop=stop_process settings=(KPROF_DIR="$vol/k" KPROF_SCHEDULE=none KPROF_CONTROL=1 RANK=0 LOCAL_RANK=0 WORLD_SIZE=2)
  standing steps=3500 meet=3499
  claim_same
  claim_no_wait
  claim_exit 3500
}
case_process_fork() {
  stand_long
  behind_process || return
  stop=stop_process settings=(KPROF_DIR="$vol/k" KPROF_EXIT_S=1 KPROF_CHILDREN=1)
  standing steps=$((stand * 1000 + 2000)) meet=1000 fork=1000 child=exit
  claim_same
  claim_no_wait
  claim_short fork $((stand * 100)) "the fork does not wait"
  claim_short wait 10000 "the child ends" # 1.5 s, or with the process where another thread holds their folder's lock
}
case_process_killed() { # SIGKILL ends it while it waits
  behind_process || return
  stop=stop_process settings=(KPROF_DIR="$vol/k")
  both steps=100000 meet=1000
  meeting
  stop_process "$stand"
  go
  sleep 0.5
  local since=$((${EPOCHREALTIME/./} / 1000)) took
  kill -KILL "$(cat "$at/alone/pid")" "$(cat "$at/ours/pid")"
  wait "${pid[ours]}"
  took=$(($(us ours ended) / 1000 - since))
  thaw_await
  ended
  claim_same
  if [ "$took" -le $((stand * 100)) ]; then claim "it ends ($took ms)" ""; else claim "it ends" "it took $took ms"; fi
}

# --- a file system that is full ------------------------------------------------------------------------------------------
filled() { # words of steps.c
  both steps=4000 meet=800 ops=200 "$@"
  meeting
  fill 2 &
  local filling=$!
  go
  wait $filling
  ended
}
case_full_btrfs() {
  volume btrfs 160 || return
  settings=(KPROF_DIR="$vol/k")
  filled
  claim_same
  claim_no_wait 400
  claim_told "$full"
}
case_full_ext4() {
  volume ext4 64 || return
  settings=(KPROF_DIR="$vol/k")
  filled
  claim_same
  claim_no_wait 400
  claim_told "$full"
}
case_full_xfs() {
  volume xfs 320 || return
  settings=(KPROF_DIR="$vol/k")
  filled
  claim_same
  claim_no_wait 400
  claim_told "$full"
}
case_full_overlay() { # over btrfs, as a container's root
  volume btrfs 160 || return
  mkdir "$vol/upper" "$vol/work" "$at/low" "$at/over"
  local said
  said=$(mount -t overlay -o "lowerdir=$at/low,upperdir=$vol/upper,workdir=$vol/work" none "$at/over" 2>&1) || { skip "no overlay can be mounted: ${said##*: }"; return; }
  mounted=("$at/over" "${mounted[@]}")
  settings=(KPROF_DIR="$at/over/k")
  filled
  claim_same
  claim_no_wait 400
  claim_told "$full"
}
case_quota_btrfs() {
  volume btrfs 160 || return
  local said
  said=$({ btrfs quota enable "$vol" && btrfs qgroup limit 6M "$vol"; } 2>&1) || { skip "no quota of btrfs here: ${said##*: }"; return; }
  settings=(KPROF_DIR="$vol/k")
  both steps=3000 ops=200
  ended
  claim_same
  claim_no_wait 400
  claim_counted
  claim_told "[Qq]uota|left free for the" "No space left|is full"
}
case_quota_ext4() { # root has no quota, so another user runs it
  local said
  command -v setquota >/dev/null || { skip "no setquota here"; return; }
  EXT4_WORDS="-O quota -E quotatype=usrquota" volume ext4 128 vol usrquota || return
  said=$(setquota -u 65534 0 6000 0 0 "$vol" 2>&1) || { skip "no quota of ext4 here: ${said##*: }"; return; }
  mkdir -p "$at"/{alone,ours}/cwd && chmod 777 "$at" "$at"/{alone,ours} "$at"/{alone,ours}/cwd
  inside=(setpriv --reuid 65534 --clear-groups)
  settings=(KPROF_DIR="$vol/k")
  both steps=3000 ops=200
  ended
  claim_same
  claim_no_wait 400
  claim_told "[Qq]uota|left free for the" "No space left|is full"
}
limited() { # first words of the shell
  settings=(KPROF_DIR="$at/k")
  inside=(bash -c "$1 exec \"\$0\" \"\$@\"")
  both steps=2000 ops=200
  ended
  claim_same
  claim_no_wait 400
  claim_told "File too large|limit" "No space left|is full"
}
case_file_limit() { limited 'ulimit -f 2000;'; }
case_file_limit_ignored() { limited "trap '' XFSZ; ulimit -f 2000;"; }
case_tmpfs_3mb() {
  volume tmpfs 3 || return
  settings=(KPROF_DIR="$vol/k")
  both steps=2000 ops=200
  ended
  claim_same
  claim_no_wait 400
  claim_counted
  claim_told "$full"
}

# --- all that a black box does: the ring, a hang, a failed allocation, a line a step, metrics ------------------------------
# The program rests for far longer than KPROF_HANG, and goes on while the disk still stands.
boxed() { # file system, MB, [options of mount]
  stand=8
  box=(steps=11000 meet=800 rest=4000 oom=850)
  settings=(KPROF_RING=2s KPROF_KEEP=2 KPROF_HANG=1s KPROF_ON_OOM=dump KPROF_SUMMARY=1)
  if [ "$1" = process ]; then behind_process || return; else volume "$1" "$2" vol "${3:-}" || return; fi
  settings+=(KPROF_DIR="$vol/k" KPROF_PROM="$vol/k.prom")
}
claim_box() {
  claim_same
  claim_no_wait
  claim_exit $((stand * 1000 + 3000))
}
claim_box_files() { # each is there
  local kind missing=""
  for kind in 'hang-*.json' 'oom-*.json' '*.steps' '*.pt.trace.json.gz' k.prom; do
    [ -n "$(find "$vol" -name "$kind" -size +0)" ] || missing+=" $kind"
  done
  claim "each file is there" "${missing:+missing:$missing}"
}
claim_box_says() { # error: each that cannot be written has it, in a line
  local word missing=""
  for word in 'no step and no collective.* is stuck at ([a-z_]*sleep, which sleeps|a place that is not known)' 'ran out of memory' 'the lines of KPROF_SUMMARY' 'KPROF_PROM=' '(no trace|nothing is recorded)'; do
    grep -aqE "^kprof: .*$word.*$1" "$at/ours/err" || missing+=" '$word'"
  done
  claim "each has a line with its cause" "${missing:+missing:$missing}"
}
box_freeze() {
  boxed "$@" || return
  standing "${box[@]}"
  claim_box
  claim_box_files
  claim_goes_on 1
}
case_box_freeze_ext4() { box_freeze ext4 128; }
case_box_freeze_btrfs() { is_long && box_freeze btrfs 160; }
case_box_freeze_xfs() { is_long && box_freeze xfs 320; }
case_box_process() { stop=stop_process box_freeze process; }
box_full() {
  boxed "$@" || return
  both "${box[@]}" ops=200
  meeting
  fill 2
  go
  ended
  claim_box
  claim_box_says 'No space left on device'
}
case_box_full_ext4() { is_long && box_full ext4 64; }
case_box_full_btrfs() { is_long && box_full btrfs 160; }
case_box_full_tmpfs() { box_full tmpfs 24; }
case_box_readonly_ext4() { # an error of the disk makes it so while the program runs
  boxed ext4 128 errors=remount-ro || return
  local knob
  knob=/sys/fs/ext4/$(basename "$(findmnt -no SOURCE "$vol")")/trigger_fs_error
  [ -w "$knob" ] || { skip "no error of a file system can be made here"; return; }
  both "${box[@]}"
  meeting
  echo 1 >"$knob"
  go
  ended
  claim_box
  claim_box_says 'Read-only file system'
}
box_readonly() { # from the start on
  boxed "$@" || return
  mount -o remount,ro "$vol"
  both "${box[@]}"
  meeting
  go
  ended
  claim_box
  claim_box_says 'Read-only file system'
}
case_box_readonly_btrfs() { is_long && box_readonly btrfs 160; }
case_box_readonly_tmpfs() { box_readonly tmpfs 24; }

# --- the program's own checkpoints on the same volume ---------------------------------------------------------------------
reserve() { # file system, MB
  volume "$1" "$2" alone_vol || return
  volume "$1" "$2" ours_vol || return
  settings=(KPROF_DIR="$at/ours_vol/k" KPROF_BUFFER_MB=8)
  steps alone steps=5000 ops=300 save=400 kb=4096 into="$at/alone_vol"
  steps ours steps=5000 ops=300 save=400 kb=4096 into="$at/ours_vol"
  ended
  claim_same
  claim_no_wait 400
  claim_counted
  claim_left_free
  local n
  n=$(in_traces aten::mul)
  if [ "$n" -gt 0 ]; then claim "something is recorded" ""; else claim "something is recorded" "no op is in the traces"; fi
}
case_reserve_tmpfs() { reserve tmpfs 24; }
case_reserve_ext4() { reserve ext4 48; }
case_reserve_traces() { # the recording lies elsewhere, and each window becomes a trace: what is refused stays there
  volume tmpfs 48 alone_vol || return
  volume tmpfs 48 ours_vol || return
  settings=(KPROF_DIR="$at/ours_vol/k" KPROF_SPOOL_DIR="$at/spool" KPROF_GZIP=0 KPROF_SCHEDULE=wait=0,warmup=0,active=200)
  for who in alone ours; do steps $who steps=5000 ops=300 save=400 kb=8192 into="$at/${who}_vol"; done
  ended
  claim_same
  claim_no_wait 400
  "$kprof" recover "$at/spool" -o "$at/recovered.traces" >"$at/spool.recovered" 2>&1
  claim_counted 0 "$at/spool.recovered"
  claim_left_free
}

# --- /dev/shm -----------------------------------------------------------------------------------------------------------
with_shm() { # a shell's words that make it, words of steps.c
  volume ext4 256 || return
  settings=(KPROF_DIR="$vol/k")
  inside=(unshare -m bash -c "$1 exec \"\$0\" \"\$@\"")
  unshare -m true 2>/dev/null || { skip "no mount namespace can be made here"; return; }
  standing steps=$((stand * 1000 + 2500)) meet=1000 ops=100 "${@:2}"
  claim_same
  claim_no_wait
  claim_counted
  claim_goes_on 90
}
shm_64='mount -t tmpfs -o size=64m none /dev/shm;'
shm_own='mount -t tmpfs -o size=2g none /dev/shm;'
shm_none='d=$(mktemp -d) && mount -t tmpfs none $d && touch $d/null $d/zero $d/urandom && for f in null zero urandom; do mount --bind /dev/$f $d/$f; done && mount --move $d /dev || mount --rbind $d /dev;'
case_shm_64mb() { with_shm "$shm_64"; }
case_shm_64mb_shared() { with_shm "$shm_64" save=500 kb=20000 into=/dev/shm; } # the program needs 40 MB of it
case_shm_none() { with_shm "$shm_none"; }

# --- a disk that is slow ---------------------------------------------------------------------------------------------------
case_slow_disk() {
  volume ext4 256 || return
  slow 1000000 || { skip "no limit of a device's writes here"; return; }
  echo "# $case: by $slow_by"
  settings=(KPROF_DIR="$vol/k")
  both steps=5000 ops=100 meet=500
  meeting
  (for ((i = 0; i < 12; i++)); do sync -f "$vol"; sleep 0.1; done) &
  local syncing=$!
  go
  wait "${pid[@]}"
  slow_no_more
  wait $syncing
  ended
  claim_same
  claim_no_wait 100
  claim_counted
}

# --- SIGKILL ------------------------------------------------------------------------------------------------------------------
# Of what the program told to a pipe before it was killed: how many records are in no trace and in no count of drops.
killed_after=0 # ms
killed_once() { # number, pace; prints "records ms"
  local told made found lost
  rm -rf "$at/k" "$at/ours"
  mkdir -p "$at/ours"
  (
    exec 2>/dev/null
    mkfifo "$at/ours/pipe"
    cat "$at/ours/pipe" >"$at/ours/told" &
    "${inside[@]}" env LD_PRELOAD="$lib" "${settings[@]}" "$bin/steps" "$bin" "$at/ours/side" steps=100000000 ops=1000 pace="$2" tell=500 >"$at/ours/pipe" 2>"$at/ours/err" &
    local child=$!
    echo "$child" >>"$at/pids"
    while [ ! -s "$at/ours/told" ] && kill -0 $child; do sleep 0.002; done
    local ms=$((killed_after + RANDOM % 250))
    sleep "$((ms / 1000)).$(printf '%03d' $((ms % 1000)))"
    kill -KILL $child
    wait
  )
  "$kprof" recover "$at/k" >"$at/recovered" 2>&1
  made=$(tail -n 1 "$at/ours/told" | cut -d' ' -f1)
  found=$(($(counted_in ops "$at/recovered") + $(grep -aoE 'dropped: [0-9]+' "$at/recovered" | awk '{ n += $2 } END { print n + 0 }')))
  lost=$((made - found))
  echo "$made made, $lost lost: $(head -n 2 "$at/recovered" | cut -c1-300 | tr '\n' ' ')" >>"$at/kills"
  [ $lost -gt 0 ] || { echo "0 0"; return; }
  awk -v found=$found -v lost=$lost '!at && $1 > found { at = $2 } { last = $2 } END { printf "%d %.1f\n", lost, (last - at) / 1e6 }' "$at/ours/told"
}
killed() { # ms that may be lost, pace, how often
  local i records ms worst=0 worst_ms=0
  settings=(KPROF_DIR="$at/k" KPROF_GZIP=0)
  for ((i = 0; i < $3; i++)); do
    read -r records ms < <(killed_once $i "$2")
    [ "$records" -le "$worst" ] || worst=$records
    worst_ms=$(awk -v a="$worst_ms" -v b="$ms" 'BEGIN { print (b > a) ? b : a }')
  done
  if awk -v a="$worst_ms" -v b="$1" 'BEGIN { exit !(a <= b) }'; then claim "loses at most $1 ms ($3 kills, at most $worst records of $worst_ms ms)" ""
  else claim "loses at most $1 ms" "$worst records of $worst_ms ms, in $3 kills"; fi
}
case_kill_full_rate() { killed 0 0 $((kills / 2)); }
case_kill_million_a_second() { killed 0 1000 $((kills / 2)); }
case_kill_container() { # a container's /dev/shm ends with it: what changed is copied once a second
  unshare -m true 2>/dev/null || { skip "no mount namespace can be made here"; return; }
  inside=(unshare -m bash -c "$shm_own exec \"\$0\" \"\$@\"")
  killed_after=4000
  killed 2500 100000 $((kills / 4))
}
case_kill_no_shm() { # what lies in memory without a path goes with the process: 100 ms alone, more where nobody has a core for the copy
  unshare -m true 2>/dev/null || { skip "no mount namespace can be made here"; return; }
  inside=(unshare -m bash -c "$shm_none exec \"\$0\" \"\$@\"")
  killed 2000 0 $((kills / 2))
}

# --- trainings with torch (HOSTS_LONG=1) -----------------------------------------------------------------------------------
torch_python() { # sets $python, or says why there is none
  is_long || return
  python=${KPROF_PYTHON:-}
  "${python:-false}" -c 'import torch' 2>/dev/null || { skip "KPROF_PYTHON names no Python with torch"; return 1; }
}
case_torch_freeze() {
  torch_python || return
  volume ext4 512 || return
  settings=(KPROF_DIR="$vol/k")
  for who in alone ours; do launch $who "$python" "$here/train.py" ../side 8000 1000; done
  meeting
  freeze "$stand"
  go
  thaw_await
  ended
  claim_same
  claim_no_wait
}
case_torch_freeze_oom() { # the file of KPROF_ON_OOM waits, and the allocation that failed does not
  torch_python || return
  volume ext4 512 || return
  settings=(KPROF_DIR="$vol/k" KPROF_SCHEDULE=none KPROF_ON_OOM=dump)
  for who in alone ours; do launch $who "$python" "$here/train.py" ../side 8000 1000 oom; done
  meeting
  freeze "$stand"
  go
  thaw_await
  ended
  claim_same
  claim_no_wait
  local n
  n=$(find "$vol/k" -name 'oom-*.json' | grep -c .)
  if [ "$n" = 1 ]; then claim "the file is there after the thaw" ""; else claim "the file is there after the thaw" "$n files"; fi
}
case_torch_reserve() {
  torch_python || return
  volume tmpfs 24 alone_vol || return
  volume tmpfs 24 ours_vol || return
  settings=(KPROF_DIR="$at/ours_vol/k" KPROF_BUFFER_MB=8)
  for who in alone ours; do launch $who "$python" "$here/train.py" ../side 9000 -1 2000 "$at/${who}_vol"; done
  ended
  claim_same
  claim_no_wait 400
  recover
  claim_left_free
}
