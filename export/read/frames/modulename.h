// SPDX-License-Identifier: Apache-2.0
/*
 * modulename.h - the names that the program gives its nn.Modules, beside those of torch.profiler
 *
 * Kineto calls a module "Linear_4". Our traces also have what the program calls it, "blocks.1.up". Both are shown:
 * "Net_0.blocks.1.up (Linear_4)".
 */
#pragma once

#include "export/read/frames/framename.h"
#include "export/read/kineto/kineto.h"

/* Takes over all names that another trace has. */
void kp_modulename_carry(struct kp_kineto *to, const struct kp_kineto *from);
/* A frame as it is shown: "nn.Module: blocks.1.up (Linear_4)", or the frame itself. */
const char *kp_modulename_frame(struct kp_frametext *out, struct kp_kineto *trace, const char *frame);
/* The same for a string id, which is also what is returned. */
uint32_t kp_modulename_frame_id(struct kp_kineto *trace, uint32_t frame);
/* kp_framename_is_meant(), but the pattern may mean the program's name as well: "blocks.1.*". */
bool kp_modulename_is_meant(const struct kp_kineto *trace, const char *pattern, uint32_t name);
/* A path of modules as it is shown. `path`: "Net_0.Block_1.Linear_4". */
const char *kp_modulename_path(struct kp_frametext *out, struct kp_kineto *trace, const char *path);
uint32_t kp_modulename_path_id(struct kp_kineto *trace, uint32_t path);
