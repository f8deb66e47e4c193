// SPDX-License-Identifier: Apache-2.0
/* gz.h - a gzip stream into a sink */
#pragma once

#include <stddef.h>

#include "export/write/out/sink.h"

struct kp_gz;

struct kp_gz *kp_gz_open(struct kp_sink *sink);                    /* NULL: no memory */
int kp_gz_write(struct kp_gz *gz, const void *data, size_t bytes); /* 0 or -errno */
int kp_gz_finish(struct kp_gz *gz);                                /* writes the tail; 0 or -errno */
void kp_gz_close(struct kp_gz *gz);
