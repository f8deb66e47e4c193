// SPDX-License-Identifier: Apache-2.0
/* filename.h - names of trace files, as the TensorBoard plugin and HTA look for them */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes WORKER.TIMESTAMPNS.pt.trace.json[.gz], with HOST_PID for a worker of NULL. A phase follows it: WORKER_PHASE.
 * Bytes that no file name should have become '_'. 0 or -ENAMETOOLONG.
 */
int kp_filename_make(char *out, size_t bytes, const char *worker, const char *host, uint32_t pid, const char *phase,
                     uint64_t now_ns, bool gzip);
