// SPDX-License-Identifier: Apache-2.0
/*
 * kp_export.h - the door of the export side: writes traces from spools
 *
 * Called by: the export thread inside the host, the CLI
 * Memory:    bounded; never the host's malloc
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collector/read/kp_read.h"

/* The place of a call in its source. The function may be inlined into another. */
struct kp_place {
    const char *function; /* as the compiler names it, or NULL when not known */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
    bool is_inlined;
};
/* Only the command has these: libraries that read debug information, and that demangle names. */
struct kp_places {
    void *context;
    /*
     * Finds the functions at an address of a frame's module, as the module's file counts. Inlined functions come first,
     * innermost first. Returns how many.
     */
    int (*find)(void *context, const struct kp_frame *frame, uint64_t at, struct kp_place *out, int most);
    const char *(*plain)(void *context,
                         const char *mangled); /* demangles; valid until the next call. NULL: the C++ library does */
    bool lines;                                /* frames are written with inlined functions and source lines */
    bool tables;                               /* `find` reads tables of symbols, too: the exporter reads none itself */
};

/* The owner and mode that the files get. */
struct kp_export_owner {
    uint32_t uid, gid, mode;
};

struct kp_export_options {
    const char *dir;         /* output folder, made when missing */
    const char *worker_name; /* NULL: HOST_PID of the spool, or HOST_rRANK_PID */
    bool gzip;
    const char *metadata;                    /* KPROF_METADATA, a checked JSON object, or NULL */
    bool loads_cpp;                          /* the export may load a C++ library to demangle kernels' names */
    const char *(*cpp)(const char *mangled); /* demangles C++; valid until the next call. NULL: a C++ library does */
    const struct kp_places *places;          /* NULL: frames get their names from symbol tables only */
    const struct kp_export_owner
        *owner; /* NULL: the caller's, by its umask. Before the owner changes, the mode is 0600 */
    /* may be NULL; gets the number of events written so far. Non-zero stops the export */
    int (*progress)(void *context, uint64_t events);
    /* may be NULL. Called when the trace has its name */
    void (*written)(void *context);
    void *context;
    bool is_kept; /* the program goes on: what the ring has at this moment (KPROF_RING) */
    /* takes the trace's text in place of a file, or NULL. Non-zero ends the export and becomes its result */
    int (*text)(void *context, const char *text, size_t bytes);
    void *text_context;
    /* takes the text of the heap's profile in place of NAME.heap.zst, before the trace's text, or NULL. As `text` */
    int (*heap_text)(void *context, const char *text, size_t bytes);
    void *heap_context;
    uint64_t written_ns;     /* the time in the file's name, in ns since the epoch. 0: now */
    uint64_t left_free;      /* bytes of the volume that stay free for the program, or 0. Less is -ENOSPC */
    uint64_t text_most;      /* for spools of any origin: the most bytes of text before gzip, or 0. More is -EFBIG */
    const char *scratch_dir; /* folder for what does not fit into memory. NULL, as inside the host: it stays there */
    /* the most bytes of each scratch file, or 0. An event that needs more is left out and counted, or gives -ENOMEM */
    uint64_t scratch_most;
    /* KP_PART_BYTES for the temporary file's path while it exists, so that a signal handler can remove it. Or NULL */
    char *part;
    char *heap_part; /* the same for the heap's profile */
};
enum { KP_PART_BYTES = 4096 };
struct kp_export_result {
    char path[4096];
    uint64_t events, steps, lost;
    bool is_room_left;    /* -ENOSPC was given for options.left_free */
    uint64_t last_step;   /* number of the last of the steps: those that ended */
    uint64_t calls;       /* calls of functions by name */
    uint64_t allocations; /* allocations in the host's heap */
    uint64_t gpu_events;  /* kernels, copies, fills and whole graphs */
    uint64_t text_bytes;  /* of the trace before gzip, even if the export failed */
};
/*
 * Writes cycle `cycle` as DIR/WORKER.TIMESTAMPNS.pt.trace.json[.gz], under a temporary name first, renamed when
 * complete. 0, -ENODATA when the cycle has no event (no file), or -errno.
 */
/* Whether the cycle has events to write: 1, 0, or -errno. Writes no file. */
int kp_export_has(struct kp_reader *reader, uint32_t cycle);
int kp_export_trace(struct kp_reader *reader, uint32_t cycle, const struct kp_export_options *options,
                    struct kp_export_result *result);
