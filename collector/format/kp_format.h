// SPDX-License-Identifier: Apache-2.0
/*
 * kp_format.h - the spool file: the contract between the writing and the reading side
 *
 * A spool has two halves with the same layout: a file in memory, which hooks write, and a file on a disk. A chunk that
 * is full moves from the first to the same place in the second. A chunk in memory counts before that on the disk.
 *
 * A spool is a header chunk and then chunks, all KP_CHUNK_BYTES long, little endian, fallocated before use. A chunk
 * belongs to one thread at a time, and its records lie one behind another. `used` is the commit: bytes below it are
 * complete, even if the writer was killed right after (SIGKILL, full disk). There is no index that could get lost. A
 * reader walks the chunks. Strings have their own chunks, which are never recycled.
 *
 *   [header][chunk 1][chunk 2]...        chunk = kp_chunk_head, records (8-byte aligned) up to `used`
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/format/kp_loss.h"

#define KP_FORMAT_MAGIC "KPROFSP1" /* 8 bytes, no NUL */
#define KP_FORMAT_VERSION 1u
#define KP_CHUNK_BYTES 65536u
#define KP_CHUNK_MAGIC 0x4843504bu /* "KPCH" */
#define KP_STR_MAGIC 0x5453504bu   /* "KPST" */
#define KP_FRAME_MAGIC UINT64_C(0x454d4152464b5052)
#define KP_STR_CELL 32u      /* strings start on multiples of this inside a string chunk */
#define KP_MAX_RECORD 32768u /* bytes, header included */

enum kp_kind {
#define KP_KIND(name, number, counts, ends, text) KP_KIND_##name = number,
#include "collector/format/kinds.def"
#undef KP_KIND
    KP_KIND_N = 32
};

struct kp_file_head { /* at offset 0, fills the first chunk */
    char magic[8];
    uint32_t version;
    uint32_t chunk_bytes;
    uint32_t head_bytes; /* sizeof(struct kp_file_head) of the writer */
    uint32_t pid, ppid;
    uint32_t clock_kind;     /* KP_CLOCK_TSC or KP_CLOCK_MONO */
    uint64_t start_real_ns;  /* when the spool was opened */
    _Atomic uint32_t chunks; /* chunks allocated so far, header included. Chunks at the end may lie in memory alone */
    _Atomic uint32_t closed; /* 1 after a clean close */
    char host[64];
    char program[64];                                /* base name of argv[0] */
    _Atomic uint64_t loss[KP_KIND_N][KP_LOSS_FIRST]; /* since start of the process, by kind and reason */
    _Atomic uint32_t text_bytes;                     /* bytes committed in text[] */
    uint32_t pad;
    _Atomic uint64_t loss_more[KP_KIND_N][KP_LOSS_MORE]; /* reasons from KP_LOSS_FIRST on. Older files lack it */
    char text[]; /* "key=value\n" lines: configuration, torch version, rank variables, notes */
};
#define KP_FILE_TEXT_MAX (KP_CHUNK_BYTES - sizeof(struct kp_file_head))
#define KP_FILE_HEAD_LEAST offsetof(struct kp_file_head, loss_more) /* the header's bytes in older files */
static inline uint64_t kp_file_loss(const struct kp_file_head *h, int kind, int reason)
{
    const _Atomic uint64_t *at = NULL;
    if (reason < KP_LOSS_FIRST) at = &h->loss[kind][reason];
    else if (h->head_bytes >= sizeof *h) at = &h->loss_more[kind][reason - KP_LOSS_FIRST];
    return at ? atomic_load_explicit(at, memory_order_relaxed) : 0;
}

enum kp_chunk_kind {
    KP_CHUNK_FREE = 0,
    KP_CHUNK_DATA = 1,
    KP_CHUNK_STRINGS = 2,
    KP_CHUNK_META = 3,
    KP_CHUNK_DEVICE = 4,
    KP_CHUNK_FRAMES = 5,
    KP_CHUNK_KINDS = 6
};

struct kp_chunk_head {
    uint32_t magic;
    _Atomic uint32_t kind;
    uint32_t cycle;        /* the cycle of all its records (DATA, DEVICE) */
    uint32_t tid;          /* the first owner's; a THREAD record changes it for the records behind */
    uint32_t thread_no;    /* from 1, never reused in the process, unlike tids */
    _Atomic uint32_t used; /* bytes committed, this header included; release-stored by the owner */
    uint64_t order;        /* process-wide counter when the chunk was taken: sorts a thread's pieces */
    char thread_name[16];  /* pthread name at the thread's first hook */
    uint64_t pthread_id;   /* the first owner's pthread_self(), or 0 in a lane. Its low half is CUPTI's thread id */
    uint64_t reserved;
};
_Static_assert(sizeof(struct kp_chunk_head) == 64, "chunk head is one cache line");

/* The head of every record. Its size is that of the whole record in bytes, a multiple of 8. */
struct kp_rec {
    uint8_t kind;
    uint8_t flags;
    uint16_t size;
    uint32_t name; /* string id, 0 without a name or when it was lost */
};

/*
 * KP_KIND_OP: a RecordFunction range, put when it starts. So a thread's records lie in order of start, a parent before
 * its children. The end only fills in `ticks`, in place. So a reader sees which ranges were open at the window's end,
 * or when the process was killed. Optional words follow in the order of flags. All flags are taken: spool-format.md.
 */
enum {
    KP_OP_SEQ = 1u << 0,     /* i64 sequence number, u64 forward thread id (torch's logical id) */
    KP_OP_HANDLE = 1u << 1,  /* u64 record function id */
    KP_OP_INPUTS = 1u << 2,  /* u32 number of inputs, then kp_inputs.h up to the end of the record */
    KP_OP_ASYNC = 1u << 3,   /* RecordFunction's is_async */
    KP_OP_STACK = 1u << 4,   /* u32 Python stack (kp_python.h), u32 machine code stack (kp_rec_frame); before inputs */
    KP_OP_MODULES = 1u << 5, /* u32 string id of the TorchScript modules, u32 0; before inputs */
    /* The last two are never in a file: a reader sets them. */
    KP_OP_UNFINISHED = 1u << 7,   /* `ticks` is 0 */
    KP_OP_SEQ_OF_CHILD = 1u << 6, /* seq and forward thread are those of the backward op inside */
};
struct kp_rec_op {
    struct kp_rec head;     /* name: id of "name" or "name\0overload" */
    uint64_t start;         /* ticks */
    _Atomic uint64_t ticks; /* duration, at least 1, or 0 while open */
    uint32_t rt_tid;        /* torch's logical id of the thread that made it */
    uint8_t scope;          /* RecordScope */
    uint8_t ends_step;      /* 1: its end ended a step. Only where the head has a line step_ends */
    uint8_t pad[2];
};
_Static_assert(sizeof(struct kp_rec_op) == 32, "an op without extras is 32 bytes");

/* KP_KIND_STEP: a ProfilerStep#N range of the thread that stepped, put when the step begins. */
enum { KP_STEP_STARTUP = 1u << 6, KP_STEP_CUT = 1u << 5 }; /* no whole step: it began with the run; exit ended it */
struct kp_rec_step {
    struct kp_rec head; /* flags: these, and enum kp_step_source of the schedule room */
    uint64_t start;
    _Atomic uint64_t ticks; /* as in an op */
    uint64_t number;
};

/*
 * KP_KIND_MEMORY: torch's allocators allocated or freed a block. On the CPU, torch reports neither a freed block's size
 * nor totals: libkprof keeps the sizes, and the reader finds the totals. For devices torch reports both. A window
 * begins with a record of each CPU block that was there before. One without an address stands behind them.
 */
enum {
    KP_MEMORY_FREE = 1u << 0,   /* on the CPU `bytes` is 0 where the size is not known */
    KP_MEMORY_OOM = 1u << 1,    /* the allocation of `bytes` failed */
    KP_MEMORY_TOTALS = 1u << 2, /* the fields behind `bytes` follow */
    KP_MEMORY_BEFORE = 1u << 3, /* allocated before the window. Address 0: that was all; `bytes` blocks are not known */
};
struct kp_rec_memory {
    struct kp_rec head;
    uint64_t start; /* ticks */
    uint64_t address;
    int64_t bytes; /* negative when freed */
    /* --- with KP_MEMORY_TOTALS --- */
    uint64_t allocated, reserved; /* in bytes, after the event */
    uint8_t device_type;          /* c10::DeviceType: 0 CPU, 1 CUDA */
    int8_t device;                /* index, -1 for the CPU */
    uint8_t pad[6];
};
enum { KP_MEMORY_SHORT_BYTES = 32 };

/*
 * KP_KIND_COMMS: torch's description of a collective. It follows the OP record "record_param_comms" of the same thread,
 * perhaps in the thread's next chunk. Behind it lie three lists: input sizes, output sizes, ranks of the group. A list
 * longer than KP_COMMS_SHOWN has its first items and its last.
 */
enum {
    KP_COMMS_SEQ = 1u << 0, /* torch has `sequence`, p2p and async (from 2.12 on) */
    KP_COMMS_P2P = 1u << 1,
    KP_COMMS_ASYNC = 1u << 2,
    KP_COMMS_PEER = 1u << 3,  /* `peer` is a rank: `rank` is an index into the group's ranks */
    KP_COMMS_TYPED = 1u << 4, /* torch.profiler writes booleans as true and false (from 2.14 on) */
};
enum { KP_COMMS_SHOWN = 30, KP_COMMS_LISTS = 3 };
struct kp_rec_comms {
    struct kp_rec head; /* name: the collective */
    int64_t in_elements, out_elements;
    int64_t sequence; /* negative without one */
    int64_t peer;
    uint32_t group_name, group_description; /* string ids, 0 when empty */
    int32_t rank, group_size, rank_start, rank_stride;
    uint32_t count[KP_COMMS_LISTS]; /* each list's full length */
    uint8_t dtype;                  /* c10::ScalarType */
    uint8_t pad[3];
};
_Static_assert(sizeof(struct kp_rec_comms) == 80, "a collective without lists is 80 bytes");
enum { KP_COMMS_MAX_BYTES = sizeof(struct kp_rec_comms) + KP_COMMS_LISTS * KP_COMMS_SHOWN * 8 };
static inline uint32_t kp_comms_shown(uint32_t count) { return count < KP_COMMS_SHOWN ? count : KP_COMMS_SHOWN; }

/*
 * KP_KIND_FRAME (FRAMES): a frame of a machine code stack. Its id is its cell: its place in the file / KP_STR_CELL. A
 * stack is the id of its innermost frame. The module is a text "PATH\0BUILDID BASE LO HI" in hexadecimal. BUILDID is
 * "-" when it has none.
 *
 * With KP_FRAME_PYTHON it is no frame: it is the stack `around` together with the Python stack `offset` (kp_python.h).
 */
enum { KP_FRAME_PYTHON = 1u << 0 };
struct kp_rec_frame {
    struct kp_rec head; /* name: the module, or 0. Then offset is the address */
    uint64_t offset;    /* return address - BASE, as in the module's tables; offset - 1 lies in the call */
    uint32_t around;    /* its caller's frame, or 0 */
    uint32_t pad;
    _Atomic uint64_t check; /* kp_frame_check, stored last */
};
_Static_assert(sizeof(struct kp_rec_frame) == KP_STR_CELL, "a frame fills a cell");
static inline uint64_t kp_frame_check(const struct kp_rec_frame *f)
{
    const uint64_t of = f->offset ^ (uint64_t)f->around << 32 ^ f->head.name ^ (uint64_t)f->head.flags << 56;
    const uint64_t n = of * UINT64_C(0x9e3779b97f4a7c15);
    return n ^ n >> 32 ^ KP_FRAME_MAGIC;
}

/* KP_KIND_THREAD: from here on, another thread writes to this chunk. */
struct kp_rec_thread {
    struct kp_rec head;
    uint32_t tid, thread_no;
    uint64_t order;
    char name[16];
};

/*
 * KP_KIND_CYCLE (META): an active window. Written when it opens (end 0), when it closed, and when its trace was
 * written. The third comes before its chunks are used for other cycles. The last record counts.
 */
enum { KP_CYCLE_SAVED = 1u << 0, KP_CYCLE_CUT_SHORT = 1u << 1, KP_CYCLE_EXPORTED = 1u << 2 }; /* cut short by exit */
struct kp_rec_cycle {
    struct kp_rec head;    /* flags: KP_CYCLE_* */
    uint32_t cycle, steps; /* number from 1; steps seen in it */
    uint64_t begin, end;   /* ticks of the active window: readers leave out records that start outside */
    uint64_t warm_begin;   /* ticks when warm-up began (start of the span) */
    uint64_t first_step, last_step;
    uint64_t lost; /* records lost in this cycle */
};

/* KP_KIND_CLOCK (META): a sample that ties ticks to time, taken at cycle edges and every second between. */
struct kp_rec_clock {
    struct kp_rec head;
    uint64_t ticks, real_ns, mono_ns;
    uint64_t busy_ns, waited_ns; /* of a worker's first thread until now: had or wanted a core; of that, had none */
};

/*
 * KP_KIND_NOTE (META): "key=value\n" as in the header's text, padded with newlines. Used once that text is full, so it
 * comes after all lines of the header.
 */

/* A string. It starts on a KP_STR_CELL boundary of a STRINGS chunk, and its magic is release-stored last. */
struct kp_str {
    _Atomic uint32_t magic;
    uint32_t id;   /* from 1, dense, in order of first sight */
    uint64_t hash; /* kp_hash64 of the bytes: a reader trusts a cell only when it matches */
    uint32_t len;  /* bytes, an inner NUL splits name and overload */
    char bytes[];
};
