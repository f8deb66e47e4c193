// SPDX-License-Identifier: Apache-2.0
/* tracewrite.h - writes the trace of a cycle of this process's own spool */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collector/base/kp_config.h"
#include "export/kp_export.h"

/* What all traces of this process have in common. host_waits: at exit, which may take what room is left. */
struct kp_export_options kp_tracewrite_options(const struct kp_config *config, bool host_waits);
/* As kp_export_trace. Logs a failure, once for a reason. */
int kp_tracewrite(uint32_t cycle, const struct kp_export_options *options, struct kp_export_result *result);
/* Whether this rank's turn has come to begin. is_alone: one window waits, and nothing else; else it is due at once. */
bool kp_tracewrite_is_due(bool is_alone);
