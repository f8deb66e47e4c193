// SPDX-License-Identifier: Apache-2.0
/* zst.h - a zstd stream into a sink */
#pragma once

#include <stddef.h>

#include "export/write/out/sink.h"

struct kp_zst;

struct kp_zst *kp_zst_open(struct kp_sink *sink);                     /* NULL: no memory */
int kp_zst_write(struct kp_zst *zst, const void *data, size_t bytes); /* 0 or -errno */
int kp_zst_finish(struct kp_zst *zst);                                /* writes the tail; 0 or -errno */
void kp_zst_close(struct kp_zst *zst);
