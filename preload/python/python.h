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
    uint32_t version; /* major * 100 + minor */
    uint16_t thread_cframe, thread_frame; /* thread state -> frame; by way of a third object when cframe is not 0 */
    uint16_t frame_back, frame_code, frame_owner, frame_locals; /* owner 0: has none */
    uint16_t code_file, code_name;
    uint16_t text_ascii, text_wide; /* where the characters of a str begin */
};
/* The same in every release: ob_refcnt 0, ob_type 8; a str's length 16, state 32; a tuple's ob_size 16, ob_item 24. */
enum { KP_PYTHON_OWNED_BY_C = 3 }; /* frames with such an owner or a higher one run no Python code */

struct kp_python {
    struct kp_python_layout layout;
    void *(*thread_state)(void); /* of the calling thread, also without the GIL; NULL: it never ran Python */
    const void *tuple_type;
};

/* find.c: NULL: no interpreter here, or none we know. Constant once found. */
const struct kp_python *kp_python_get(void);
/* frames.c: the `self` of the Optimizer.step that the calling thread is in, by the frames of `thread_state`; 0: not found */
uint64_t kp_python_optimizer_find(const struct kp_python *python, const void *thread_state);
void kp_python_frames_forget(void); /* what it learned of one interpreter; tests have several */

#endif
