// SPDX-License-Identifier: Apache-2.0
/*
 * python.h - what the files of preload/python share: where CPython's fields lie
 */
#ifndef KP_PYTHON_H
#define KP_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets in bytes, of one release. */
struct kp_python_layout {
    uint32_t version;                     /* major * 100 + minor */
    uint16_t thread_cframe, thread_frame; /* thread state -> frame; by way of a third object when cframe is not 0 */
    uint16_t thread_profile;              /* thread state -> its profile function */
    uint16_t frame_back, frame_code, frame_owner, frame_locals; /* owner 0: has none */
    uint16_t frame_place;  /* where in the code it is: an int offset up to 3.10, an address from 3.11 on */
    uint16_t object_frame; /* frame object -> frame; 0: they are one (up to 3.10) */
    uint16_t code_file, code_name,
        code_bytes;                 /* bytes: where the bytecode begins, 0: not in the code object (up to 3.10) */
    uint16_t text_ascii, text_wide; /* where the characters of a str begin */
    uint16_t tuple_items;
};
/* The same in every release: ob_refcnt 0, ob_type 8; a str's length 16, state 32; a tuple's ob_size 16. */
enum { KP_PYTHON_OWNED_BY_C = 3 }; /* frames with such an owner or a higher one run no Python code */

struct kp_python {
    struct kp_python_layout layout;
    void *(*thread_state)(void); /* of the calling thread, also without the GIL; NULL: it never ran Python */
    const void *tuple_type;
};

/* python_find.c: NULL: no interpreter here, or none we know. Constant once found. */
const struct kp_python *kp_python_get(void);
/* What is there and not known here: "Python 3.15", "Python 3.14 without a GIL"; NULL: nothing such was met */
const char *kp_python_unknown(void);
/* From 3.14 on the lowest bits of what a frame holds say who counts the reference. */
static inline const void *kp_python_unheld(const struct kp_python_layout *l, const void *held)
{
    return l->version >= 314 ? (const void *)((uintptr_t)held & ~(uintptr_t)3) : held;
}
/* python_frames.c: the `self` of the Optimizer.step that the calling thread is in, by the frames of `thread_state`; 0:
 * not found */
uint64_t kp_python_optimizer_find(const struct kp_python *python, const void *thread_state);
void kp_python_frames_forget(void); /* what it learned of one interpreter; tests have several */

#endif
