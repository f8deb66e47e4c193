// SPDX-License-Identifier: Apache-2.0
/*
 * kp_export.h - door of the showing side: traces from spools
 *
 * Called by: the export thread inside the host and the CLI. Bounded memory; no malloc of the host's is used.
 */
#ifndef KP_EXPORT_H
#define KP_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/read/kp_read.h"

/* As in KPROF_EXPORT; KP_EXTRA_X is KP_EXPORTS_X of kp_config.h. */
enum { KP_EXTRA_TABLE = 1u << 1, KP_EXTRA_STACKS = 1u << 2, KP_EXTRA_MEMORY = 1u << 3, KP_EXTRAS = 7u << 1 };

/* Where a call stands in its source: of a function, or of one that was put into it instead of being called. */
struct kp_place {
    const char *function; /* as the compiler names it; NULL: not known. All texts: as long as who was asked */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
    bool is_inlined;
};
/* What only a command has at hand: libraries that read debug information, and that take names of functions apart. */
struct kp_places {
    void *context;
    /* What stands at an address of a frame's module, as its file counts: the innermost first, the function itself last.
     * How many. */
    int (*find)(void *context, const struct kp_frame *frame, uint64_t at, struct kp_place *out, int most);
    const char *(*plain)(void *context,
                         const char *mangled); /* NULL: only the C++ library is asked. Valid until the next call */
    bool lines;                                /* frames are written with inlined functions and source lines */
    bool tables;                               /* `find` reads tables of symbols, too: the exporter reads none itself */
};

/* Whose the files become, and who may read them. */
struct kp_export_owner {
    uint32_t uid, gid, mode;
};

struct kp_export_options {
    const char *dir;         /* output folder, made when missing */
    const char *worker_name; /* NULL: HOST_PID of the spool */
    bool gzip;
    const char *metadata; /* KPROF_METADATA, a JSON object; NULL none; a bad one was refused earlier */
    bool loads_cpp;       /* a C++ library may be loaded to read kernels' names; else only one that is there is asked */
    const char *(*cpp)(
        const char *mangled);       /* asked for names of C++ instead, valid until the next; NULL: a C++ library is */
    const struct kp_places *places; /* NULL: frames have the names that tables of symbols tell */
    unsigned extras;                /* bits of KP_EXTRA_: what is written beside the trace */
    bool no_trace;                  /* only that; result.path is where the trace would be */
    const struct kp_export_owner
        *owner; /* NULL: the caller's, as his umask says. Else nobody else sees into them before they are another's */
    /* progress, may be NULL: events written so far, and whether the caller wants it to stop (non-zero stops) */
    int (*progress)(void *context, uint64_t events);
    void (*written)(
        void *context); /* may be NULL: the trace has its name; with no_trace, what is beside it was written */
    void *context;
    /* takes the trace's text, so that there is no file; non-zero ends the export and becomes its result. NULL: a file
     * is written */
    int (*text)(void *context, const char *text, size_t bytes);
    void *text_context;
    uint64_t text_most; /* bytes of text before they are packed, for files by anybody: more is -EFBIG. 0: any number */
    /* bytes of each scratch file, likewise: more is left out and counted, or -ENOMEM. 0: any number */
    uint64_t scratch_most;
    /* room of KP_PART_BYTES for the temporary file's path while there is one: who is ended by a signal removes it.
     * NULL: none */
    char *part;
};
enum { KP_PART_BYTES = 4096 };
struct kp_export_result {
    char path[4096];
    uint64_t events, steps, lost;
    uint64_t calls;       /* of functions by name */
    uint64_t allocations; /* blocks of the host's heap taken */
    unsigned extras;      /* what of that is there */
    int extras_error;     /* 0, or -errno of the first of them that could not be written */
    uint64_t gpu_events;  /* kernels, copies, fills and whole graphs */
    uint64_t text_bytes;  /* of the trace before it was packed, also of one that was given up */
};
/*
 * Writes cycle `cycle` as DIR/WORKER.TIMESTAMPNS.pt.trace.json[.gz], under a temporary name first, renamed when
 * complete. 0, -ENODATA when the cycle has no event (no file), or -errno.
 */
/* Whether it would: 1, 0 (no event, no file), or -errno. Nothing is written. */
int kp_export_has(struct kp_reader *reader, uint32_t cycle);
int kp_export_trace(struct kp_reader *reader, uint32_t cycle, const struct kp_export_options *options,
                    struct kp_export_result *result);

#endif
