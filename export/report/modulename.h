// SPDX-License-Identifier: Apache-2.0
/*
 * modulename.h - the names that the program gives its nn.Modules, beside those of torch.profiler
 *
 * Kineto calls a module "Linear_4". Our traces also have what the program calls it, "blocks.1.up". Both are shown:
 * "Net_0.blocks.1.up (Linear_4)".
 */
#pragma once

#include "export/report/framename.h"
#include "export/report/kineto.h"

/* Notes what the program calls the module of a call "nn.Module: Linear_4". Two names of one text count as none. */
void kp_strings_name_module(struct kp_strings *strings, uint32_t call, uint32_t name);
/* The name that was noted; 0: none. */
uint32_t kp_strings_module(const struct kp_strings *strings, uint32_t call);
bool kp_strings_has_module(const struct kp_strings *strings, uint32_t call); /* one, or several */
/* Takes over what was noted of the same call elsewhere. */
void kp_strings_module_from(struct kp_strings *to, uint32_t call, struct kp_strings *from, uint32_t its);
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
