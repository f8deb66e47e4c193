#!/usr/bin/env bash
# run.sh - runs each hostile program twice, beside an empty preloaded library and beside ours, and compares
#
# usage: run.sh FOLDER_OF_PROGRAMS LIBKPROF_SO [PATTERN]
# Compared: standard output, standard error (but for lines that begin "kprof:"), exit status, and the files left behind.
# HOSTS_IN=ROOT HOSTS_SKIPS=FILE: programs of another processor, run in that root (test/arm64/files.mk); what FILE names (or FILE:FILE) is skipped.
# HOSTS_HEAVY=1: also what takes half a minute each (make hosts-heavy).
# HOSTS_EVERY=N, with HOSTS_SKIPS: of the tests that are left each Nth runs, others with each HOSTS_SEED.
# HOSTS_MATCH=REGEX: only tests of these names run, and no other is counted (scripts/test --fast).
# Speaks TAP, with a total; what cannot run here is skipped and counted. Exit 0 when nothing failed.
set -uo pipefail
bin=$(cd "$1" && pwd) lib=$2 only=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
empty=$bin/libempty.so
work=$(mktemp -d "${TMPDIR:-/tmp}/kprof-hosts-XXXXXX") || exit 2
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
ok=0 failed=0 skipped=0
ulimit -c 0

pass() { ok=$((ok + 1)); echo "ok - $1"; }
fail() { failed=$((failed + 1)); echo "not ok - $1"; }
skip() { skipped=$((skipped + 1)); echo "ok - $1 # SKIP $2"; }
wanted() { [[ -z $only || $1 == *$only* ]] && [[ -z ${HOSTS_MATCH:-} || $1 =~ ^(${HOSTS_MATCH:-})$ ]]; }
# Where the programs run: here, or in a root of another processor, with what its emulator lacks told in KPROF_TEST_FAIL.
lacks=${HOSTS_IN:+unwiped:1+}
asked=0
skips=()
[ -z "${HOSTS_SKIPS:-}" ] || mapfile -t skips < <(tr : '\n' <<<"$HOSTS_SKIPS" | xargs -d '\n' grep -hv '^#')
cannot() { # name: a test that the place cannot run, with its reason
  local line
  [ -n "${HOSTS_SKIPS:-}" ] || return 1
  for line in "${skips[@]}"; do
    if [[ $1 =~ ^(${line%% *})$ ]]; then skip "$1" "${line#* }"; return 0; fi
  done
  asked=$((asked + 1))
  [ -n "${HOSTS_MATCH:-}" ] || [ $(((asked + ${HOSTS_SEED:-0}) % ${HOSTS_EVERY:-1})) = 0 ] || { skip "$1" "other commits run it"; return 0; }
  return 1
}

# shellcheck source=test/hosts/compare.sh
. "$here/compare.sh"
# shellcheck disable=SC2034  # compare.sh reads it
[ -z "${HOSTS_IN:-}" ] || within=("$here/../arm64/in-root" "$HOSTS_IN" "$work/cwd" KPROF_TEST_FAIL="$lacks" HOSTS_UNWIPED=1)

# Adds to $what in what the runs differ.
compared() { # folder of the run without us, folder of ours
  local status
  read -r status <"$1/status"
  case $status in 12[4-7]) what+=" it does not even run without us;" ;; esac
  compare "$1" "$2"
  what+=$differences
}
# The text of all traces below a folder whose names end so.
traces() { # folder, end of the names
  local at=()
  shopt -s globstar nullglob dotglob
  at=("$1"/**/*"$2")
  shopt -u globstar nullglob dotglob
  [ ${#at[@]} = 0 ] || gzip -dc -- "${at[@]}" 2>/dev/null
}

same() { # name, command...
  local name=$1 a b what=""
  shift
  wanted "$name" || return 0
  cannot "$name" && return 0
  a=$work/$name.empty b=$work/$name.ours
  once "$a" "$empty" "$@" 2>/dev/null
  once "$b" "$lib" "$@" 2>/dev/null
  compared "$a" "$b"
  [ -e "$work/cwd/kprof" ] && what+=" a folder was left by a program without torch;"
  if [ -z "$what" ]; then pass "$name"; return; fi
  fail "$name:$what"
  show "$a" "$b"
}
# A recording run: the host must not differ, and what was written must hold what the last argument of the first part says.
#   records NAME RANGES [VAR=value...] -- COMMAND...
#   RANGES: a number (the traces hold so many ranges), spool (a spool is left, to be recovered), any, none (no file)
declare -A base=()
records() {
  local name=$1 ranges=$2 a b n what="" vars=()
  shift 2
  wanted "$name" || return 0
  cannot "$name" && return 0
  while [ "$1" != -- ]; do vars+=("$1"); shift; done
  shift
  [ -n "${base[$*]:-}" ] || base[$*]=$work/base.${#base[@]}
  a=${base[$*]} b=$work/$name.ours
  [ -e "$a/status" ] || once "$a" "$empty" "$@" 2>/dev/null
  once "$b" "$lib" "${vars[@]}" "$@" 2>/dev/null
  compared "$a" "$b"
  if [ -s "$b/err" ]; then n=$(grep -ac '^kprof:' "$b/err"); [ "$n" -le 9 ] || what+=" $n lines on stderr;"; fi
  case $ranges in
    any) ;;
    none) [ ! -e "$work/cwd/kprof" ] || [ -z "$(find "$work/cwd/kprof" -type f 2>/dev/null)" ] || what+=" a file was left;" ;;
    spool) compgen -G "$work/cwd/kprof/*.kprof" >/dev/null || what+=" no spool is left;" ;;
    *) n=$(traces "$work/cwd/kprof" .pt.trace.json.gz | grep -aoE '"cat": ?"(cpu_op|user_annotation)"' | wc -l)
       [ "$n" = "$ranges" ] || what+=" the trace holds $n ranges, not $ranges;" ;;
  esac
  if [ -z "$what" ]; then pass "$name"; return; fi
  fail "$name:$what"
  diff "$a/out" "$b/out" | head -n 5 | sed 's/^/#   out /'
  head -n 8 "$b/err" | sed 's/^/#   err /'
}
# How often a line of the run before says so.
says() { # name, times, pattern
  wanted "$1" || return 0
  [ -e "$work/$1.ours" ] || return 0
  local n
  n=$(grep -ac -- "$3" "$work/$1.ours/err")
  if [ "$n" = "$2" ]; then pass "$1 says '$3' $2 times"; else fail "$1 says '$3' $n times, not $2"; fi
}
have() { if [ -n "${HOSTS_IN:-}" ]; then [ -x "$HOSTS_IN/usr/bin/$1" ]; else command -v "$1" >/dev/null 2>&1; fi; }

# --- the library itself -----------------------------------------------------------------------------------------
if wanted check_abi; then
  if said=$("$here/../../scripts/check-abi.sh" "$lib"); then pass "check_abi"; else fail "check_abi: $said"; fi
fi

# --- state: errno, signals, environment, limits, descriptors, threads -------------------------------------------
same state "$bin/state"
same state_off env KPROF=0 "$bin/state"
same state_schedule env KPROF_SCHEDULE=wait=1,warmup=1,active=1 "$bin/state"
same state_bad_values env KPROF_SCHEDULE=wait=x KPROF_MAX_MB=-1 KPROF_DIR=/proc/none KPROF_STEP=never "$bin/state"
same own_malloc "$bin/own_malloc"
have timeout && same timeout timeout 60 sh -c 'exit 3'

# --- loading: RUNPATH, RTLD_NEXT, DEEPBIND, namespaces, 1000 times ------------------------------------------------
same loading_lazy "$bin/loading" "$bin"
same loading_now "$bin/loading_now" "$bin"
same cancels "$bin/cancels"
same storm "$bin/storm"
same threads "$bin/threads"

# --- a signal handler leaves by siglongjmp what it struck, hooks of ours too: the thread is recorded on (docs/decisions/037) ---------
for how in own altstack; do
  for malloc in 0 count trace; do
    name=jumps_${how}_$malloc
    records "$name" any KPROF_MALLOC=$malloc -- "$bin/jumps" "$bin" $how 200 2
    if wanted "$name" && [ -e "$work/$name.ours" ]; then
      n=$(traces "$work/cwd/kprof" .gz | grep -ac '"aten::after"')
      if [ "$n" = 4000 ]; then pass "$name is recorded to the end"; else fail "$name: of 4000 ops after the jumps $n are recorded ($(grep -a '^kprof:' "$work/$name.ours/err" | tail -n 1))"; fi
    fi
  done
done

# ... and where it leaves a thread's very first hook
records births any -- "$bin/births" "$bin" 400
if wanted births && [ -e "$work/births.ours" ]; then
  n=$(traces "$work/cwd/kprof" .gz | grep -ac '"aten::after"')
  if [ "$n" = 4000 ]; then pass "births that are struck are births"; else fail "births: of 4000 ops after the jumps $n are recorded"; fi
fi

# --- the heap, off, counted, traced: glibc's, one without a lock, one of the program's own ---------------------------------
same heap "$bin/heap" "$bin" glibc
same heap_bump "$bin/heap_bump" "$bin" lock_free
for how in count trace; do
  records "heap_$how" any KPROF_MALLOC=$how -- "$bin/heap" "$bin" glibc
  says "heap_$how" 1 '^kprof: wrote .* allocations, 0 dropped'
  records "heap_bump_$how" any KPROF_MALLOC=$how -- "$bin/heap_bump" "$bin" lock_free
  says "heap_bump_$how" 1 '^kprof: wrote .* allocations, 0 dropped'
  for other in children threads storm close_fds daemon cancels; do
    records "heap_${other}_$how" any KPROF_MALLOC=$how -- "$bin/$other"
  done
  for ending in return exit _exit quick_exit abort segv kill term waited thread main_leaves cancel; do
    records "heap_ending_${ending}_$how" any KPROF_MALLOC=$how -- "$bin/ending" $ending
  done
  says "heap_ending_term_$how" 1 '^kprof: killed by signal 15'
  says "heap_ending_waited_$how" 0 'killed by signal'
  addresses=300000
  [ "$how" = count ] || addresses=400000 # the tables for stacks
  # four arenas: without a bound glibc alone takes 64 MB for each thread that meets another, and a thread's stack may find no room, with us or without
  for limit in '-n 8' "-v $addresses" '-f 0' '-s 128'; do
    records "heap_ulimit${limit// /}_$how" any KPROF_MALLOC=$how -- env MALLOC_ARENA_MAX=4 bash -c "trap '' XFSZ; ulimit $limit; exec \"\$0\" \"\$@\"" "$bin/heap" "$bin" glibc
  done
done

# a trace of the heap has no holes, however many threads hurry: 800,000 blocks of theirs, and what pthread_create takes
records heap_rush any KPROF_MALLOC=trace -- "$bin/heap" "$bin" rush
says heap_rush 1 '^kprof: wrote .* (0 ops, 8000[0-9][0-9] allocations, 0 dropped, threads waited [1-9][0-9]* ms for room)'

# ... nor where the loader's lock is held meanwhile, for which whoever looks for new libraries waits: no block is lost, and no op
blocks=200000 ops=500000
[ -z "${HOSTS_IN:-}" ] || blocks=40000 ops=100000 # all of them take 13 s of an emulator
records holds $((2 * ops)) KPROF_MALLOC=trace -- "$bin/holds" "$bin" $blocks 1000 $ops
says holds 1 "^kprof: wrote .* ($((2 * ops)) ops, ${blocks%00}[0-9][0-9] allocations, 0 dropped"

# ... at full weight, on request (make hosts-heavy): five million blocks, the lock held for five seconds, a million ops a second for eight
if [ -n "${HOSTS_HEAVY:-}" ]; then
  records holds_heavy any KPROF_MALLOC=trace -- "$bin/holds" "$bin" 5000000 5000 4000000
  says holds_heavy 1 '^kprof: wrote .* (8000000 ops, 50000[0-9][0-9] allocations, 0 dropped'
fi

# what constructors of libraries that come later take is recorded from their first block on: 200,002, and what dlopen takes
for how in count trace; do
  records "builds_$how" any KPROF_MALLOC=$how -- "$bin/builds" "$bin"
  says "builds_$how" 1 '^kprof: wrote .* (0 ops, 2000[0-9][0-9] allocations, 0 dropped'
done

# torch is found when exit() destroys it already, or just before: no helper thread calls it then
for stay in 0 40 90 140 190; do
  records "leaves_$stay" any KPROF_MALLOC=count -- "$bin/leaves" "$bin" 30 $stay
done

# programs that execute the next: what each left becomes a trace, or goes where it is empty
records chain_symbols none KPROF_SYMBOLS='no_such_*' -- "$bin/chain" 4
says chain_symbols 1 '^kprof: KPROF_SYMBOLS: no call to'
records shell_symbols none KPROF_SYMBOLS='no_such_*' -- bash -c 'for i in 1 2 3; do "$0" 0; (exec "$0" 1); done; exit 7' "$bin/chain"
says shell_symbols 1 '^kprof: KPROF_SYMBOLS: no call to'
records chain_heap any KPROF_MALLOC=count -- "$bin/chain" 4
says chain_heap 1 '^kprof: wrote 4 traces of programs that this process ran before'
if wanted chain_heap && [ -e "$work/chain_heap.ours" ]; then
  if ls "$work"/cwd/kprof/*.kprof >/dev/null 2>&1; then fail "chain_heap left a spool"; else pass "chain_heap leaves no spool"; fi
fi
# spools of other processes that have this number in another place, which may write still: copies with one byte of who they are changed
for other in 'start s/(process_start=)./\1x/' 'space s/(process_start=[0-9]+ pid:.)./\1x/' 'boot s/(process_start=[0-9]+ [^ ]+ )./\1x/' 'pipe -'; do
  name=chain_other_${other%% *}
  # shellcheck disable=SC2016
  records "$name" any KPROF_MALLOC=count -- bash -c 'f=$(echo kprof/*_$$.*.kprof) g=${f%.kprof}9.kprof; [ -e "$f" ] && if [ "$1" = - ]; then mkfifo "$g"; else LC_ALL=C sed -E "$1" "$f" >"$g"; fi; exec "$0" 4' "$bin/chain" "${other#* }"
  says "$name" 1 '^kprof: wrote 5 traces of programs that this process ran before'
  if wanted "$name" && [ -e "$work/$name.ours" ]; then
    n=$(find "$work/cwd/kprof" -name '*9.kprof' | wc -l)
    if [ "$n" = 1 ]; then pass "$name leaves what is not its own"; else fail "$name: $n spools are left, not the one of another process"; fi
  fi
done

# our threads take no low descriptor, not even for a moment, while nothing is written
records lowest any KPROF_CHILDREN=1 KPROF_MALLOC=count KPROF_SCHEDULE=wait=100000,warmup=1,active=1 KPROF_STEP=time:20ms -- "$bin/lowest"
records lowest_trace any KPROF_MALLOC=trace -- "$bin/lowest"

# children of a program that only allocates: recorded from their first allocation on
for how in count trace; do
  records "heap_forked_$how" any KPROF_CHILDREN=1 KPROF_MALLOC=$how -- "$bin/small" "$bin"
  says "heap_forked_$how" 1 '^kprof: wrote 3 traces of forked children'
  if wanted "heap_forked_$how" && [ -e "$work/heap_forked_$how.ours" ]; then
    n=$(zcat "$work"/cwd/kprof/children/*.gz 2>/dev/null | grep -ao '"kprof_heap": {"mode":"'$how'","allocations":100,"frees":100,"bytes":10000' | wc -l)
    if [ "$n" = 3 ]; then pass "heap_forked_$how counts 100 in each"; else fail "heap_forked_$how counts 100 in $n of 3"; fi
  fi
done
# without /dev/shm what a child records within its first 100 ms ends with it, unless it calls exit; each one is counted
name=heap_forked_no_shm
if [ -n "${HOSTS_IN:-}" ]; then wanted $name && skip $name "the emulator needs KPROF_TEST_FAIL itself"
else records $name any KPROF_CHILDREN=1 KPROF_MALLOC=trace KPROF_TEST_FAIL=shm:1+:0 -- "$bin/small" "$bin"; fi
if wanted $name && [ -e "$work/$name.ours" ]; then
  n=$(sed -nE 's/^kprof: (wrote )?([0-9]+) (traces? of forked|forked child).*/\2/p' "$work/$name.ours/err" | awk '{ n += $1 } END { print n + 0 }')
  if [ "$n" = 3 ]; then pass "$name counts 3 children"; else fail "$name counts $n of 3 children: $(cat "$work/$name.ours/err")"; fi
fi
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) # not a shell script that looks for one
for how in fork spawn; do
  [ -n "$python" ] || { wanted "heap_workers_$how" && skip "heap_workers_$how" "no python3 here"; continue; }
  records "heap_workers_$how" any KPROF_CHILDREN=1 KPROF_MALLOC=trace -- "$python" "$here/workers.py" $how
  says "heap_workers_$how" 1 '^kprof: wrote [2-9] traces of forked children'
done

# calls of constructors of libraries that come later are recorded from the first on: 1,000 of each of four
records begins_symbols any KPROF_SYMBOLS=begun_call -- "$bin/begins" "$bin"
says begins_symbols 1 '^kprof: wrote .* (0 ops, 4000 calls of functions, 0 dropped'

# --- calls of functions by name: values, exceptions, jumps, stacks of all kinds, threads that end -----------------------------
for how in lazy now fixed; do
  if [ ! -x "$bin/calls_$how" ]; then skip "calls_$how" "no C++ compiler, or no stubs for this processor"; continue; fi
  same "calls_$how" "$bin/calls_$how"
  for what in 'calls_*' '*'; do
    [ "$what" = '*' ] && name=calls_${how}_all || name=calls_${how}_own
    records "$name" any KPROF_SYMBOLS="$what" -- "$bin/calls_$how"
    says "$name" 1 '^kprof: wrote .* calls of functions'
  done
  records "calls_${how}_heap" any KPROF_SYMBOLS='*' KPROF_MALLOC=trace -- "$bin/calls_$how"
  records "calls_${how}_steps" any KPROF_SYMBOLS='calls_*' -- "$bin/calls_$how" steps
  records "calls_${how}_vforks" any KPROF_SYMBOLS='*' -- "$bin/calls_$how" vforks
  says "calls_${how}_vforks" 1 '^kprof: wrote .* calls of functions, 0 dropped'
  for other in threads storm cancels children daemon close_fds; do
    [ "$how" = now ] && records "calls_$other" any KPROF_SYMBOLS='*' -- "$bin/$other"
  done
  for ending in return exit _exit quick_exit abort segv kill thread main_leaves cancel; do
    [ "$how" = now ] && records "calls_ending_$ending" any KPROF_SYMBOLS='*' -- "$bin/ending" $ending
  done
done

# --- children ---------------------------------------------------------------------------------------------------
same children "$bin/children"
same children_recorded env KPROF_CHILDREN=1 "$bin/children"
same daemon "$bin/daemon"
same chain "$bin/chain"
same env_empty env -i "$bin/state"
same close_fds "$bin/close_fds"
same daemon_recorded env KPROF_CHILDREN=1 "$bin/daemon"
same chain_recorded env KPROF_CHILDREN=1 "$bin/chain"
same bash_pipes_recorded env KPROF_CHILDREN=1 bash -c 'for i in 1 2 3 4 5; do (echo $i | cat | tr 1-5 a-e; exit $i); echo $?; done; wait; ls /proc/self/fd | wc -l'
same bash_pipes bash -c 'for i in 1 2 3 4 5; do (echo $i | cat | tr 1-5 a-e; exit $i); echo $?; done; wait; ls /proc/self/fd | wc -l'
have python3 && same python3 python3 -c 'import ctypes, subprocess, json, sqlite3, ssl, threading; print(subprocess.run(["sh", "-c", "echo hi"], capture_output=True)); print(ctypes.CDLL(None).getpid() > 0)'
have perl && same perl perl -e 'use POSIX; print "perl\n"; my $p = fork; if (!$p) { POSIX::_exit(3) } wait; print $? >> 8, "\n"'
have make && same make make -s -f - all <<<''
have tar && same coreutils bash -c 'seq 2000 >a; sort -R a | sort -n | cksum; gzip -9n a; zcat a.gz | tail -n 1; tar cf - a.gz | tar tf -'

# --- endings ----------------------------------------------------------------------------------------------------
for how in return exit _exit quick_exit abort segv fault term kill pipe thread main_leaves cancel; do
  same "ending_$how" "$bin/ending" $how
done
same ending_static "$bin/ending_static" exit

# a host that limits its own memory finds in it what it finds without us
for what in 'as 400' 'as 1500' 'as 6000' 'as_late 400' 'as_late 3000'; do
  # shellcheck disable=SC2086
  for mode in plain: schedule:KPROF_SCHEDULE=wait=0,active=1 trace:KPROF_MALLOC=trace 'calls:KPROF_SYMBOLS=*'; do
    records "budget_${what/ /_}_${mode%%:*}" any ${mode#*:} -- "$bin/budget" "$bin" $what
  done
done
for what in locks locks_now locks_next locks_touched; do
  for mode in plain: schedule:KPROF_SCHEDULE=wait=0,active=1 count:KPROF_MALLOC=count trace:KPROF_MALLOC=trace 'calls:KPROF_SYMBOLS=*'; do
    records "budget_${what}_${mode%%:*}" any ${mode#*:} -- "$bin/budget" "$bin" $what
  done
done
# a host that allows itself few descriptors has them all
for n in 4 5 6 12 60; do
  for mode in plain: schedule:KPROF_SCHEDULE=wait=0,active=1 trace:KPROF_MALLOC=trace log:KPROF_LOG=kprof/lines.log children:KPROF_CHILDREN=1; do
    records "fewfiles_${n}_${mode%%:*}" any ${mode#*:} -- "$bin/fewfiles" "$bin" $n
  done
  records "fewfiles_${n}_late" any -- "$bin/fewfiles" "$bin" $n late
done
# a main thread that ends otherwise: status, and that it ends at all
for how in raw raw0 raw_later raw_thread raw_status killed uring uring_thread; do
  for mode in plain: schedule:KPROF_SCHEDULE=wait=0,active=1 trace:KPROF_MALLOC=trace 'calls:KPROF_SYMBOLS=*'; do
    # shellcheck disable=SC2086
    LIMIT=30 records "lasts_${how}_${mode%%:*}" any ${mode#*:} -- "$bin/lasts" "$bin" $how
  done
  if grep -qs '^no ring' "$work/lasts_${how}_plain.ours/out"; then skip "lasts_$how" "the kernel gives no ring of io_uring here"; fi
done

# --- limits, sandboxes, other users ---------------------------------------------------------------------------------
for limit in nofile as fsize stack data nproc; do same "limit_$limit" "$bin/limits" $limit; done
for limit in '-n 4' '-v 200000' '-f 0' '-s 128' '-d 4000'; do
  same "ulimit${limit// /}" bash -c "ulimit $limit; exec \"\$0\" none" "$bin/limits"
done
for answer in eperm enosys kill thread thread_raw strict strict_raw asks; do same "sandbox_$answer" "$bin/sandbox" $answer; done
for how in count trace; do
  records "confined_$how" any KPROF_MALLOC=$how -- "$bin/sandbox" thread
  says "confined_$how" 1 '^kprof: wrote .* allocations, 0 dropped'
  says "confined_$how" 1 '^kprof: the program confines itself'
  records "confined_children_$how" any KPROF_CHILDREN=1 KPROF_MALLOC=$how -- bash -c '"$0" thread; (x=$(seq 99); exec "$0" thread); "$0" thread & wait $!; echo $?' "$bin/sandbox"
done
for how in thread_raw strict strict_raw; do
  records "confined_$how" any KPROF_MALLOC=trace -- "$bin/sandbox" $how
  says "confined_$how" 1 '^kprof: wrote .* [1-9][0-9]* allocations, 0 dropped'
  says "confined_$how" 1 '^kprof: the program confines itself'
done
same bynumber "$bin/bynumber"
for mode in KPROF_MALLOC=trace 'KPROF_SYMBOLS=*'; do records "bynumber_$mode" any "$mode" -- "$bin/bynumber"; done
records confined_asks any KPROF_MALLOC=trace -- "$bin/sandbox" asks
says confined_asks 0 '^kprof: the program confines itself'
# whoever reads the processor's counter gets SIGSEGV from then on
for raw in "" raw; do
  for when in idle heap ops inside late; do
    name=tsc_$when${raw:+_$raw}
    # shellcheck disable=SC2086
    case $when in idle | heap) same "$name" "$bin/tsc" "$bin" $when $raw ;; esac
    # shellcheck disable=SC2086
    for mode in plain: schedule:KPROF_SCHEDULE=wait=0,active=1 trace:KPROF_MALLOC=trace calls:KPROF_SYMBOLS=*; do
      records "${name}_${mode%%:*}" any ${mode#*:} -- "$bin/tsc" "$bin" $when $raw
    done
    says "${name}_trace" 1 "^kprof: the program forbids itself the processor's clock"
    case $when in idle | late) ;; *) says "${name}_trace" 1 '^kprof: wrote' ;; esac
    [ $when != late ] || says "${name}_plain" 1 "^kprof: nothing is recorded: the program forbade itself the processor's clock"
  done
done
if [ -n "${HOSTS_IN:-}" ]; then
  skip jail "there is no other user in this root"
  skip setuid "there is no other user in this root"
elif [ "$(id -u)" = 0 ]; then
  same jail "$bin/jail"
  for how in unshare keeps threads vfork looks; do
    same "solo_$how" "$bin/solo" $how
    records "solo_${how}_trace" any KPROF_MALLOC=trace -- "$bin/solo" $how
    records "solo_${how}_windows" any KPROF_MALLOC=count KPROF_SCHEDULE=wait=0,active=1 KPROF_STEP=time:10ms KPROF_EXPORT=none -- "$bin/solo" $how
  done
  if have setpriv; then
    cp "$bin/state" "$work/setuid_state" && chown 0:0 "$work/setuid_state" && chmod 4755 "$work/setuid_state"
    same setuid setpriv --reuid 65534 --clear-groups "$work/setuid_state"
  else
    skip setuid "no setpriv here"
  fi
else
  skip jail "needs root"
  skip solo "needs root"
  skip setuid "needs root"
fi
# KPROF_CHILDREN=1 where another user can write: he ends no program, and nothing of his gets into its traces
others() { # name, what he does, whose folder, what our lines must say
  local name=others_$1 what=$2 whose=$3 n
  wanted "$name" || return 0
  if [ -n "${HOSTS_IN:-}" ]; then skip "$name" "there is no other user in this root"; return; fi
  if [ "$(id -u)" != 0 ]; then skip "$name" "needs root"; return; fi
  have setpriv || { skip "$name" "no setpriv here"; return; }
  if ! setpriv --reuid 52001 --clear-groups test -r "$lib" -a -x "$bin/other_user"; then skip "$name" "another user cannot read these files"; return; fi
  records "$name" any KPROF_CHILDREN=1 KPROF_SCHEDULE="${5:-}" KPROF_TEST_FAIL="${6:-}" -- "$bin/other_user" "$bin" "$what" "$whose"
  says "$name" 1 "$4"
  n=$(traces "$work/cwd/kprof" .gz | grep -ac aten::other_user)
  if [ "$n" = 0 ]; then pass "$name leaves his content out"; else fail "$name: $n lines of his are in the traces"; fi
}
others swap swap theirs 'children belongs to another user, is not a folder'
others cut cut theirs 'children belongs to another user, is not a folder'
others family family theirs 'children belongs to another user, is not a folder' wait=1,active=1 shm:1+ # without /dev/shm the file lies in that folder
others swap_sticky swap sticky 'is not a file of this user alone'
others cut_sticky cut sticky 'is not a file of this user alone'
others family_sticky family sticky 'belongs to another user or has a second name' wait=1,active=1 shm:1+
# programs built with a sanitizer, its runtime in the program or beside it
export ASAN_OPTIONS=allocator_may_return_null=1:verify_asan_link_order=0:detect_leaks=0 TSAN_OPTIONS=allocator_may_return_null=1:report_bugs=0
for how in address thread undefined; do
  short=${how:0:1}san
  [ $how = undefined ] && short=ubsan
  for kind in static shared; do
    name=sanitizer_${how}_$kind flags=()
    wanted "$name" || continue
    [ $kind = static ] && flags=("-static-lib$short")
    if ! ${CC:-gcc} -D_GNU_SOURCE -w -O1 -fno-builtin-malloc -fno-builtin-free -fsanitize=$how "${flags[@]}" -o "$work/$name" "$here/small.c" -pthread 2>/dev/null; then
      skip "$name" "this compiler has no lib$short"
      continue
    fi
    same "$name" "$work/$name" "$bin" modest
    for heap in count trace; do records "${name}_$heap" any KPROF_MALLOC=$heap -- "$work/$name" "$bin" modest; done
  done
done
unset ASAN_OPTIONS TSAN_OPTIONS
if have musl-gcc; then
  musl-gcc -o "$work/musl" "$here/chain.c" && same musl "$work/musl" 0
else
  skip musl "no musl-gcc here"
fi

# --- recording, on a torch of one file (test/doubles/libtorch_double.c) -----------------------------------------------------
trains=("$bin/trains" "$bin")
records train_plain 2000 -- "${trains[@]}" plain
records train_children 4000 -- "${trains[@]}" children
records train_children_recorded 5000 KPROF_CHILDREN=1 -- "${trains[@]}" children # ten of the children are forked
# what children leave goes while their parent runs, and is bounded in sum (docs/decisions/086)
records train_children_short_lived 18100 KPROF_CHILDREN=1 -- "${trains[@]}" short_lived 60 # 60 steps of children, 121 of the parent
says train_children_short_lived 1 '^kprof: wrote 60 traces of forked children'
records train_children_together any KPROF_CHILDREN=1 KPROF_MAX_MB=32 -- "${trains[@]}" together 20
says train_children_together 1 '^kprof: wrote 8 traces of forked children'
says train_children_together 1 '^kprof: forked children are not recorded from here on'
says train_children_together 1 '^kprof: 12 forked children recorded nothing'
records train_children_windows any KPROF_CHILDREN=1 KPROF_SCHEDULE=wait=1,active=3,repeat=3 -- "${trains[@]}" children
# no thread to export beside the host, and exit is late from its first window on: eight are written, the rest stays
records train_late_at_exit spool KPROF_SCHEDULE=active=1 KPROF_TEST_FAIL="${lacks:+$lacks,}thread:3+,late:1+" -- "${trains[@]}" slow
says train_late_at_exit 1 '^kprof: wrote 8 traces'
says train_late_at_exit 1 '^kprof: writing the traces took too long: [0-9]* more recordings stay in'
if wanted train_late_at_exit && [ -e "$work/train_late_at_exit.ours" ]; then
  n=$(traces "$work/cwd/kprof" .pt.trace.json.gz | grep -av '"ProfilerStep#' | grep -aoE '"cat": ?"(cpu_op|user_annotation)"' | wc -l)
  said=$(grep -a '^kprof: wrote' "$work/train_late_at_exit.ours/err" | grep -oE '[0-9]+ ops' | head -n 1)
  if [ "$n" -gt 0 ] && [ "$said" = "$n ops" ]; then pass "train_late_at_exit says the ops of what it wrote"; else fail "train_late_at_exit: $n ops are written, it says ${said:-none}"; fi
fi
records train_children_ulimit any KPROF_CHILDREN=1 -- bash -c 'ulimit -f 300; exec "$0" "$@" | cat; exit ${PIPESTATUS[0]}' "${trains[@]}" children
says train_children_ulimit 1 'forked children are not recorded'
# as a program that ran ops leaves it when it executes another
records train_children_executed 5000 KPROF_CHILDREN=1 -- bash -c 'mkdir -p kprof/children; touch "kprof/children/.$$-$(cut -d" " -f22 /proc/$$/stat).family"; exec "$0" "$@"' "${trains[@]}" children
says train_children_executed 0 'forked children are not recorded'
# cat ends with the daemon
records train_daemon_recorded any KPROF_CHILDREN=1 -- bash -c '"$0" "$@" | cat; exit ${PIPESTATUS[0]}' "${trains[@]}" daemon
says train_daemon_recorded 1 '^kprof: kept .*, 1000 events'
records train_threads 18000 -- "${trains[@]}" threads
for how in close_fds take_fds chdir; do records "train_$how" 2000 -- "${trains[@]}" $how; done
for how in kill fault abort _exit quick_exit execs; do records "train_$how" spool -- "${trains[@]}" $how; done
records train_fault_ring spool KPROF_RING=5s -- "${trains[@]}" fault
# of three seconds the last is left, the range around it, too, and nothing that was before
records train_ring spool KPROF_RING=1s -- "${trains[@]}" dies_in_ring
if wanted train_ring && [ -e "$work/train_ring.ours" ] && [ -z "${HOSTS_IN:-}" ]; then
  timeout 300 "${lib%/*}/kprof" export "$work"/cwd/kprof/*.kprof >"$work/train_ring.export" 2>&1
  n=$(traces "$work/cwd/kprof" .gz | grep -aoE '"name": ?"the (whole run|first|last)"' | grep -oE 'whole|first|last' | sort | xargs)
  if [ "$n" = 'last whole' ]; then pass "train_ring has the last second"; else fail "train_ring has '$n'"; head -n 4 "$work/train_ring.export" | sed 's/^/#   /'; fi
  for command in report why; do
    said=$("${lib%/*}/kprof" $command "$work"/cwd/kprof 2>&1)
    if grep -q 'is the last 1\.0 s before it ended' <<<"$said"; then pass "train_ring: $command says so"; else fail "train_ring: $command does not say so"; head -n 9 <<<"$said" | sed 's/^/#   /'; fi
  done
fi
# the ring is kept while the program runs, and its end is a trace of its own
records train_ring_kept any KPROF_RING=1s -- "${trains[@]}" keeps_ring
says train_ring_kept 1 '^kprof: wrote 2 traces.* ops of the last 1s, 0 dropped'
if wanted train_ring_kept && [ -e "$work/train_ring_kept.ours" ] && [ -z "${HOSTS_IN:-}" ]; then
  n=$(for trace in "$work"/cwd/kprof/*.gz; do gzip -dc "$trace" | grep -aoE '"name": ?"the (first|middle|last)"|"kept": true' | grep -oE 'first|middle|last|kept' | sort -u | xargs; done | xargs)
  if [ "$n" = 'kept middle last' ]; then pass "train_ring_kept has what was asked for"; else fail "train_ring_kept has '$n'"; fi
fi
records train_ring_exit 2000 KPROF_RING=1h -- "${trains[@]}" plain
for with in KPROF_SCHEDULE=active=1 KPROF_PHASES=a=active=1 KPROF_TRIGGER=step\>9s KPROF_MALLOC=count; do
  name=train_ring_refused_${with%%=*}
  records "$name" any KPROF_RING=1s "$with" -- "${trains[@]}" plain
  says "$name" 1 "^kprof: KPROF_RING=1s does not go with ${with%%=*}, w.*, using none"
done
records train_ring_idle 2000 KPROF_RING=1s -- "${trains[@]}" idles # three seconds without an op do not count
says train_ring_idle 1 '^kprof: wrote .* 2000 ops of the last 1s, 0 dropped'
records train_ring_children 5000 KPROF_RING=1h KPROF_CHILDREN=1 -- "${trains[@]}" children
for how in stands close_fds_stands; do # the watch goes on without descriptors
  if [ -n "${HOSTS_IN:-}" ]; then wanted "train_hang_$how" && skip "train_hang_$how" "what a thread of an emulator waits in is not its program's"; continue; fi
  records "train_hang_$how" any KPROF_HANG=1s KPROF_SCHEDULE=none -- "${trains[@]}" $how
  says "train_hang_$how" 1 '^kprof: no step and no collective has ended for [0-9]* s, after step 9; the program is stuck at .*(all threads: '
done
records train_daemon any -- bash -c '"$0" "$@" | cat; exit ${PIPESTATUS[0]}' "${trains[@]}" daemon
records train_schedule any KPROF_SCHEDULE=wait=1,warmup=1,active=3,repeat=2 -- "${trains[@]}" plain
records train_no_steps none KPROF_SCHEDULE=wait=1000,active=1 -- "${trains[@]}" plain
records train_off none KPROF=0 -- "${trains[@]}" plain
records train_main_leaves 2000 -- "${trains[@]}" main_leaves
records train_main_leaves_schedule any KPROF_SCHEDULE=wait=1,active=2,repeat=1 -- "${trains[@]}" main_leaves
records train_cancelled_step any KPROF_SCHEDULE=wait=1,active=2 -- "${trains[@]}" cancelled_step
for us in 100 1300 2700 4100 5900; do
  records "train_exit_in_handler_$us" any KPROF_SCHEDULE=wait=0,active=1 KPROF_EXPORT=none -- "${trains[@]}" exit_in_handler $us
done
records train_empties_folder 2000 -- "${trains[@]}" empties_folder
records train_api_first 2001 -- "${trains[@]}" api_first
records train_redirect_2 2000 -- "${trains[@]}" redirect_2
says train_redirect_2 1 '^kprof: wrote'
records train_no_folder_schedule any KPROF_DIR=/proc/nowhere KPROF_SCHEDULE=wait=1,warmup=1,active=1 -- "${trains[@]}" plain
says train_no_folder_schedule 1 'nothing is recorded: no file can be made in'
says train_no_folder_schedule 0 'no trace: saw'
records train_bad_values any KPROF_MAX_MB=x KPROF_SCHEDULE=wait=-1 "KPROF_STEP=range:[" "KPROF_METADATA={" KPROF_WORKER_NAME=a/b -- "${trains[@]}" plain
records train_no_folder any KPROF_DIR=/proc/nowhere -- "${trains[@]}" plain
records train_file_for_folder any KPROF_DIR=/dev/null -- "${trains[@]}" plain
records train_reader_left any -- bash -c '"$0" "$@" 2> >(exec true)' "${trains[@]}" slow 5
records train_stderr_is_data 500 -- bash -c 'exec "$0" "$@"' "${trains[@]}" data_on_2 5
records train_small_cap any KPROF_MAX_MB=1 -- "${trains[@]}" plain 2000
records train_sandbox_enosys 2000 -- "$bin/sandbox" enosys "${trains[@]}" plain
for answer in eperm kill; do records "train_sandbox_$answer" any -- "$bin/sandbox" $answer "${trains[@]}" plain; done
for limit in '-n 4' '-v 300000' '-f 0' '-f 100' '-f 4000' '-s 128' '-d 6000'; do
  records "train_ulimit${limit// /}" any -- bash -c "trap '' XFSZ; ulimit $limit; exec \"\$0\" \"\$@\" 2>/dev/null" "${trains[@]}" plain
  records "train_ulimit_deadly${limit// /}" any -- bash -c "ulimit $limit; exec \"\$0\" \"\$@\" | cat; exit \${PIPESTATUS[0]}" "${trains[@]}" plain
done
# our own lines: nowhere, or in one file of all processes, whatever a host does with its descriptors
records log_none any KPROF_LOG=none KPROF_VERBOSE=2 KPROF_CHILDREN=1 KPROF_MALLOC=trace KPROF_MAX_MB=x KPROF_SHEDULE=1 -- "${trains[@]}" children
says log_none 0 kprof
records log_none_off none KPROF_LOG=none KPROF_TEST_FAIL="wipeonfork:1:38${lacks:+,$lacks}" -- "${trains[@]}" plain
says log_none_off 0 kprof
log=kprof/lines.log
for how in plain close_fds take_fds chdir redirect_2; do
  name=log_file_$how
  # shellcheck disable=SC2016
  records "$name" any KPROF_LOG=$log KPROF_MAX_MB=x -- bash -c 'for i in 1 2 3; do "$0" "$@" >$i & done; wait' "${trains[@]}" $how
  says "$name" 0 kprof
  if wanted "$name" && [ -e "$work/$name.ours" ]; then
    what="$(stat -c %a "$work/cwd/$log") $(grep -avcE '^kprof\[[0-9]+\]: ' "$work/cwd/$log") "
    what+="$(grep -acE '^kprof\[[0-9]+\]: (KPROF_MAX_MB|wrote)' "$work/cwd/$log") $(cut -d: -f1 "$work/cwd/$log" | sort -u | wc -l)"
    if [ "$what" = '600 0 6 3' ]; then pass "$name has our lines, whole"; else fail "$name: mode, lines not ours, lines, processes: $what"; head -n 9 "$work/cwd/$log" | sed 's/^/#   /'; fi
  fi
done
records log_refused any KPROF_LOG=/dev/null -- "${trains[@]}" plain
says log_refused 1 '^kprof: KPROF_LOG=/dev/null is no regular file, using stderr'
says log_refused 1 '^kprof: wrote'
if [ -z "${HOSTS_IN:-}" ] && [ "$(id -u)" = 0 ] && mkdir "$work/tiny" && mount -t tmpfs -o size=4m none "$work/tiny" 2>/dev/null; then
  trap 'umount "$work/tiny" 2>/dev/null; rm -rf "$work"' EXIT
  records train_full_disk any KPROF_DIR="$work/tiny/a" -- "${trains[@]}" plain 3000
  rm -rf "$work/tiny/a"
  dd if=/dev/zero of="$work/tiny/fill" bs=4k 2>/dev/null
  records train_disk_full_before any KPROF_DIR="$work/tiny/b" -- "${trains[@]}" plain
else
  skip train_full_disk "cannot mount a small tmpfs here"
fi
for call in open write read pread fallocate mmap fsync rename unlink mkdir thread wipeonfork; do
  for err in 28 1 38; do
    for nth in 1 2 1+; do records "train_fail_$call:$nth:$err" any KPROF_TEST_FAIL="$call:$nth:$err${lacks:+,$lacks}" -- "${trains[@]}" plain; done
  done
done
# killed once a trace has its name, in the middle of what follows: kprof recover makes no second one
if wanted train_killed_after_trace && ! cannot train_killed_after_trace; then
  if [ -n "${HOSTS_IN:-}" ]; then skip train_killed_after_trace "kprof does not run in this root"; else
    once "$work/killed.ours" "$lib:$bin/libkpkilled.so" KPROF_SCHEDULE=wait=1,active=2 "${trains[@]}" slow 2>/dev/null
    "$(dirname "$lib")/kprof" recover "$work/cwd/kprof" >"$work/killed.said" 2>&1
    n=$(for f in "$work"/cwd/kprof/*.gz; do zcat "$f" | grep -aw '"ProfilerStep#1"' >/dev/null && echo; done | wc -l)
    case "$(cat "$work/killed.ours/status") $n" in
      "137 1") pass train_killed_after_trace ;;
      *) fail "train_killed_after_trace: status $(cat "$work/killed.ours/status"), $n traces of one window: $(tr '\n' ' ' <"$work/killed.said")" ;;
    esac
  fi
fi
if wanted train_many && ! cannot train_many; then
  LIMIT=200 records train_many any KPROF_MAX_MB=64 -- "${trains[@]}" many "${HOSTS_MANY:-5000000}"
  line=$(grep -a '^kprof: wrote' "$work/train_many.ours/err")
  sum=$(sed -n 's/.*[(, ]\([0-9]*\) ops, \([0-9]*\) dropped.*/\1+\2/p' <<<"$line")
  if [ "$((${sum:-0}))" = "${HOSTS_MANY:-5000000}" ]; then pass "train_many_drops_are_exact"; else fail "train_many_drops_are_exact: ${line:-no closing line}"; fi
fi

echo "# hosts: $ok passed, $failed failed, $skipped skipped"
echo "1..$((ok + failed + skipped))"
[ "$failed" = 0 ]
