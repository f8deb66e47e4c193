// SPDX-License-Identifier: Apache-2.0
/* filetext.h - says which files a run wrote beside its traces, and whether there are new ones at all */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/kp_export.h"

/* Logs once what KPROF_EXPORT (`exports`) asked for and is missing. */
void kp_filetext_say_extras(const struct kp_export_result *result, unsigned exports);
/* Names the last trace and its extras: "DIR/NAME.pt.trace.json.gz, .table.txt". NULL: nothing was written. */
const char *kp_filetext_last(const char *trace, unsigned extras, unsigned exports, char *out, size_t bytes);
/* Whether a process has recorded into the folder since then: the ranks of a launcher, for example. */
bool kp_filetext_has_new(uint64_t since_ns);
