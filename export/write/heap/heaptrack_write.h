// SPDX-License-Identifier: Apache-2.0
/*
 * heaptrack_write.h - NAME.heap.zst beside a trace: every block of the window with its call stack, as heaptrack has it
 */
#pragma once

#include "export/write/out/trace.h"

#define KP_HEAPFILE_PYTHON "Python" /* the module of Python's frames */

struct kp_heapfile;
struct kp_heap_event;
/* Opens it under a temporary name. t->result->path is where the trace will be. 0 or -errno. */
int kp_heapfile_open(struct kp_heapfile **out, struct kp_trace *t);
/* Blocks taken from here on belong to this step. */
void kp_heapfile_step(struct kp_heapfile *f, uint64_t number);
void kp_heapfile_no_step(struct kp_heapfile *f);
/* From here on Python frees what the program kept, since it ends. */
void kp_heapfile_python_ends(struct kp_heapfile *f);
/* Asks for the memory that kp_heapfile_block looks at, some blocks before it is called. */
void kp_heapfile_prefetch(const struct kp_heapfile *f, uint32_t stack, uint64_t bytes);
/* The number for blocks of so many bytes from this stack, from 1 on. 0: an error, which _commit reports. */
uint32_t kp_heapfile_block(struct kp_heapfile *f, uint32_t stack, uint64_t bytes);
void kp_heapfile_taken(struct kp_heapfile *f, uint32_t block, uint64_t now_ns);
void kp_heapfile_given(struct kp_heapfile *f, uint32_t block, uint64_t now_ns);
/* Memory that Python's allocator of small objects maps (an arena) or unmaps. Other mapped memory is left out. */
void kp_heapfile_mapped(struct kp_heapfile *f, const struct kp_heap_event *e);
int kp_heapfile_flush(struct kp_heapfile *f); /* options->heap_text gets all there is. 0 or -errno */
int kp_heapfile_commit(struct kp_heapfile *f, const char *trace_path); /* 0 or -errno */
void kp_heapfile_close(struct kp_heapfile *f);
