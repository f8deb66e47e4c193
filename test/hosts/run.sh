#!/usr/bin/env bash
# run.sh - runs each hostile program twice, beside an empty preloaded library and beside ours, and compares
#
# usage: run.sh FOLDER_OF_PROGRAMS LIBKPROF_SO [PATTERN]
# Compared: standard output, standard error (but for lines that begin "kprof:"), exit status, and the files left behind.
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
wanted() { [[ -z $only || $1 == *$only* ]]; }

once() { # folder, preload, command...
  local at=$1 preload=$2
  shift 2
  mkdir -p "$at"
  rm -rf "$work/cwd"
  mkdir -m 777 "$work/cwd"
  (
    cd "$work/cwd" || exit 99
    exec env LD_PRELOAD="$preload" timeout -k 5 "${LIMIT:-60}" "$@" >"$at/out" 2>"$at/err" </dev/null
  ) 2>/dev/null
  echo $? >"$at/status"
  (cd "$work/cwd" && find . -path ./kprof -prune -o -type f -print | sort | while read -r f; do echo "$f $(cksum <"$f")"; done) >"$at/files"
}

quiet() { grep -av '^kprof:' "$1"; return 0; }

same() { # name, command...
  local name=$1 a b what=""
  shift
  wanted "$name" || return 0
  a=$work/$name.empty b=$work/$name.ours
  once "$a" "$empty" "$@" 2>/dev/null
  once "$b" "$lib" "$@" 2>/dev/null
  case $(cat "$a/status") in 12[4-7]) what+=" it does not even run without us;" ;; esac
  cmp -s "$a/status" "$b/status" || what+=" status $(cat "$a/status") became $(cat "$b/status");"
  cmp -s "$a/out" "$b/out" || what+=" stdout;"
  [ "$(quiet "$a/err")" = "$(quiet "$b/err")" ] || what+=" stderr;"
  cmp -s "$a/files" "$b/files" || what+=" files;"
  [ -e "$work/cwd/kprof" ] && what+=" a folder was left by a program without torch;"
  if [ -z "$what" ]; then pass "$name"; return; fi
  fail "$name:$what"
  diff "$a/out" "$b/out" | head -n 8 | sed 's/^/#   out /'
  diff <(quiet "$a/err") <(quiet "$b/err") | head -n 8 | sed 's/^/#   err /'
  diff "$a/files" "$b/files" | head -n 8 | sed 's/^/#   files /'
}
# A recording run: the host must not differ, and what was written must hold what the last argument of the first part says.
#   records NAME RANGES [VAR=value...] -- COMMAND...
#   RANGES: a number (the traces hold so many ranges), spool (a spool is left, to be recovered), any, none (no file)
records() {
  local name=$1 ranges=$2 a b what="" vars=()
  shift 2
  wanted "$name" || return 0
  while [ "$1" != -- ]; do vars+=("$1"); shift; done
  shift
  a=$work/base.$(cksum <<<"$*" | tr -d ' ') b=$work/$name.ours
  [ -e "$a/status" ] || once "$a" "$empty" "$@" 2>/dev/null
  once "$b" "$lib" env "${vars[@]}" "$@" 2>/dev/null
  case $(cat "$a/status") in 12[4-7]) what+=" it does not even run without us;" ;; esac
  cmp -s "$a/status" "$b/status" || what+=" status $(cat "$a/status") became $(cat "$b/status");"
  cmp -s "$a/out" "$b/out" || what+=" stdout;"
  [ "$(quiet "$a/err")" = "$(quiet "$b/err")" ] || what+=" stderr;"
  cmp -s "$a/files" "$b/files" || what+=" files;"
  [ "$(grep -ac '^kprof:' "$b/err")" -le 9 ] || what+=" $(grep -ac '^kprof:' "$b/err") lines on stderr;"
  case $ranges in
    any) ;;
    none) [ -z "$(find "$work/cwd/kprof" -type f 2>/dev/null)" ] || what+=" a file was left;" ;;
    spool) ls "$work"/cwd/kprof/*.kprof >/dev/null 2>&1 || what+=" no spool is left;" ;;
    *) local n; n=$(find "$work/cwd/kprof" -name '*.pt.trace.json.gz' -exec zcat {} + 2>/dev/null | grep -aoE '"cat": ?"(cpu_op|user_annotation)"' | wc -l)
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
  local n
  n=$(grep -ac -- "$3" "$work/$1.ours/err")
  if [ "$n" = "$2" ]; then pass "$1 says '$3' $2 times"; else fail "$1 says '$3' $n times, not $2"; fi
}
have() { command -v "$1" >/dev/null 2>&1; }

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

# --- loading: RUNPATH, RTLD_NEXT, DEEPBIND, namespaces, 1000 times ------------------------------------------------
same loading_lazy "$bin/loading" "$bin"
same loading_now "$bin/loading_now" "$bin"
same cancels "$bin/cancels"
same storm "$bin/storm"
same threads "$bin/threads"

# --- children ---------------------------------------------------------------------------------------------------
same children "$bin/children"
same daemon "$bin/daemon"
same chain "$bin/chain"
same env_empty env -i "$bin/state"
same close_fds "$bin/close_fds"
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

# --- limits, sandboxes, other users ---------------------------------------------------------------------------------
for limit in nofile as fsize stack data nproc; do same "limit_$limit" "$bin/limits" $limit; done
for limit in '-n 4' '-v 200000' '-f 0' '-s 128' '-d 4000'; do
  same "ulimit${limit// /}" bash -c "ulimit $limit; exec \"\$0\" none" "$bin/limits"
done
for answer in eperm enosys kill; do same "sandbox_$answer" "$bin/sandbox" $answer; done
if [ "$(id -u)" = 0 ]; then
  same jail "$bin/jail"
  if have setpriv; then
    cp "$bin/state" "$work/setuid_state" && chown 0:0 "$work/setuid_state" && chmod 4755 "$work/setuid_state"
    same setuid setpriv --reuid 65534 --clear-groups "$work/setuid_state"
  else
    skip setuid "no setpriv here"
  fi
else
  skip jail "needs root"
  skip setuid "needs root"
fi
if have musl-gcc; then
  musl-gcc -o "$work/musl" "$here/chain.c" && same musl "$work/musl" 0
else
  skip musl "no musl-gcc here"
fi

# --- recording, on a torch of one file (test/doubles/minitorch.c) -----------------------------------------------------
trains=("$bin/trains" "$bin")
records train_plain 2000 -- "${trains[@]}" plain
records train_children 4000 -- "${trains[@]}" children
records train_threads 18000 -- "${trains[@]}" threads
for how in close_fds take_fds chdir; do records "train_$how" 2000 -- "${trains[@]}" $how; done
for how in kill fault abort _exit quick_exit execs; do records "train_$how" spool -- "${trains[@]}" $how; done
records train_daemon any -- "${trains[@]}" daemon
records train_schedule any KPROF_SCHEDULE=wait=1,warmup=1,active=3,repeat=2 -- "${trains[@]}" plain
records train_no_steps none KPROF_SCHEDULE=wait=1000,active=1 -- "${trains[@]}" plain
records train_off none KPROF=0 -- "${trains[@]}" plain
records train_main_leaves 2000 -- "${trains[@]}" main_leaves
records train_main_leaves_schedule any KPROF_SCHEDULE=wait=1,active=2,repeat=1 -- "${trains[@]}" main_leaves
records train_cancelled_step any KPROF_SCHEDULE=wait=1,active=2 -- "${trains[@]}" cancelled_step
for us in 100 1300 2700 4100 5900; do
  LIMIT=20 records "train_exit_in_handler_$us" any KPROF_SCHEDULE=wait=0,active=1 KPROF_EXPORT=none -- "${trains[@]}" exit_in_handler $us
done
records train_empties_folder 2000 -- "${trains[@]}" empties_folder
records train_api_first 2001 -- "${trains[@]}" api_first
records train_redirect_2 2000 -- "${trains[@]}" redirect_2
says train_redirect_2 1 '^kprof: wrote'
records train_no_folder_schedule any KPROF_DIR=/proc/nowhere KPROF_SCHEDULE=wait=1,warmup=1,active=1 -- "${trains[@]}" plain
says train_no_folder_schedule 1 'cannot make a spool'
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
if [ "$(id -u)" = 0 ] && mkdir "$work/tiny" && mount -t tmpfs -o size=4m none "$work/tiny" 2>/dev/null; then
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
    for nth in 1 2 1+; do records "train_fail_$call:$nth:$err" any KPROF_TEST_FAIL="$call:$nth:$err" -- "${trains[@]}" plain; done
  done
done
if wanted train_many; then
  LIMIT=200 records train_many any KPROF_MAX_MB=64 -- "${trains[@]}" many "${HOSTS_MANY:-10000000}"
  line=$(grep -a '^kprof: wrote' "$work/train_many.ours/err")
  sum=$(sed -n 's/.*[(, ]\([0-9]*\) ops, \([0-9]*\) dropped.*/\1+\2/p' <<<"$line")
  if [ "$((${sum:-0}))" = "${HOSTS_MANY:-10000000}" ]; then pass "train_many_drops_are_exact"; else fail "train_many_drops_are_exact: ${line:-no closing line}"; fi
fi

echo "# hosts: $ok passed, $failed failed, $skipped skipped"
echo "1..$((ok + failed + skipped))"
[ "$failed" = 0 ]
