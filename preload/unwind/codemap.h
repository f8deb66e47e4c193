// SPDX-License-Identifier: Apache-2.0
/* codemap.h - finds the module of a code address */
#pragma once

#include "preload/unwind/rule.h"

void kp_unwind_modules_setup(void);
uint32_t kp_unwind_generation(void);   /* changes when modules were unloaded */
uint32_t kp_unwind_file(void);         /* changes with the spool that frames are written to: in a forked child */
void kp_unwind_modules_use_list(void); /* for tests: works as on an old C library */
/* Where the module of this address has its unwind table. Lock-free, any thread. false: no module there, or none with a
 * table. */
bool kp_unwind_table_find(uintptr_t pc, struct kp_unwind_table *out);
/*
 * The module of this address, as the id of a text (kp_format.h, struct kp_rec_frame), and where in it the address is.
 * 0: no module, offset is the address. Inside a hook; a module not met before costs microseconds.
 */
struct kp_thread;
uint32_t kp_unwind_module_find(struct kp_thread *t, uintptr_t pc, uint64_t *offset);
bool kp_unwind_is_ours(uintptr_t pc); /* code of this library; never in a program that has it built in (tests) */
