// SPDX-License-Identifier: Apache-2.0
/*
 * calltrace.h - calls of functions by name (KPROF_SYMBOLS): the room's map
 *
 *   calltrace_source.c   the setting, which words are taken, what is said of the rest; hidden.c: functions that only their own
 *              file knows of
 *   glob.c     patterns; name.c: a C++ name as far as patterns need it
 *   stubtable.c    which entry stub stands for which function; nameset.c: a set of names, to count each once
 *   calls.c    entry and exit of a call, hot, without vector registers; slow.c: the rare half of it
 *   stubs_x86_64.S   the stubs, and how registers come through; absent.c: processors that have none
 *
 * Entry stub i hands row i of kp_symbol_rows to kp_symbol_enter. When the call is recorded, its return address is
 * exchanged for an address in an exit stub, which calls the function, and kept in the word that lies as far from that
 * as all such words do from theirs: so every unwinder finds it, by a rule of .eh_frame that needs nothing but memory.
 * The exit stub's number is the number of the call's struct kp_symbol_call.
 */
#ifndef KP_SYMBOL_ROOM_H
#define KP_SYMBOL_ROOM_H

#define KP_SYMBOL_ROWS 16384    /* functions that can be hooked: as many entry stubs */
#define KP_SYMBOL_ROW_SHIFT 6   /* bytes of a row: 1 << 6 */
#define KP_SYMBOL_STUB_SHIFT 4  /* bytes of an entry stub: 1 << 4 */
#define KP_SYMBOL_STUB_CALLED 9 /* of them, up to where its call returns to */
#define KP_SYMBOL_CALLS 65536   /* calls that can be open at once: as many exit stubs */
#define KP_SYMBOL_PAGE 512      /* exit stubs in a page; the first of each is a number for unwinders instead */
#define KP_SYMBOL_BLOCK 16      /* of them, what a thread takes at once */
#define KP_SYMBOL_CALL_BYTES 3  /* of an exit stub, the call: behind it is where it returns to */

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_symbol.h"
#include "collector/record/kp_record.h"

/* What is done at a call. */
enum kp_symbol_does {
    KP_SYMBOL_CALL,   /* recorded */
    KP_SYMBOL_JUMPS,  /* it leaves frames without returning (longjmp): calls around are noted */
    KP_SYMBOL_THROWS, /* the same, and cleanups run in between */
    KP_SYMBOL_LANDS,  /* frames were left (a handler begins) */
    KP_SYMBOL_ENDS,   /* it ends the thread */
};
struct kp_symbol_row {
    _Atomic uintptr_t target; /* first: where the stub jumps */
    const char *name, *object;
    _Atomic uintptr_t
        word; /* not 0: the word this row is for; the loader overwrites it at the first call, and target leads to it */
    _Atomic uint32_t id; /* string id of the name; 0: not in this spool, and where something else is done at calls */
    uint8_t does;        /* enum kp_symbol_does */
    uint8_t pad[27];
};
_Static_assert(sizeof(struct kp_symbol_row) == 1 << KP_SYMBOL_ROW_SHIFT, "stubs count in rows");

/* A call whose return address was exchanged. Belongs to the thread that made it, `state` to whoever returns. */
enum { KP_CALL_OPEN = 1, KP_CALL_DONE };
struct kp_symbol_call {
    uintptr_t slot; /* where the return address lay */
    struct kp_rec_symbol *rec;
    struct kp_symbol_calls *owner;
    struct kp_symbol_row *lazy; /* first call through this row */
    uintptr_t under;            /* what the owner's was before */
    uint32_t place;             /* among the owner's calls */
    uint32_t cycle;
    bool is_foreign; /* not on the thread's own stack */
    bool is_noted;   /* longjmp or throw was called inside it: if the stack is above it next time, it is gone */
    /* the stack was above it, and its record has an end; it may still come back (a stack that is copied away) */
    bool is_left;
    bool is_ended; /* its record has an end */
    _Atomic uint8_t state;
} __attribute__((aligned(64)));

/* What was called that leaves frames, and calls after which an exception is taken to have landed where we did not see
 * it. */
enum { KP_NOTED_NONE, KP_NOTED_JUMP, KP_NOTED_THROW };
enum { KP_SYMBOL_LANDS_LATE = 1000 };
/* A thread's open calls, innermost last. */
enum { KP_SYMBOL_BLOCKS = 64, KP_SYMBOL_DEPTH = KP_SYMBOL_BLOCKS * KP_SYMBOL_BLOCK };
struct kp_symbol_calls { /* what each call needs first, in one line of the cache */
    uintptr_t lo,
        /* calls from lo to below `under` nest in the last one: nothing else has to be looked at. under 0: it has */
        under;
    uint32_t n, room; /* calls, and how many there are numbers for */
    uint16_t block[KP_SYMBOL_BLOCKS];
    uintptr_t hi;                  /* of the thread's own stack, which from lo on is known to be readable */
    uintptr_t foreign;             /* some of it is known not to be on it: a granule, 0: none */
    uint32_t thread_no;            /* whom it serves */
    uint8_t noted;                 /* KP_NOTED_*: some call is */
    uint32_t settled;              /* calls since then */
    struct kp_symbol_row *unbound; /* its first call was left, not returned from: the word is still to be looked at */
    uint64_t left_ticks;           /* when the last longjmp or throw was called */
};

/*
 * All of it comes when it is asked for: in .bss it would count against RLIMIT_DATA of every program. The words of
 * return addresses lie where the stubs say, in pages of the library that are read-only until then.
 */
extern struct kp_symbol_row *kp_symbol_rows; /* KP_SYMBOL_ROWS */
extern uintptr_t
    kp_symbol_row_base; /* plus where an entry stub's call returns to, times 4 (a row is 4 stubs): its row */
extern struct kp_symbol_call *kp_symbol_open; /* KP_SYMBOL_CALLS */
extern uintptr_t kp_symbol_returns[KP_SYMBOL_CALLS];
bool kp_symbol_calls_make(void);          /* false: no memory. Once, before there is a row */
extern _Atomic uint32_t kp_symbols_armed; /* 0: stubs jump on at once */
extern uint32_t kp_symbols_vectors;       /* 0 SSE, 1 AVX, 2 AVX-512: what arguments may lie in */

/* --- stubs_x86_64.S --- */
void kp_symbol_stubs(void); /* the first entry stub; a stub every 16 bytes */
void kp_symbol_exits(
    void); /* the first exit stub; one every 8 bytes: a call of the row in r11, and where that returns to */
bool kp_symbols_shadow_stack(void); /* the processor keeps return addresses itself */
uint32_t kp_symbols_vector_kind(void);

static inline uintptr_t kp_symbol_exit_of(uint32_t call)
{
    return (uintptr_t)&kp_symbol_exits + call * 8u + KP_SYMBOL_CALL_BYTES;
}
static inline bool kp_symbol_is_exit(uintptr_t at) { return at - (uintptr_t)&kp_symbol_exits < KP_SYMBOL_CALLS * 8u; }
static inline uint32_t kp_symbol_number(const struct kp_symbol_calls *c, uint32_t at)
{
    return c->block[at / KP_SYMBOL_BLOCK] + at % KP_SYMBOL_BLOCK;
}

/* --- calls.c, slow.c: from the stubs --- */
/* What the entry stub does next; anything else is an exit stub, which calls the function. Of the slow half: not
 * IS_SLOW. */
enum {
    KP_SYMBOL_GOES_ON = 0,
    /* jumps to the function */ KP_SYMBOL_IS_SLOW = 1 /* kp_symbol_enter_slow, which may use vector registers */
};
uintptr_t kp_symbol_enter(struct kp_symbol_row *row, uintptr_t *slot);
uintptr_t kp_symbol_enter_slow(struct kp_symbol_row *row, uintptr_t *slot);
void kp_symbol_exit(uintptr_t stub);
/* Puts the record and exchanges the return address. There is room for both. The exit stub that calls the function. */
uintptr_t kp_symbol_push(struct kp_symbol_calls *c, struct kp_thread *t, uint64_t gate, struct kp_symbol_row *row,
                         uintptr_t *slot, bool is_foreign);
void kp_symbol_end(struct kp_symbol_call *call, uint64_t gate, uint64_t now);
void kp_symbol_bound(struct kp_symbol_row *row);
void kp_symbol_pop(struct kp_symbol_calls *c);
void kp_symbol_under_find(struct kp_symbol_calls *c);
/* Calls that were left: ended, given up when that is sure. The stack is at `slot`, the thread's own. */
void kp_symbol_settle(struct kp_symbol_calls *c, uintptr_t slot, uint64_t gate, uint64_t now);
void kp_symbols_begin_in_child(void);
void kp_symbols_thread_dies(struct kp_thread *t);

/* --- stubtable.c --- */
/* The row for a function; rows of words that are not bound yet have one each. NULL: all are taken. One thread at a
 * time. */
struct kp_symbol_row *kp_symbol_row_get(const char *name, const char *object, uintptr_t target, uintptr_t lazy_word,
                                        enum kp_symbol_does does);
uint32_t kp_symbol_rows_used(void);
uintptr_t kp_symbol_stub_of(const struct kp_symbol_row *row);
struct kp_symbol_row *kp_symbol_row_of(uintptr_t stub); /* NULL: no stub */

/* --- glob.c, name.c --- */
enum { KP_SYMBOL_NAME_MAX = 1024 };
/* The name of a C++ function without its arguments, template arguments as they are: "at::_ops::add_Tensor::call".
 * false: it is none. */
bool kp_symbol_name(const char *mangled, char *out, size_t bytes);
bool kp_glob_matches(const char *glob, size_t bytes, const char *text);
/* Whether one of the globs of a list matches the name or what C++ calls it. `used`: a bit for each glob that did, up to
 * 64. */
bool kp_globs_match(const char *list, const char *name, uint64_t *used);

/* --- nameset.c: names, each once. All 0: empty. One thread at a time, no signal handlers. --- */
struct kp_symbol_names {
    uint64_t *of; /* hashes; 0: free */
    uint32_t n, cap;
    bool is_full; /* there was no room for a name: it is not in here */
};
bool kp_symbol_names_have(const struct kp_symbol_names *s, const char *name);
bool kp_symbol_names_add(struct kp_symbol_names *s, const char *name); /* whether it was not in there yet */
void kp_symbol_names_clear(struct kp_symbol_names *s);                 /* gives its memory back */

/* --- hidden.c --- */
struct kp_symbols_hidden {
    uint32_t functions; /* in the tables of all symbols, and not shown to others by their module */
    uint32_t bare;      /* modules whose file has no such table (it was stripped), or is another one by now */
    uint32_t late;      /* modules for which there was no time or memory: nothing of them is counted */
};
/* Reads the files of all modules: up to two seconds where they are large and not in memory. */
void kp_symbols_hidden_count(bool (*wants)(const char *name), struct kp_symbols_hidden *out);
#endif
#endif
