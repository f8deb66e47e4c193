// SPDX-License-Identifier: Apache-2.0
/*
 * kp_heap.h - a spool's records about the host's heap (KPROF_MALLOC)
 *
 * KP_KIND_HEAP (trace): an allocation or a free, in the chunk of the thread that made it. If the thread could not
 * write (it ends, or a signal struck in a hook), a lane has the record. A reader matches a free to
 * its block by address, in order of time over all threads. A realloc is two records of a thread, a free and an
 * allocation.
 *
 *   short:  24 bytes. Allocated: block = address / 8 << KP_HEAP_BYTES_BITS | bytes. Freed: block = address.
 *   long:   32 bytes (KP_HEAP_LONG). block = address, and bytes follow.
 *
 * An allocated block's head.name is its call stack, the id of the innermost frame (struct kp_rec_frame), or 0 if lost.
 * With KPROF_WITH_STACK it may be the id of a machine code stack together with a Python stack (KP_FRAME_PYTHON).
 *
 * KP_KIND_HEAPCOUNT (count): a thread's allocations and frees since `start`. The count ends before the thread's next
 * range begins or ends, and before the next step.
 */
#pragma once

#include "collector/format/kp_format.h"

enum {
    KP_HEAP_FREE = 1u << 0,    /* freed */
    KP_HEAP_REALLOC = 1u << 1, /* by realloc */
    KP_HEAP_LONG = 1u << 2,
    KP_HEAP_MAPPED = 1u << 3,   /* by mmap, munmap or mremap, always long; not part of the heap */
    KP_HEAP_RESTORED = 1u << 4, /* the realloc failed: the block that this thread freed last is still there */
    KP_HEAP_ENDING = 1u << 5,   /* freed while Python ends, which frees what the program kept; with stacks of Python */
};
enum { KP_HEAP_BYTES_BITS = 20, KP_HEAP_SHORT_BYTES = 24 };
#define KP_HEAP_ADDRESS_END (UINT64_C(1) << 47) /* addresses beyond need the long form */
struct kp_rec_heap {
    struct kp_rec head;
    uint64_t start; /* ticks: after an allocation, before a free */
    uint64_t block;
    uint64_t bytes; /* with KP_HEAP_LONG */
};
_Static_assert(sizeof(struct kp_rec_heap) == 32, "a long block is 32 bytes");

enum { KP_HEAP_LIVE = 1u << 0 }; /* `live` is known, since the allocator tells block sizes */
struct kp_rec_heapcount {
    struct kp_rec head;
    uint64_t start;                /* ticks of the first event */
    _Atomic uint64_t taken, given; /* blocks */
    _Atomic uint64_t bytes;        /* requested */
    _Atomic int64_t live;          /* the heap's growth in bytes, as the allocator rounds sizes */
};
_Static_assert(sizeof(struct kp_rec_heapcount) == 48, "a count is 48 bytes");
