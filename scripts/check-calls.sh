#!/usr/bin/env bash
# check-calls.sh - system calls are made in collector/base/sys/io_*.c alone, where a test can make each of them fail
#
# usage: check-calls.sh OBJECT...   (the objects libkprof.so is linked of)
# Looks at what each object takes from libc. What may be where, and why, is said below.
set -euo pipefail

calls='open|open64|openat|creat|close|read|pread|pread64|write|pwrite|pwrite64|writev|fallocate|fallocate64|ftruncate|ftruncate64|fsync|fdatasync|rename|renameat|renameat2'
calls+='|unlink|unlinkat|mkdir|mkdirat|rmdir|stat|fstat|lstat|fstatat|stat64|fstat64|lstat64|statx|access|faccessat|readlink|readlinkat|realpath|getcwd|uname|gethostname'
calls+='|flock|lseek|lseek64|chown|fchown|fchownat|chmod|fchmod|fchmodat'
calls+='|dup|dup2|dup3|fcntl|fcntl64|ioctl|isatty|pipe|pipe2|eventfd|memfd_create|socket|socketpair|connect|bind|listen|accept|accept4|getsockopt|setsockopt|shutdown|send|sendto|sendmsg|recv|recvmsg|poll|ppoll|select|epoll_wait|opendir|readdir'
calls+='|mmap|mmap64|munmap|mremap|madvise|mprotect|mlock|mincore|msync|brk|sbrk|shm_open|process_vm_readv|process_vm_writev'
calls+='|syscall|nanosleep|clock_nanosleep|usleep|sleep|kill|tgkill|pthread_kill|prctl|sched_setscheduler|setpriority|getpriority|nice|sched_setaffinity'
calls+='|sigaction|signal|setitimer|timer_create|alarm|ptrace|wait|waitpid|fork|vfork|clone|execve|posix_spawn|pthread_create|pthread_atfork|pthread_key_create|sem_open'

# room/file.o: names it may use, and why
allowed() {
  case $1 in
    collector/base/sys/io_file.o | collector/base/sys/io_socket.o | collector/base/sys/io_memory.o | collector/base/sys/io_thread.o | collector/base/sys/io_helpers.o | collector/base/sys/io_apart.o) return 0 ;;
    collector/base/sys/fail.o) case $2 in open|open64|close|syscall|mmap|mmap64) return 0 ;; esac ;; # in tests alone: the file of counts
    collector/record/thread.o) [ "$2" = pthread_key_create ] && return 0 ;; # no system call; behind a point of its own
  esac
  return 1
}

[ $# -gt 50 ] || { echo "check-calls: $# objects are not the library" >&2; exit 1; }
bad=0 names=$(mktemp)
trap 'rm -f "$names"' EXIT
nm -uA "$@" >"$names" # one process for all: OBJECT: U NAME
while read -r name symbol; do
  allowed "$name" "$symbol" && continue
  echo "check-calls: $name calls $symbol: go through collector/base/sys/kp_io.h, so that a test can make it fail" >&2
  bad=1
done < <(sed -E 's,^(.*/)?((collector|preload|schedule|export)/[^:]*):.* ([^ @]+)(@[^ ]*)?$,\2 \4,' "$names" | grep -E " ($calls)\$" || true)
exit $bad
