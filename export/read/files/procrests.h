// SPDX-License-Identifier: Apache-2.0
/* procrests.h - whether a process of this machine rests, as far as the kernel shows it to any process of its user */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One look. */
struct kp_procrests {
    bool is_known;     /* its threads were read; their system calls, too */
    bool may_go_on;    /* a thread or a child works, or may wait for a disk, a socket or a device */
    bool is_for_child; /* its main thread waits for a child, else for another thread */
    uint64_t ticks;    /* CPU time of its own threads, without those of kprof */
};
void kp_procrests_look(struct kp_procrests *out, long pid);
/*
 * The difference of two looks. "waits for a lock, a queue or a thread (futex)", or "waits for a child process (wait)",
 * as its main thread does where nothing works that could end the wait. NULL: it may go on, or that is not known.
 */
const char *kp_procrests_word(const struct kp_procrests *now, const struct kp_procrests *before);
