// SPDX-License-Identifier: Apache-2.0
/*
 * kp_io.h - the system calls that the library makes
 *
 * Each returns what the call returns, or -errno, and is repeated after EINTR. The guard keeps the host's errno, not
 * these. A test can make each of them fail (kp_fail.h). No other file of the library makes system calls
 * (scripts/check-calls.sh).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/base/sys/kp_fail.h"

struct stat;

/*
 * Above the descriptors that shells and daemons pass on by number. If a limit leaves only low numbers, each use closes
 * its descriptor, since the host may rely on the number.
 */
#define KP_IO_FD_HIGH 100

/* --- files --- */

/*
 * From now on the calling thread's calls on files that may wait for a disk are made by a process beside it. So a wait
 * that no signal ends does not hold the host's end. For helper threads; costs 50 us a call.
 */
void kp_io_apart(bool is_wanted);
long kp_io_call(long number, long a, long b, long c, long d, long e); /* a system call so; its value, or -errno */

/*
 * The library's files and folders are never writable by all users, even where the host's umask is 0. Otherwise another
 * user could change a trace, or put a false trace into the folder.
 */
enum { KP_IO_FILE_MODE = 0664, KP_IO_FOLDER_MODE = 0775 }; /* less what the umask takes */
int kp_io_open(const char *path, int flags, int mode);     /* adds O_CLOEXEC; moves the fd to >= 100 when it can */
int kp_io_open_at(int dir, const char *name, int flags, int mode); /* as kp_io_open, in an open folder */
int kp_io_close(int fd);
ssize_t kp_io_write_all(int fd, const void *data, size_t bytes); /* bytes, or -errno */
ssize_t kp_io_read(int fd, void *data, size_t bytes);
/* Reads the begin of a short file as text, which always ends with a NUL. Returns its bytes, or -errno with "". */
ssize_t kp_io_text(const char *path, char *text, size_t bytes);
/* As kp_io_text, of a thread of this process: its stat or schedstat. False: it has ended, with "". */
bool kp_io_task_text(const char *tid, const char *file, char *text, size_t bytes);
bool kp_io_command_has(uint32_t pid, const char *word); /* whether the process's command line has the word */
ssize_t kp_io_pread(int fd, void *data, size_t bytes, off_t at);
ssize_t kp_io_pwrite_all(int fd, const void *data, size_t bytes, off_t at); /* bytes, or -errno */
int kp_io_fallocate(int fd, off_t at, off_t bytes); /* falls back to writing zeroes when EOPNOTSUPP */
int kp_io_fsync(int fd);
int kp_io_rename(const char *from, const char *to);
int kp_io_rename_new(const char *from, const char *to); /* -EEXIST: never replaces a file */
int kp_io_unlink(const char *path);
int kp_io_unlink_at(int dir, const char *name);
int kp_io_mkdirs(const char *path, int mode); /* like mkdir -p; 0 when it exists */
int kp_io_truncate(int fd, off_t bytes);
int kp_io_punch(int fd, off_t at, off_t bytes); /* frees blocks. -EOPNOTSUPP: the file system cannot */
int kp_io_memory_file(const char *name);        /* a file in memory without a path (memfd_create), or -errno */
struct kp_io_room {
    uint64_t type;         /* the file system's magic number (statfs(2)) */
    uint64_t bytes, spare; /* its size, and what this user may still write */
};
int kp_io_room_of(const char *path, struct kp_io_room *out); /* of the file system that a path lies in; 0 or -errno */
int kp_io_room_at(int fd, struct kp_io_room *out);
int kp_io_lock(int fd); /* locks the whole file by flock. -EWOULDBLOCK: locked already */
int kp_io_give(int fd, uint32_t uid, uint32_t gid, uint32_t mode); /* changes the owner, then the mode */
int64_t kp_io_data_next(int fd, int64_t at); /* the first data from `at` on. -ENXIO: only a hole follows */
int kp_io_stat(const char *path, struct stat *out);
int kp_io_fstat(int fd, struct stat *out);
bool kp_io_exists(const char *path);
/*
 * Visits each name in a folder that begins with no dot, in any order. It may miss changes made in the meantime. 0 or
 * -errno.
 */
int kp_io_each_name(const char *dir, void (*visit)(void *context, const char *name), void *context);
ssize_t kp_io_readlink(const char *path, char *out, size_t bytes); /* not NUL-terminated */
int kp_io_getcwd(char *out, size_t bytes);
int kp_io_dup_high(int fd);           /* >= 100, O_CLOEXEC */
int kp_io_dup_over(int fd, int onto); /* `onto`, which is open, becomes what fd is, O_CLOEXEC. 0 or -errno */
bool kp_io_is_terminal(int fd);

/* --- sockets of this machine: SOCK_STREAM, O_CLOEXEC, never waiting, at >= 100 when they can --- */
struct kp_io_socket {
    int fd; /* -1: none */
    uint64_t inode;
};
struct pollfd;
int kp_io_socket_listen(const char *path, struct kp_io_socket *out); /* mode 0600. -EADDRINUSE: the name is taken */
/* By an abstract name, of at most 107 bytes, instead of a path. -EADDRINUSE: another socket has it; -ECONNREFUSED: none
 * has it. *uid: whose process listens there. */
int kp_io_socket_listen_name(const char *name, struct kp_io_socket *out);
int kp_io_socket_connect_name(const char *name, struct kp_io_socket *out, uint32_t *uid);
int kp_io_socket_pair(struct kp_io_socket out[2]);
/* *uid: whose process it is that connects */
int kp_io_socket_accept(const struct kp_io_socket *s, struct kp_io_socket *out, uint32_t *uid);
/* True where the path is a socket of this user that refuses connections: its process is gone. */
bool kp_io_socket_is_dead(const char *path);
/* The host may close any descriptor and give its number to a file of its own. Async-signal-safe. */
bool kp_io_socket_is_ours(const struct kp_io_socket *s);
/* Both return the bytes, 0 at the end, or -EAGAIN. They raise no signal. Sending is async-signal-safe. */
ssize_t kp_io_socket_read(const struct kp_io_socket *s, void *data, size_t bytes);
ssize_t kp_io_socket_send(const struct kp_io_socket *s, const void *data, size_t bytes);
void kp_io_socket_close(struct kp_io_socket *s); /* closes it if it is ours; fd becomes -1 */
int kp_io_poll(struct pollfd *fds, uint32_t count, uint32_t ms);

/* --- memory --- */
int kp_io_mmap(void **out, size_t bytes, int prot, int flags, int fd, off_t at);
int kp_io_mmap_at(void *where, size_t bytes, int prot, int flags, int fd,
                  off_t at); /* MAP_FIXED: over a reserved range only */
int kp_io_munmap(void *p, size_t bytes);
int kp_io_mremap(void **out, void *p, size_t old_bytes, size_t bytes);
int kp_io_madvise(void *p, size_t bytes, int advice);
int kp_io_mprotect(void *p, size_t bytes, int prot);
uint64_t kp_io_address_limit(void); /* RLIMIT_AS in bytes, or UINT64_MAX */
uint64_t kp_io_addresses(void);     /* address space in use, in bytes, or 0 when unknown. Opens a file */
uint64_t kp_io_open_files(void);    /* how many descriptors are open, or 0 when unknown: before Linux 6.2 */
/* Memory in use that is of no file, in bytes, or 0 when unknown. Opens a file, and also reads there what
 * kp_io_addresses() does, unless `addresses` is NULL. */
uint64_t kp_io_resident(uint64_t *addresses);
/* Bytes of memory that the machine has, or the control group's limit where that is less. Opens files. */
uint64_t kp_io_memory_limit(void);
uint64_t kp_io_lock_limit(void);                            /* RLIMIT_MEMLOCK in bytes, or UINT64_MAX */
int kp_io_lock_pages(void *p, size_t bytes, bool on_fault); /* mlock */
int kp_io_unlock_pages(void *p, size_t bytes);
void kp_io_keep_unlocked(bool is_wanted); /* the host called mlockall: unlocks the library's new mappings */
int kp_io_peek(const void *from, void *to,
               size_t bytes); /* reads memory that may be unmapped; 0 or -errno, never faults */
/* Memory of a child, which may run: 0 or -errno, also where the system lets no process do so. */
int kp_io_peek_child(uint32_t pid, const void *from, void *to, size_t bytes);
int kp_io_poke(void *to, const void *from, size_t bytes); /* writes memory that may be unmapped or read-only; as peek */
int kp_io_peek_pages(const void *from, size_t bytes);     /* 0 if all of these pages can be read, or -errno */

/* --- threads, processes, waiting --- */
/*
 * True while this thread works for the profiler. Helper threads do so always, and host threads in calls into libc and
 * the loader that allocate. The hooks of malloc read it, to leave these allocations out.
 */
extern _Thread_local bool kp_in_profiler __attribute__((tls_model("initial-exec")));
int kp_io_thread(void *(*body)(void *), void *arg,
                 const char *name); /* detached, all signals blocked, nice'd, 512 KB stack */
/* with a nice value higher by `more` */
int kp_io_thread_nice(void *(*body)(void *), void *arg, const char *name, int more);
/* Sleeps. Unlike nanosleep it is no cancellation point: a host's thread must not be cancelled inside a hook. */
void kp_io_nap(uint64_t ns);
void kp_io_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t ns); /* at most ns, and only while the word is `seen` */
void kp_io_wake(_Atomic uint32_t *word);                             /* wakes a waiting thread; async-signal-safe */
int kp_io_barrier_register(void);                                    /* 0: kp_io_barrier works */
int kp_io_barrier(void);                                             /* on every processor that runs this process */
uint32_t kp_io_tid(void);
struct kp_io_faults {
    uint64_t minor, major; /* page faults since the thread's begin; major: read from a disk */
};
int kp_io_faults(struct kp_io_faults *out); /* of the calling thread */
bool kp_io_is_on_signal_stack(void);        /* the calling thread; true on error. Unreliable with SS_AUTODISARM */
bool kp_io_is_thread_gone(uint32_t tid);    /* of this process */
bool kp_io_is_tsc_refused(void); /* reading the TSC raises SIGSEGV here: by prctl(PR_SET_TSC), or inherited */
struct sigaction;
int kp_io_signal_action(int number, const struct sigaction *now, struct sigaction *before);
void kp_io_signal_self(int number);    /* sends it to this thread */
void kp_io_thread_name(char name[16]); /* the calling thread's name, or "" */
enum { KP_IO_HOST_BYTES = 65 };
/* This machine's name, "" where it is not known. Leaves out letters that a file's name or a text of JSON cannot
 * have. */
void kp_io_host_name(char name[KP_IO_HOST_BYTES]);
/*
 * When a process started, in clock ticks since boot. With the pid it identifies the process. 0: no process has this
 * pid. pid 0 means the calling process, also where /proc shows another pid namespace.
 */
uint64_t kp_io_process_start(int32_t pid);
/* True when no process has this pid, not even as a zombie. Opens no file. False also when that cannot be known. */
bool kp_io_is_process_gone(int32_t pid);
/*
 * True when all threads of the host have ended, and only helper threads and threads of the kernel remain. The helper
 * threads must end then, or the process never does. Makes system calls: call it a few times a second at most.
 */
bool kp_io_helpers_alone(void);
uint32_t kp_io_helpers(void);        /* the number of helper threads */
uint64_t kp_io_helpers_cpu_us(void); /* processor time of the helper threads, those that ended too. Opens files */
void kp_io_helpers_settle(void);     /* waits until the kernel has removed the last thread that ended, 10 ms at most */
#define KP_IO_NICE 5                 /* of most helper threads */
void kp_io_forget(void);             /* in the child: no helper thread exists */
