// SPDX-License-Identifier: Apache-2.0
/*
 * kp_io.h - the system calls we make, each with a point where a test can make it fail
 *
 * Each returns what the call returns, or -errno; EINTR is retried. errno of the host is not kept here
 * (the guard does that). In test builds and always when KPROF_TEST_FAIL=name:N[:errno] is set, the
 * N-th call of that name fails with that errno (ENOSPC by default), N+ all calls from the N-th on:
 * KPROF_TEST_FAIL=mmap:3,fallocate:1+:28,open:2:1. Names: open write read pread fallocate mmap fsync rename
 * unlink mkdir thread wipeonfork peek.
 */
#ifndef KP_IO_H
#define KP_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

int kp_io_open(const char *path, int flags, int mode);  /* adds O_CLOEXEC; moves the fd to >= 100 when it can */
int kp_io_close(int fd);
ssize_t kp_io_write_all(int fd, const void *data, size_t bytes); /* bytes, or -errno */
ssize_t kp_io_read(int fd, void *data, size_t bytes);
ssize_t kp_io_pread(int fd, void *data, size_t bytes, off_t at);
int kp_io_fallocate(int fd, off_t at, off_t bytes);     /* falls back to writing zeroes when EOPNOTSUPP */
int kp_io_mmap(void **out, size_t bytes, int prot, int flags, int fd, off_t at);
int kp_io_mmap_at(void *where, size_t bytes, int prot, int flags, int fd, off_t at); /* MAP_FIXED: over a reserved range only */
int kp_io_munmap(void *p, size_t bytes);
int kp_io_fsync(int fd);
int kp_io_peek(const void *from, void *to, size_t bytes); /* reads memory that may not be there: 0, or -errno, never faults */
int kp_io_rename(const char *from, const char *to);
int kp_io_unlink(const char *path);
int kp_io_mkdirs(const char *path, int mode);           /* like mkdir -p; 0 when it exists */
int kp_io_thread(void *(*body)(void *), void *arg, const char *name); /* detached, all signals blocked, nice'd, 256 KB stack */
int kp_io_thread_nice(void *(*body)(void *), void *arg, const char *name, int more); /* so much nicer than its maker */
/*
 * True when the host's last thread ended by pthread_exit and only threads made here are left: they must end then, since as long
 * as one is there the process cannot. Asks the kernel, so not more often than some times a second.
 */
bool kp_io_helpers_alone(void);
/* Read KPROF_TEST_FAIL once; called by the constructor with the variable's value (NULL: nothing fails). */
void kp_io_set_failures(const char *spec);
int kp_io_fail_point(const char *name); /* 0, or -errno this call shall return */

#endif
