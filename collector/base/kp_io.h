// SPDX-License-Identifier: Apache-2.0
/*
 * kp_io.h - the system calls we make, each with a point where a test can make it fail
 *
 * Each returns what the call returns, or -errno; EINTR is retried. errno of the host is not kept here
 * (the guard does that). Every call has a point where a test can make it fail (kp_fail.h); no other file of the library makes
 * system calls (scripts/check-calls.sh).
 */
#ifndef KP_IO_H
#define KP_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/base/kp_fail.h"

struct stat;
struct utsname;

/*
 * Above what shells and daemons hand around by number. Where the limit leaves no such number a low one must do: it is
 * one the host counts on, so it is closed again after each use.
 */
#define KP_IO_FD_HIGH 100

/* --- files ---
 * What we make is never open to everybody's writing, also where the host's umask is 0: a trace tells what the program saw, and whoever could
 * change it, or put another one into its folder, would be believed. */
enum { KP_IO_FILE_MODE = 0664, KP_IO_FOLDER_MODE = 0775 }; /* less what the umask takes */
int kp_io_open(const char *path, int flags, int mode);  /* adds O_CLOEXEC; moves the fd to >= 100 when it can */
int kp_io_open_at(int dir, const char *name, int flags, int mode); /* the same in an open folder */
int kp_io_close(int fd);
ssize_t kp_io_write_all(int fd, const void *data, size_t bytes); /* bytes, or -errno */
ssize_t kp_io_read(int fd, void *data, size_t bytes);
ssize_t kp_io_pread(int fd, void *data, size_t bytes, off_t at);
int kp_io_fallocate(int fd, off_t at, off_t bytes);     /* falls back to writing zeroes when EOPNOTSUPP */
int kp_io_fsync(int fd);
int kp_io_rename(const char *from, const char *to);
int kp_io_rename_new(const char *from, const char *to); /* -EEXIST rather than replace something */
int kp_io_unlink(const char *path);
int kp_io_unlink_at(int dir, const char *name);
int kp_io_mkdirs(const char *path, int mode);           /* like mkdir -p; 0 when it exists */
int kp_io_truncate(int fd, off_t bytes);
void kp_io_punch(int fd, off_t at, off_t bytes);        /* gives blocks back, where the file system can */
int kp_io_lock(int fd);                                 /* the whole file, by flock: -EWOULDBLOCK when somebody else has it */
int kp_io_give(int fd, uint32_t uid, uint32_t gid, uint32_t mode); /* to another owner, then with these bits */
int64_t kp_io_data_next(int fd, int64_t at);            /* where data begins, from `at` on; -ENXIO: only a hole follows */
int kp_io_stat(const char *path, struct stat *out);
int kp_io_fstat(int fd, struct stat *out);
bool kp_io_exists(const char *path);
/* Each name in a folder but those that begin with a dot, in no order. What is made or removed meanwhile may be told or not. 0, or -errno. */
int kp_io_each_name(const char *dir, void (*visit)(void *context, const char *name), void *context);
ssize_t kp_io_readlink(const char *path, char *out, size_t bytes); /* not NUL-terminated */
int kp_io_getcwd(char *out, size_t bytes);
int kp_io_dup_high(int fd);                             /* >= 100, O_CLOEXEC */
bool kp_io_is_terminal(int fd);

/* --- memory --- */
int kp_io_mmap(void **out, size_t bytes, int prot, int flags, int fd, off_t at);
int kp_io_mmap_at(void *where, size_t bytes, int prot, int flags, int fd, off_t at); /* MAP_FIXED: over a reserved range only */
int kp_io_munmap(void *p, size_t bytes);
int kp_io_mremap(void **out, void *p, size_t old_bytes, size_t bytes);
int kp_io_madvise(void *p, size_t bytes, int advice);
int kp_io_mprotect(void *p, size_t bytes, int prot);
uint64_t kp_io_address_limit(void);                       /* RLIMIT_AS in bytes; UINT64_MAX: none */
uint64_t kp_io_addresses(void);                           /* taken by this process, in bytes; 0: not known. Opens a file */
uint64_t kp_io_lock_limit(void);                          /* RLIMIT_MEMLOCK, likewise */
int kp_io_lock_pages(void *p, size_t bytes, bool on_fault);     /* mlock */
int kp_io_unlock_pages(void *p, size_t bytes);
void kp_io_keep_unlocked(bool is_wanted);                 /* the kernel locks what is mapped from now on: what is ours is unlocked at once */
int kp_io_peek(const void *from, void *to, size_t bytes); /* reads memory that may not be there: 0, or -errno, never faults */
int kp_io_poke(void *to, const void *from, size_t bytes); /* writes memory that may not be there, or not be writable: as peek */
int kp_io_peek_pages(const void *from, size_t bytes); /* whether all of these pages can be read: 0, or -errno */

/* --- threads, processes, waiting --- */
/*
 * What this thread does is ours and not the host's: always in a thread made by kp_io_thread, else around calls into libc and the
 * loader that allocate for us. Who counts the host's allocations looks at it.
 */
extern _Thread_local bool kp_in_profiler __attribute__((tls_model("initial-exec")));
int kp_io_thread(void *(*body)(void *), void *arg, const char *name); /* detached, all signals blocked, nice'd, 512 KB stack */
int kp_io_thread_nice(void *(*body)(void *), void *arg, const char *name, int more); /* so much nicer than its maker */
/* Sleeps so long. nanosleep is a cancellation point, this is not: a host's thread must not be cancelled in the middle of us. */
void kp_io_nap(uint64_t ns);
void kp_io_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t ns); /* at most so long, while the word is what was seen */
void kp_io_wake(_Atomic uint32_t *word);   /* one that waits; async-signal-safe */
int kp_io_barrier_register(void);          /* 0: kp_io_barrier can be had */
int kp_io_barrier(void);                   /* on every processor that runs this process */
uint32_t kp_io_tid(void);
bool kp_io_is_on_signal_stack(void);       /* the calling thread, as far as the kernel knows (not with SS_AUTODISARM); true where it does not tell */
bool kp_io_is_thread_gone(uint32_t tid);   /* of this process */
bool kp_io_is_tsc_refused(void);           /* a thread that reads the processor's counter gets a signal: by prctl(PR_SET_TSC), or inherited */
void kp_io_thread_name(char name[16]);     /* the calling thread's; empty when it cannot be had */
int kp_io_host(struct utsname *out);
/*
 * Start of a process in clock ticks since boot: with its number it names the process. 0: there is none that runs. pid 0: the calling one, also
 * where /proc counts processes otherwise than getpid() (a pid namespace).
 */
uint64_t kp_io_process_start(int32_t pid);
/*
 * True when the host's last thread ended by pthread_exit or alone, and only threads made here (and the kernel's) are left: they must end then, since
 * as long as one is there the process cannot. Asks the kernel, so not more often than some times a second.
 */
bool kp_io_helpers_alone(void);
uint32_t kp_io_helpers(void); /* how many threads of ours there are */
void kp_io_helpers_settle(void); /* the one that ended last is gone for the kernel, too; waits 10 ms at most */
#define KP_IO_NICE 5 /* of most of them */
void kp_io_after_fork(void); /* in the child: the threads made here are not there */

#endif
