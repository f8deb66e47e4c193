// SPDX-License-Identifier: Apache-2.0
/*
 * jobends.h - how processes of a job ended, as their launcher was told, and as they said themselves
 *             (preload/finish/childends.c)
 */
#pragma once

#include "export/read/kineto/ended.h"

struct kp_jobends { /* all zero: none */
    struct kp_jobend *of;
    size_t count, capacity;
};
/* Reads all files of a folder. */
void kp_jobends_read(struct kp_jobends *ends, const char *folder);
/*
 * All that is known about the program that the process was at a time: its launcher's word for the signal, its own for
 * the rest. `host`: NULL or "" for any. False: nothing.
 */
bool kp_jobends_find(const struct kp_jobends *ends, const char *host, long pid, int64_t since_ns,
                     struct kp_jobend *out);
/* Adds the last child that crashed shortly before the program of a trace failed, if it noted one. */
void kp_jobends_child(struct kp_kineto *trace, const struct kp_jobends *ends);
/* For a trace that has no cause of its early end: adds the one that a launcher wrote into the folder of `path`; and
 * that child. */
void kp_jobends_settle(struct kp_kineto *trace, const char *path);
/* Adds a line to the file of that process: `status` as wait(2) has it. */
void kp_jobends_add(const char *folder, long pid, int status, uint64_t at_ns);
void kp_jobends_fini(struct kp_jobends *ends);
