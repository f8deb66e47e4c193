// SPDX-License-Identifier: Apache-2.0
/* callers.h - finds callers and call stacks of Python functions, and numbers modules */
#pragma once

#include "collector/read/kp_read.h"
#include "export/write/out/json.h"

struct kp_callers;
struct kp_callers *kp_callers_open(void); /* NULL: no memory */
void kp_callers_close(struct kp_callers *p);

struct kp_pycall {
    uint64_t id, parent; /* from 1 in order of start; a parent of 0 is no call */
    int64_t module;      /* number of the object among those of its class, or -1 */
    uint64_t before_ns;  /* of a further part: how long before it the call began */
    bool has_path;       /* the program has a name for the object, which kp_callers_path_write writes */
};
/* Takes the next call, in order of start. 0 or -ENOMEM. */
int kp_callers_take(struct kp_callers *p, const struct kp_event *call, struct kp_pycall *out);
/* Writes the name of a module's object from the outermost module on, "blocks.3.fc1". */
void kp_callers_path_write(struct kp_callers *p, const struct kp_event *call, struct kp_json *json);
/* Writes the calls that are open on `e`'s thread when it starts, innermost first, each with ';' behind. */
void kp_callers_stack_write(struct kp_callers *p, const struct kp_event *e, struct kp_json *json);
bool kp_callers_has_stack(struct kp_callers *p, const struct kp_event *e);
