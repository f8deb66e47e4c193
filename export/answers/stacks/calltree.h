// SPDX-License-Identifier: Apache-2.0
/*
 * calltree.h - call paths with what each costs, by the part of a training step
 *
 * A path is a place in the tree of names. Each place holds a value for each part. So a function that runs in
 * forward and in the optimizer is one place. Traces added to one tree add up.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum kp_part { /* by rank: what a call is part of outranks what its callers are part of, if it is the greater */
               KP_PART_OTHER,
               KP_PART_OPTIMIZER,
               KP_PART_FORWARD,
               KP_PART_BACKWARD,
               KP_PART_LOADING,
               KP_PART_THREADS, /* threads beside the main one */
               KP_PARTS
};
const char *kp_part_name(enum kp_part part);

struct kp_calltree;
struct kp_calltree *kp_calltree_open(void);
void kp_calltree_close(struct kp_calltree *tree);
/* Places that are made from now on have the names that the trace's program gives its modules. NULL: torch's alone. */
struct kp_kineto;
void kp_calltree_name_modules(struct kp_calltree *tree, struct kp_kineto *trace);
/* Finds or makes the place below `parent`, 0 being the root. The name is kept as folded stacks can hold it. Below the
 * 512th frame it returns `parent`: deeper calls count there. */
uint32_t kp_calltree_child(struct kp_calltree *tree, uint32_t parent, const char *name);
void kp_calltree_add(struct kp_calltree *tree, uint32_t place, enum kp_part part, int64_t value);
/* Notes a value that counts only once kp_calltree_count_rest() is called, which adds all of these. */
void kp_calltree_add_rest(struct kp_calltree *tree, uint32_t place, enum kp_part part, int64_t value);
void kp_calltree_count_rest(struct kp_calltree *tree);
size_t kp_calltree_count(const struct kp_calltree *tree); /* places, the root among them; a parent comes first */
uint32_t kp_calltree_parent(const struct kp_calltree *tree, uint32_t place);
const char *kp_calltree_name(const struct kp_calltree *tree, uint32_t place);
/* The result of kp_calltree_fold(). */
struct kp_calltree_folded {
    size_t paths;  /* fewer; what they cost stands at their callers */
    int64_t below; /* each was less */
};
/* Moves what is below a place of little value into that place's caller, until the text of all paths has no more than
 * `text_bytes`. Sums stay. */
void kp_calltree_fold(struct kp_calltree *tree, size_t text_bytes, struct kp_calltree_folded *folded);
/*
 * Calls `fn` for every path with a value: "part;outer;inner", values divided by `unit`. A division's remainder is added
 * to the next path's value, so the values that `fn` gets have the tree's sum.
 */
typedef void (*kp_path_fn)(void *context, const char *path, int64_t value);
void kp_calltree_each(const struct kp_calltree *tree, int64_t unit, kp_path_fn fn, void *context);

/* ---- texts of call stacks, "inner;outer;", as paths ---- */

/* The stack without its last ';', and of a forked worker without the frames around the fork. */
size_t kp_stackpath_bytes(const char *stack);
/* How many bytes at the end of both are the same outer frames. */
size_t kp_stackpath_common(const char *a, size_t a_bytes, const char *b, size_t b_bytes);
/* Adds the frames of the first `bytes` bytes, outermost first, but none of the interpreter's machine code. */
uint32_t kp_stackpath_add(struct kp_calltree *tree, uint32_t base, const char *stack, size_t bytes);
/* The frames that two stacks share, and the function of both whose line went on from one to the other. */
uint32_t kp_stackpath_between(struct kp_calltree *tree, uint32_t base, const char *a, const char *b);
