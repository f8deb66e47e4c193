// SPDX-License-Identifier: Apache-2.0
/* hierarchy.h - an op's modules of TorchScript (Module Hierarchy) as a call stack, which readers by module know */
#pragma once

#include <stddef.h>

/*
 * Writes "nn.Module: fc1(Linear);nn.Module: TOP(Net)" of "TOP(Net)::forward.fc1(Linear)::forward.", the innermost first
 * as in a call stack. Returns its length; 0: there is none, or no room.
 */
size_t kp_hierarchy_stack(char *out, size_t room, const char *text, size_t bytes);
