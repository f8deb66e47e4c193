// SPDX-License-Identifier: Apache-2.0
/* joblist.h - the jobs whose ranks share a folder, by their ids, and the one that the user means */
#pragma once

#include <stddef.h>

enum { KP_JOBLIST_ID = 46 };   /* KP_JOB_ID_BYTES */
#define KP_JOBLIST_NONE "none" /* how ranks without an id are named */

struct kp_joblist {
    struct kp_joblist_row {
        char id[KP_JOBLIST_ID];
        unsigned ranks;
    } * rows;
    size_t count, capacity;
};

void kp_joblist_add(struct kp_joblist *list, const char *id); /* one rank of the job */
/*
 * The job that `wish` names: its id, or the begin of it. NULL: the only one. Returns NULL with a message told where
 * that is none of the list or more than one. An empty list has the job "".
 */
const char *kp_joblist_pick(const struct kp_joblist *list, const char *folder, const char *wish);
void kp_joblist_free(struct kp_joblist *list);
