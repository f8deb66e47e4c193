// SPDX-License-Identifier: Apache-2.0
/* modulekeys.h - finds the name that the program gives an nn.Module */
#pragma once

#include "preload/python/python.h"

/* torch.nn.Module, and the code object of its __call__; NULL: not known yet */
extern const void *kp_modulekey_type, *kp_modulekey_code;
/* `self`, the first local of nn.Module.__call__'s frame. */
const void *kp_modulekey_self(const struct kp_python_layout *l, const void *frame);
/*
 * The name of `self` in the module whose call is around the frame of its own call, written into `text`: "fc1", or
 * "layers.3" by way of modules that are not called. "": it has none. It has no control letters. The GIL is held.
 */
const char *kp_modulekey_find(const void *frame, const void *self, char *text, size_t bytes);
