// SPDX-License-Identifier: Apache-2.0
/* codemap.h - finds the module of a code address */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ---- rule.c: unwind rules: how to find the caller's return address from a return address ---- */

/* The base of an offset. */
enum {
    KP_ON_CFA = 0,
    KP_ON_SP = 1,
    KP_ON_FP = 2,
    KP_ON_NONE = 3,
    KP_IN_LINK = 2 /* for ra only: in the link register, AArch64's x30 */
};

/*
 * One word, so that threads read and write it as a whole. The canonical frame address (CFA) is the stack pointer of the
 * caller: sp or fp plus cfa_at, or the word at that address (cfa_is_word). ra_* and fp_* tell where the return address
 * and the caller's frame pointer are stored. KP_ON_NONE means "no caller" for ra, and "unchanged" for fp. All offsets
 * are in units of 8 bytes.
 */
union kp_rule {
    uint64_t word; /* 0: not known */
    struct {
        uint64_t is_known : 1, cfa_on_fp : 1, cfa_is_word : 1, fp_on : 2, ra_on : 2, is_signal : 1, generation : 14;
        int64_t cfa_at : 20, fp_at : 12, ra_at : 10;
    };
};
_Static_assert(sizeof(union kp_rule) == 8, "a rule is one word");

/* The unwind table of a loaded module, from PT_GNU_EH_FRAME. */
struct kp_unwind_table {
    uintptr_t lo, hi; /* the module's address range */
    const uint8_t *header;
    bool is_sure; /* the loader says it is there now; else memory is read with care */
};

/* The rule for an address in that module; is_known 0: there is none, or one that is not supported. `generation`
 * is 0. */
union kp_rule kp_rule_find(const struct kp_unwind_table *table, uintptr_t pc);

/* ---- codemap.c ---- */

void kp_unwind_modules_setup(void);
uint32_t kp_unwind_generation(void);   /* changes when modules were unloaded */
uint32_t kp_unwind_file(void);         /* changes with the spool that frames are written to: in a forked child */
void kp_unwind_modules_use_list(void); /* for tests: works as on an old C library */
/* The unwind table of the module of this address. Lock-free, any thread. false: no module there, or none with a
 * table. */
bool kp_unwind_table_find(uintptr_t pc, struct kp_unwind_table *out);
/*
 * The module of this address, as the id of a text (kp_format.h, struct kp_rec_frame), and where in it the address is.
 * 0: no module, offset is the address. Inside a hook; a module not met before costs microseconds.
 */
struct kp_thread;
uint32_t kp_unwind_module_find(struct kp_thread *t, uintptr_t pc, uint64_t *offset);
bool kp_unwind_is_ours(uintptr_t pc); /* code of this library; never in a program that has it built in (tests) */
