// SPDX-License-Identifier: Apache-2.0
/*
 * kp_format.h - the spool file: the one contract between the writing and the reading side
 *
 * A spool is a header chunk and then chunks, all KP_CHUNK_BYTES long, little endian, fallocated before use.
 * A chunk belongs to one thread at a time and holds records one behind another. `used` is the commit: what
 * lies below it is complete, whatever happened to the writer afterwards (SIGKILL, full disk). There is no
 * index to lose: a reader walks the chunks. Strings live in chunks of their own that are never recycled.
 *
 *   [header][chunk 1][chunk 2]...        chunk = kp_chunk_head, records (8-byte aligned) up to `used`
 */
#ifndef KP_FORMAT_H
#define KP_FORMAT_H

#include <stdatomic.h>
#include <stdint.h>

#define KP_FORMAT_MAGIC "KPROFSP1" /* 8 bytes, no NUL */
#define KP_FORMAT_VERSION 1u
#define KP_CHUNK_BYTES 65536u
#define KP_CHUNK_MAGIC 0x4843504bu /* "KPCH" */
#define KP_STR_MAGIC 0x5453504bu   /* "KPST" */
#define KP_STR_CELL 32u            /* strings start on multiples of this inside a string chunk */
#define KP_MAX_RECORD 32768u       /* bytes, header included */

/* Reasons for which a record was not kept; counted per kind in the header's table. */
enum kp_loss { KP_LOSS_NO_CHUNK, KP_LOSS_CAP, KP_LOSS_DISK, KP_LOSS_NO_SLOT, KP_LOSS_TOO_BIG, KP_LOSS_NAME, KP_LOSS_REENTRY, KP_LOSS_N };

enum kp_kind {
#define KP_KIND(name, number, text) KP_KIND_##name = number,
#include "collector/format/kinds.def"
#undef KP_KIND
    KP_KIND_N = 32
};

struct kp_file_head { /* at offset 0, fills the first chunk */
    char magic[8];
    uint32_t version;
    uint32_t chunk_bytes;
    uint32_t head_bytes;   /* sizeof(struct kp_file_head) of the writer */
    uint32_t pid, ppid;
    uint32_t clock_kind;   /* KP_CLOCK_TSC or KP_CLOCK_MONO */
    uint64_t start_real_ns; /* when the spool was opened */
    _Atomic uint32_t chunks; /* chunks fallocated so far, header included; the file may be longer, never shorter */
    _Atomic uint32_t closed; /* 1 after a clean close */
    char host[64];
    char program[64];      /* base name of argv[0] */
    _Atomic uint64_t loss[KP_KIND_N][KP_LOSS_N]; /* since start of the process */
    _Atomic uint32_t text_bytes; /* bytes committed in text[] */
    uint32_t pad;
    char text[];           /* "key=value\n" lines: configuration, torch version, rank variables, notes */
};
#define KP_FILE_TEXT_MAX (KP_CHUNK_BYTES - sizeof(struct kp_file_head))

enum kp_chunk_kind { KP_CHUNK_FREE = 0, KP_CHUNK_DATA = 1, KP_CHUNK_STRINGS = 2, KP_CHUNK_META = 3 };

struct kp_chunk_head {
    uint32_t magic;
    _Atomic uint32_t kind;
    uint32_t cycle;       /* of its records (DATA); a chunk never mixes cycles */
    uint32_t tid;         /* first owner; a THREAD record changes it for what follows */
    uint32_t thread_no;   /* unique per thread of the process, from 1; tids are reused, these are not */
    _Atomic uint32_t used; /* bytes committed, this header included; release-stored by the owner */
    uint64_t order;       /* process-wide counter at the time it was taken: sorts the pieces of one thread */
    char thread_name[16]; /* pthread name at first sight */
    uint64_t reserved[2];
};
_Static_assert(sizeof(struct kp_chunk_head) == 64, "chunk head is one cache line");

/* Every record begins so. size counts the whole record in bytes and is a multiple of 8. */
struct kp_rec {
    uint8_t kind;
    uint8_t flags;
    uint16_t size;
    uint32_t name; /* string id; 0: none or lost */
};

/*
 * KP_KIND_OP: one RecordFunction range, put when it starts: so the records of a thread lie in order of start, a parent
 * before its children. The end only fills in `ticks`, in place: what is still open (at the window's end, or when the
 * process was killed) is seen as such. Optional words follow in the order of the flag bits.
 */
enum {
    KP_OP_SEQ = 1u << 0,        /* i64 sequence number, u64 forward thread id (torch's logical id) */
    KP_OP_HANDLE = 1u << 1,     /* u64 record function id */
    KP_OP_INPUTS = 1u << 2,     /* u32 number of inputs, then kp_inputs.h up to the end of the record */
    KP_OP_ASYNC = 1u << 3,      /* RecordFunction said is_async */
    /* Never in a file, a reader sets them: `ticks` is 0; seq and forward thread are those of the backward op inside. */
    KP_OP_UNFINISHED = 1u << 7,
    KP_OP_SEQ_OF_CHILD = 1u << 6,
};
struct kp_rec_op {
    struct kp_rec head;      /* name: id of "name" or "name\0overload" */
    uint64_t start;          /* ticks */
    _Atomic uint64_t ticks;  /* duration, at least 1; 0: still open */
    uint32_t rt_tid;         /* torch's logical id of the thread that made it */
    uint8_t scope;           /* RecordScope */
    uint8_t pad[3];
};
_Static_assert(sizeof(struct kp_rec_op) == 32, "an op without extras is 32 bytes");

/* KP_KIND_STEP: a ProfilerStep#N range of the thread that stepped, put when the step begins. */
struct kp_rec_step {
    struct kp_rec head;     /* flags: enum kp_step_source of the schedule room */
    uint64_t start;
    _Atomic uint64_t ticks; /* as in an op */
    uint64_t number;
};

/* KP_KIND_THREAD: from here on this chunk is written by another thread. */
struct kp_rec_thread {
    struct kp_rec head;
    uint32_t tid, thread_no;
    uint64_t order;
    char name[16];
};

/* KP_KIND_CYCLE (META): an active window. Written twice: when it opens (end 0) and when it closed. Last one counts. */
struct kp_rec_cycle {
    struct kp_rec head; /* flags: 1 = saved cleanly, 2 = cut short by exit, 4 = exported */
    uint32_t cycle, steps; /* number from 1; steps seen in it */
    uint64_t begin, end;   /* ticks of the active window: records that start outside are not shown */
    uint64_t warm_begin;   /* ticks when warming up began (start of the span) */
    uint64_t first_step, last_step;
    uint64_t lost;         /* records lost in this cycle */
};

/* KP_KIND_CLOCK (META): ties ticks to time; taken at cycle edges and every second between. */
struct kp_rec_clock {
    struct kp_rec head;
    uint64_t ticks, real_ns, mono_ns;
};

/* KP_KIND_NOTE (META): "key=value\n" as in the header's text, when that is full; filled up with newlines. Comes after all of the header's. */

/* A string: starts on a KP_STR_CELL boundary of a STRINGS chunk; magic is release-stored last. */
struct kp_str {
    _Atomic uint32_t magic;
    uint32_t id;    /* from 1, dense, in order of first sight */
    uint64_t hash;  /* kp_hash64 of the bytes: a reader trusts a cell only when it matches */
    uint32_t len;   /* bytes, an inner NUL splits name and overload */
    char bytes[];
};

#endif
