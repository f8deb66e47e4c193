// SPDX-License-Identifier: Apache-2.0
/*
 * kp_heap.h - what a spool says of the host's heap (KPROF_MALLOC)
 *
 * KP_KIND_HEAP (trace): a block taken or given back, in the chunk of the thread that did it; where that thread could
 * not write (it ends, or a signal struck it inside a hook), in a chunk of a lane. Who frees which block is for a reader
 * to find: by address, in order of time over all threads. A realloc is two records of one thread, the block given back
 * and the one taken.
 *
 *   short:  24 bytes. Taken: block = address / 8 << KP_HEAP_BYTES_BITS | bytes. Given back: block = address.
 *   long:   32 bytes (KP_HEAP_LONG). block = address, and bytes follow.
 *
 * head.name of a block taken is its call stack: the id of the innermost frame (struct kp_rec_frame), 0: lost.
 *
 * KP_KIND_HEAPCOUNT (count): what a thread did since `start`, and before its next range began or ended and before the
 * next step.
 */
#ifndef KP_HEAP_FORMAT_H
#define KP_HEAP_FORMAT_H

#include "collector/format/kp_format.h"

enum {
    KP_HEAP_FREE = 1u << 0,    /* given back */
    KP_HEAP_REALLOC = 1u << 1, /* by realloc */
    KP_HEAP_LONG = 1u << 2,
    KP_HEAP_MAPPED = 1u << 3,   /* by mmap, munmap or mremap, always long: no part of the heap */
    KP_HEAP_RESTORED = 1u << 4, /* the realloc failed: the block this thread gave back last is still there */
};
enum { KP_HEAP_BYTES_BITS = 20, KP_HEAP_SHORT_BYTES = 24 };
#define KP_HEAP_ADDRESS_END (UINT64_C(1) << 47) /* addresses beyond are told in the long form */
struct kp_rec_heap {
    struct kp_rec head;
    uint64_t start; /* ticks: of what was taken, after; of what was given back, before */
    uint64_t block;
    uint64_t bytes; /* with KP_HEAP_LONG */
};
_Static_assert(sizeof(struct kp_rec_heap) == 32, "a long block is 32 bytes");

enum { KP_HEAP_LIVE = 1u << 0 }; /* `live` is known: the allocator tells how large a block is */
struct kp_rec_heapcount {
    struct kp_rec head;
    uint64_t start;                /* ticks, of the first */
    _Atomic uint64_t taken, given; /* blocks */
    _Atomic uint64_t bytes;        /* asked for */
    _Atomic int64_t live;          /* by how many bytes the heap grew, as the allocator rounds them */
};
_Static_assert(sizeof(struct kp_rec_heapcount) == 48, "a count is 48 bytes");

#endif
