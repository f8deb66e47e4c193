#!/usr/bin/env bash
# run.sh - a CUDA program on the simulated GPU, with and without us: every fault of a driver and of CUPTI, each a test
#
# usage: run.sh FOLDER_OF_PROGRAMS FOLDER_OF_SIMGPU LIBKPROF_SO [PATTERN]
# HOSTS_MATCH=REGEX: only tests of these names run (gpu_NAME). HOSTS_JOBS=N: so many shares of them at once, since they
# wait most of the time.
# Each case runs the program bare and with us: the same standard output and exit status, not longer than LIMIT
# seconds, and check.py's claims about the traces. Speaks TAP.
set -uo pipefail
bin=$(cd "$1" && pwd) sim=$(cd "$2" && pwd) lib=$3 only=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
share=${HOSTS_SHARE:-0} shares=${HOSTS_JOBS:-1}
if [ "$shares" -gt 1 ] && [ -z "${HOSTS_SHARE:-}" ]; then
  outputs=$(mktemp -d "${TMPDIR:-/tmp}/kprof-gpu-XXXXXX") || exit 2
  running=()
  for ((share = 0; share < shares; share++)); do
    HOSTS_SHARE=$share "$0" "$@" >"$outputs/$share" 2>&1 &
    running+=($!)
  done
  bad=0
  for each in "${running[@]}"; do wait "$each" || bad=1; done
  cat "$outputs"/*
  rm -rf "$outputs"
  exit $bad
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/kprof-gpu-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
ok=0 failed=0 cases=0
declare -A ran=() known=()
ulimit -c 0

# Whether a case is to run: named by the pattern, and in our share.
wanted() { # name
  known[$1]=1 cases=$((cases + 1))
  [[ -z $only || $1 == *$only* ]] && [[ -z ${HOSTS_MATCH:-} || gpu_$1 =~ ^(${HOSTS_MATCH:-})$ ]] && [ $((cases % shares)) = "$share" ] && ran[$1]=1
}
# Whether a case has run, of which more is claimed. A claim about none is a mistake of this script.
has_run() { # name
  [ -n "${known[$1]:-}" ] || { failed=$((failed + 1)); echo "not ok - gpu_$1 is no case"; return 1; }
  [ -n "${ran[$1]:-}" ]
}

bare() { # name, settings and command...
  env LD_LIBRARY_PATH="$sim" timeout -k 5 180 "${@:2}" >"$work/$1.bare" 2>/dev/null </dev/null
}

attempt() { # name, claims, what the bare run ended with, [VARIABLE=value...] command...: sets why and took
  local name=$1 claims=$2 status=$3 at=$work/$1 began
  shift 3
  rm -rf "$at" && mkdir -p "$at"
  began=$(date +%s%N)
  env LD_LIBRARY_PATH="$sim" SIMGPU_LOG="$at/truth" SIMCUPTI_LOG="$at/cupti" SIMCUPTI_CRASH_EXIT=1 SIMCUPTI_CRASH_NULL=1 KPROF_DIR="$at/kprof" KPROF_GZIP=0 \
    timeout -k 5 180 env LD_PRELOAD="$lib" "$@" >"$at/out" 2>"$at/err" </dev/null
  why=$?
  took=$((($(date +%s%N) - began) / 1000000))
  if [ $why != $status ]; then why="status $status became $why"
  elif ! cmp -s "$work/$name.bare" "$at/out"; then why="stdout changed"
  elif grep -qav '^kprof:' "$at/err"; then why="stderr has $(grep -av '^kprof:' "$at/err" | head -n 1)"
  elif [ $took -gt $((${LIMIT:-120} * 1000)) ]; then why="took $took ms"
  else why=$(python3 "$here/check.py" "$at/truth" "$at/cupti" "$at/kprof" $claims 2>&1) && why=""
  fi
}

gpu() { # name, claims, [VARIABLE=value...] command...
  local name=$1 claims=$2 at=$work/$1 status took why
  wanted "$name" || return 0
  shift 2
  bare "$name" env "$@"
  status=$?
  for _ in 1 2 3; do # what takes too long by itself does so each time, on a busy machine once
    attempt "$name" "$claims" $status "$@"
    [[ $why == took* || $why == "CUPTI was armed late"* ]] || break
    echo "# gpu_$name $why"
  done
  if [ -z "$why" ]; then
    ok=$((ok + 1))
    echo "ok - gpu_$name"
  else
    failed=$((failed + 1))
    echo "not ok - gpu_$name: $why"
    sed 's/^/# /' "$at/err" | head -n 3
  fi
}

silent() { # name, pattern
  has_run "$1" || return 0
  if grep -aqE "$2" "$work/$1/err"; then failed=$((failed + 1)); echo "not ok - gpu_$1 says '$2'"
  else ok=$((ok + 1)); echo "ok - gpu_$1 does not say '$2'"; fi
}

says() { # name, pattern
  has_run "$1" || return 0
  if grep -aqE "$2" "$work/$1/err"; then ok=$((ok + 1)); echo "ok - gpu_$1 says '$2'"
  else failed=$((failed + 1)); echo "not ok - gpu_$1 does not say '$2'"; fi
}

whole="kernels=all traces=1 source=cupti left=on" # on: the window ends with the program, where nothing is disabled
gpu plain "$whole" "$bin/gpu" plain
gpu threads "$whole" "$bin/gpu" threads
gpu threads_100 "$whole" "$bin/gpu" threads 29 100
gpu threads_1000 "kernels=counted traces=1 left=on" "$bin/gpu" threads 5 1000
says threads_1000 'more than 512 buffers for GPU records are in use at once'
gpu threads_1000_12 "kernels=counted traces=1 left=on" SIMCUPTI_VERSION=24 "$bin/gpu12" threads 5 1000
says threads_1000_12 ', at least [1-9][0-9]* dropped'
gpu handle "$whole arrows=all" "$bin/gpu" handle
gpu static "$whole" "$bin/gpu_static" plain
gpu long "$whole" "$bin/gpu" plain 2000
for version in 18 20 21 22 23 24 26 27 28; do gpu cupti12_$version "$whole" SIMCUPTI_VERSION=$version "$bin/gpu12" plain; done
for version in 17 18; do gpu cupti11_$version "$whole" SIMCUPTI_VERSION=$version "$bin/gpu11" plain; done
for version in 130001 130100 130101 130200 130300 130400 130401 130500; do gpu cupti13_$version "$whole" SIMCUPTI_VERSION=$version "$bin/gpu" plain; done

# --- windows ----------------------------------------------------------------------------------------------------
gpu cycles_20 "kernels=200 traces=20 left=off" KPROF_SCHEDULE=wait=1,warmup=1,active=1,repeat=20 "$bin/gpu" slow 110
gpu no_warmup "kernels=40 traces=2 left=off" KPROF_SCHEDULE=wait=1,active=2,repeat=2 "$bin/gpu" slow 60
LIMIT=6 gpu finalized "traces=3 left=off cut=0" KPROF_SCHEDULE=wait=20,warmup=1,active=2,repeat=3 "$bin/gpu_cupti" finalize 120 21
gpu back_to_back "kernels=50 traces=5 left=off" KPROF_SCHEDULE=active=1,repeat=5 "$bin/gpu" slow 60
gpu warm_to_back "kernels=40 traces=4" KPROF_SCHEDULE=warmup=1,active=1,repeat=4 "$bin/gpu" slow 9 300
gpu quiet_after "kernels=10 traces=1 left=off" KPROF_SCHEDULE=active=1,repeat=1 "$bin/gpu" slow 150
silent quiet_after 'goes on recording'
gpu calls_go_on "kernels=10 traces=1 left=on" SIMCUPTI_STUCK=1 SIMCUPTI_SINGLES=1 KPROF_SCHEDULE=active=1,repeat=1 "$bin/gpu" slow 400
says calls_go_on 'CUPTI goes on recording calls of CUDA though nothing is enabled any more'
gpu only_cpu "traces=1 calls=0" KPROF_ACTIVITIES=cpu "$bin/gpu" plain
gpu cupti_off "calls=0" KPROF_CUPTI=off "$bin/gpu" plain
says cupti_off 'CUDA calls are recorded by hooks, not by CUPTI'

# --- versions that are used less freely (cuptirule.def) -----------------------------------------------------------
gpu cupti_refused "armed=0 traces=1" SIMCUPTI_VERSION=130000 "$bin/gpu" plain
says cupti_refused 'CUDA calls are recorded by hooks, not by CUPTI: kernels of cuBLAS, cuDNN, NCCL, Triton .* are missing'
says cupti_refused 'no GPU records from CUPTI: CUPTI 130000 \(CUDA 13.0\): it may hang the program'
windows=("KPROF_SCHEDULE=wait=15,warmup=1,active=2,repeat=2" GPU_PAUSE=25) # the first has drained before the second
gpu one_window "armed=1 traces=2 kernels=40 left=off" "${windows[@]}" SIMCUPTI_VERSION=130100 "$bin/gpu" graph 180 1
says one_window 'GPU work is not recorded any more: CUPTI 130100 \(CUDA 13.1\): after its first window'
gpu one_window_captured_late "armed=1 traces=2 kernels=20 left=off" "${windows[@]}" SIMCUPTI_VERSION=130100 "$bin/gpu" graph 180 28
gpu windows_without_graphs "armed=2 traces=2 kernels=40 left=off" "${windows[@]}" SIMCUPTI_VERSION=130100 "$bin/gpu" slow 180
for version in 130001 130101; do
  gpu windows_of_a_sound_one_$version "armed=2 traces=2 kernels=80 left=off" "${windows[@]}" SIMCUPTI_VERSION=$version "$bin/gpu" graph 180 1
done
gpu static_one_window "armed=2 traces=2 left=off" "${windows[@]}" SIMCUPTI_VERSION=130100 "$bin/gpu_static" graph 160 28 # seen when its kernels come
says static_one_window 'GPU work is not recorded any more: CUPTI 130100'
for version in 18 22 23; do
  gpu early_12_$version "armed=3 traces=2 kernels=80 left=off" "${windows[@]}" SIMCUPTI_VERSION=$version GPU_OPENS=libcupti.so.12 "$bin/gpu12" graph 180 1
done
gpu not_early_12_24 "armed=2 traces=2 kernels=80 left=off" "${windows[@]}" SIMCUPTI_VERSION=24 GPU_OPENS=libcupti.so.12 "$bin/gpu12" graph 180 1
gpu too_late "armed=0 traces=2" "${windows[@]}" SIMCUPTI_VERSION=22 "$bin/gpu12" graph 180 1
says too_late 'no GPU records from CUPTI: CUPTI 22 \(CUDA 12.4\): it may hang or crash a program that captured CUDA graphs'

# --- off again at a limit -----------------------------------------------------------------------------------------
gpu limit_minutes "traces=1 left=off armed=1 gpu_limit=minutes" KPROF_TEST_FAIL=gpu_minutes:2:1 "$bin/gpu" slow 300
says limit_minutes 'GPU work is not recorded any more: 60 minutes without a schedule'
gpu limit_records "traces=1 left=off armed=1 gpu_limit=records" SIMCUPTI_VERSION=130001 KPROF_TEST_FAIL=gpu_records:2:1 "$bin/gpu" slow 300
says limit_records 'GPU work is not recorded any more: 20 million records without a schedule'
gpu limit_not_with_a_schedule "traces=1 armed=1" KPROF_SCHEDULE=active=100000 KPROF_TEST_FAIL=gpu_minutes:1+:1 "$bin/gpu" slow 150
silent limit_not_with_a_schedule 'not recorded'
gpu limit_times "traces=1 left=off armed=1 gpu_limit=times" SIMCUPTI_ZERO_EVERY=1 "$bin/gpu" slow 300
says limit_times 'GPU work is not recorded any more: CUPTI gives kernels without times'
gpu limit_times_in_a_window "traces=2 armed=2 left=off" KPROF_SCHEDULE=active=200,repeat=2 SIMCUPTI_ZERO_EVERY=1 "$bin/gpu" slow 500
says limit_times_in_a_window 'not recorded for the rest of this window: CUPTI gives kernels without times'
gpu limit_spool "traces=1 left=off armed=1 gpu_limit=spool" KPROF_MAX_MB=2 "$bin/gpu" slow 4000 1
says limit_spool 'GPU work is not recorded any more: there is no room in the spool'

# --- what CUPTI may do to its records -----------------------------------------------------------------------------
gpu late "$whole" SIMCUPTI_LATE_MS=300 "$bin/gpu" plain
gpu late_window "kernels=20 traces=1 left=off" SIMCUPTI_LATE_MS=400 KPROF_SCHEDULE=wait=1,warmup=1,active=2,repeat=1 "$bin/gpu" slow 60
gpu out_of_order "$whole" SIMCUPTI_SHUFFLE=1 "$bin/gpu" threads
gpu holes "$whole" SIMCUPTI_HOLES=7 "$bin/gpu" plain
gpu cut_buffer "kernels=100" SIMCUPTI_TRUNCATE=1 "$bin/gpu" plain
says cut_buffer ', at least [1-9][0-9]* dropped'
gpu dropped "dropped=counted" SIMCUPTI_DROP=9 "$bin/gpu" plain
says dropped ', [1-9][0-9]* dropped'
gpu odd_kernel "$whole gpu_odd_kernels=1" SIMCUPTI_ODD=7 "$bin/gpu" plain
gpu no_times "kernels=80 no_time=20 gpu_invalid_kernel=20" SIMCUPTI_ZERO_EVERY=5 "$bin/gpu" plain
gpu never_ends "kernels=49 no_time=71 left=on" SIMGPU_HANG=50 "$bin/gpu" pending 2
gpu clock_after_idle "$whole" SIMCUPTI_STALE_NS=1000000 "$bin/gpu" idle

# --- hangs: the host goes on, and ends in time ----------------------------------------------------------------------
LIMIT=6 # 4 for a call that hangs, or 3.5 for what is under way at exit; the rest is for a slow machine
inside=SIMCUPTI_CRASH_EXIT=0 # nobody gets a thread out of a call that never returns
gpu hang_in_flush "" $inside SIMCUPTI_HANG=FlushAll "$bin/gpu" plain
# CUPTI gives nothing, and the trace has the steps alone
gpu hang_in_enable "traces=1" $inside SIMCUPTI_HANG=Enable "$bin/gpu" plain
gpu hang_in_register "traces=1" $inside SIMCUPTI_HANG=RegisterCallbacks "$bin/gpu" plain
gpu hang_at_exit "" $inside SIMCUPTI_HANG=exit "$bin/gpu" plain
LIMIT=9 gpu hang_in_the_middle "" $inside SIMCUPTI_HANG=FlushAll "$bin/gpu" slow 150
# counted: one call stalls. Windows in which nothing was recorded have no trace. Hundred that each wait a second take longer than this
# bound on any machine; their traces alone take 15 to 34 s on a busy one
LIMIT=95 gpu hang_in_many_windows "stalls=1" $inside SIMCUPTI_HANG=ActivityEnable KPROF_SCHEDULE=wait=1,active=2,repeat=100 "$bin/gpu" slow 300
says hang_in_many_windows 'a CUPTI call has not returned for 4 s'

# --- exit disables nothing and waits for no device: a collective whose other ranks are gone never ends -------------------
LIMIT=3
gpu hang_in_disable "$whole" SIMCUPTI_HANG=Disable "$bin/gpu" plain
gpu stuck_at_exit "kernels=49 no_time=71 left=on" SIMGPU_HANG=50 SIMCUPTI_SYNC=Disable,SetAttribute,RegisterCallbacks "$bin/gpu" pending 2
silent stuck_at_exit 'CUPTI'
LIMIT=6 gpu slow_at_exit "traces=1 left=on" SIMCUPTI_SLOW=GetNumDropped:1000 "$bin/gpu" plain

# --- slow is not dead: a call of 5.5 s costs the window it lasts through, the next one is whole --------------------------
LIMIT=20
gpu slow_flush "kernels=10 traces=2 left=off cut=1 stalls=1" SIMCUPTI_SLOW=ActivityFlushAll:5500:1 KPROF_SCHEDULE=wait=5,warmup=1,active=1,repeat=2 "$bin/gpu" slow 16 840
says slow_flush 'a CUPTI call has not returned for 4 s'
says slow_flush 'CUPTI has answered after [56] s: GPU work is recorded again'
gpu slow_enable "kernels=10 traces=2 left=off cut=1" SIMCUPTI_SLOW=ActivityEnable:5500:3 KPROF_SCHEDULE=wait=5,warmup=1,active=1,repeat=2 "$bin/gpu" slow 16 840
gpu slow_disable "kernels=20 traces=2 left=off cut=0" SIMCUPTI_SLOW=ActivityDisable:5500:1 KPROF_SCHEDULE=wait=7,warmup=1,active=1,repeat=2 "$bin/gpu" slow 20 840
unset LIMIT

# --- who else is there ------------------------------------------------------------------------------------------------
gpu other_subscriber "$whole" SIMCUPTI_OTHER_TOOL=nsys "$bin/gpu" plain
gpu v2_in_use "left=off" SIMCUPTI_V2_USED=1 NSYS_PROFILING_SESSION_ID=1 "$bin/gpu" plain
says v2_in_use 'no GPU records: CUPTI is taken by Nsight Systems'
silent v2_in_use 'recorded by hooks'
gpu injection_taken "traces=1 source=cupti left=on" CUDA_INJECTION64_PATH=/nowhere.so "$bin/gpu" plain

# --- drivers that are none ----------------------------------------------------------------------------------------------
gpu stub "traces=0 calls=0" SIMGPU_STUB=1 SIMCUPTI_CRASH_EARLY=1 "$bin/gpu" count
gpu no_device "traces=0 calls=0" SIMGPU_NO_DEVICE=1 SIMCUPTI_CRASH_EARLY=1 "$bin/gpu" count
gpu hidden_devices "$whole devices=2" SIMGPU_DEVICES=2 SIMCUPTI_INVISIBLE=6 "$bin/gpu" plain
gpu no_driver "traces=0 calls=0" SIMCUPTI_CRASH_EARLY=1 SIMCUPTI_VERSION=130200 "$bin/gpu_cupti_only"
gpu crashes_before_cuinit "$whole" SIMCUPTI_CRASH_EARLY=1 SIMCUPTI_VERSION=130200 "$bin/gpu" plain
gpu no_cupti "calls=0" LD_LIBRARY_PATH="$bin/nocupti" "$bin/gpu" plain

# --- the process's own life ---------------------------------------------------------------------------------------------
gpu children "kernels=60 left=on" "$bin/gpu" children 6
gpu reset "kernels=all left=on" "$bin/gpu" reset
gpu pending "$whole" "$bin/gpu" pending
gpu _exit "traces=0" "$bin/gpu" _exit
gpu ends_while_we_arm "" SIMCUPTI_SLOW=ActivityEnable:60 "$bin/gpu" count
gpu out_of_memory "kernels=0" SIMGPU_FAIL=cuMemAlloc_v2:1:2 "$bin/gpu" plain
for nth in 1 2 3 4; do gpu mmap_fails_$nth "" KPROF_TEST_FAIL=mmap:$nth+:12 "$bin/gpu" plain; done
gpu thread_fails "" KPROF_TEST_FAIL=thread:1+:11 "$bin/gpu" plain

echo "# gpu: $ok passed, $failed failed"
echo "1..$((ok + failed))"
[ "$failed" = 0 ]
