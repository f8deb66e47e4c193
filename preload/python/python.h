// SPDX-License-Identifier: Apache-2.0
/*
 * python.h - shared by the files of preload/python: the layout of CPython's structures
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets in bytes, for one release. */
struct kp_python_layout {
    uint32_t version;                     /* major * 100 + minor */
    uint16_t thread_cframe, thread_frame; /* thread state -> frame; by way of a third object when cframe is not 0 */
    uint16_t thread_profile;              /* thread state -> its profile function */
    uint16_t frame_back, frame_code, frame_owner, frame_locals; /* frame_owner 0: this release has no such field */
    uint16_t frame_place;  /* the current instruction: an int offset up to 3.10, an address from 3.11 on */
    uint16_t object_frame; /* frame object -> frame; 0: they are one (up to 3.10) */
    uint16_t code_file, code_name,
        code_bytes;                 /* bytes: where the bytecode begins, 0: not in the code object (up to 3.10) */
    uint16_t text_ascii, text_wide; /* offsets of a str's characters */
    uint16_t tuple_items;
    uint16_t thread_id;             /* thread state -> pthread_self(); from 3.11 on the kernel's number follows it */
    uint16_t code_line, code_lines; /* the first line, an int; the table of lines, a bytes object */
};
/* In every release: a thread state's next at 8; ob_refcnt at 0, ob_type at 8; a str's length at 16, state at 32; a
 * tuple's ob_size at 16. */
enum { KP_PYTHON_THREAD_NEXT = 8, KP_PYTHON_TYPE_OF = 8 };
enum { KP_PYTHON_OWNED_BY_C = 3 }; /* a frame with this owner or a higher one runs no Python code */

struct kp_python {
    struct kp_python_layout layout;
    void *(*thread_state)(void); /* of the calling thread, also without the GIL; NULL: it never ran Python */
    const void *tuple_type;
    const void *object_free; /* PyObject_GC_Del; NULL: not found */
    /* For a thread that has no GIL (pywhere.c). NULL: not found */
    void *(*main_interpreter)(void), *(*first_thread)(void *interpreter);
    int (*is_initialized)(void), (*is_ending)(void);
    const void *code_type, *text_type, *runtime;
};

/* python_find.c: NULL: no interpreter here, or none we know. Constant once found. */
const struct kp_python *kp_python_get(void);
/* The interpreter that was found but is not supported: "Python 3.15", "Python 3.14 without a GIL"; NULL: none */
const char *kp_python_unknown(void);
/* Clears the lowest two bits of a frame's reference: from 3.14 on they are flags of reference counting. */
static inline const void *kp_python_unheld(const struct kp_python_layout *l, const void *held)
{
    return l->version >= 314 ? (const void *)((uintptr_t)held & ~(uintptr_t)3) : held;
}
struct kp_optimizer_seen {         /* of an interpreter; all zero: nothing yet */
    _Atomic(const void *) wrapper; /* code object of torch's wrapper */
    _Atomic uint32_t misses;
    _Atomic(const void *) watched; /* the class that was looked at last */
};
/* optimizer_find.c: the `self` of the Optimizer.step that the calling thread is in, by `thread_state`'s frames. 0: not
 * found */
uint64_t kp_python_optimizer_find(const struct kp_python *python, struct kp_optimizer_seen *seen,
                                  const void *thread_state);
