// SPDX-License-Identifier: Apache-2.0
/* gpus.h - the META records about GPUs: devices, contexts, the device clock, CUPTI's thread ids */
#pragma once

#include <stdint.h>

#include "collector/base/kp_idtable.h"
#include "collector/format/kp_device.h"
#include "collector/read/devclock.h"

enum { KP_GPUS_MAX = 256 };
struct kp_gpu_thread {
    uint64_t thread_id;
    uint32_t tid;
};
struct kp_gpus {
    struct kp_devclock clock;
    const struct kp_rec_device *device[KP_GPUS_MAX]; /* by id, in the mapping; the last record of an id counts */
    uint32_t devices;                                /* the highest id + 1 */
    struct kp_rec_context *contexts;
    uint32_t contexts_n, contexts_cap;
    struct kp_idtable threads; /* of kp_gpu_thread */
};

int kp_gpus_take(struct kp_gpus *g, const struct kp_rec *rec,
                 uint32_t bytes); /* a META record of any kind; 0 or -ENOMEM */
int kp_gpus_thread(struct kp_gpus *g, uint32_t thread_id,
                   uint32_t tid); /* replaces an earlier tid of thread_id; 0 or -ENOMEM */
uint32_t kp_gpus_tid(const struct kp_gpus *g, uint32_t thread_id); /* an unknown thread_id is returned as it is */
void kp_gpus_fini(struct kp_gpus *g);
