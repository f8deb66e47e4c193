// SPDX-License-Identifier: Apache-2.0
/*
 * calltrace.h - shared by the files of preload/calltrace, which record calls of functions by name (KPROF_SYMBOLS)
 *
 *   calltrace_source.c   the setting, which slots are redirected, and the report
 *   hidden.c   counts functions that their module does not export
 *   glob.c     patterns
 *   name.c     demangles a C++ name as far as patterns need it
 *   stubtable.c    the rows: which entry stub stands for which function
 *   nameset.c    a set of names, to count each once
 *   calls.c    entry and exit of a call, hot, without vector registers
 *   slow.c     the rare half of entry and exit
 *   stubs_x86_64.S   the stubs, which keep all registers
 *   absent.c   processors that have no stubs
 *
 * Entry stub i passes row i of kp_calltrace_rows to kp_calltrace_enter. If the call is recorded, an address in an
 * exit stub replaces its return address, which is kept in kp_calltrace_returns. That entry lies at the same
 * distance from its exit stub for every stub of a page. So each unwinder finds it by a rule of .eh_frame that only
 * reads memory. The exit stub's number is the index of the call's struct kp_calltrace_call.
 */
#pragma once

#define KP_CALLTRACE_ROWS 16384    /* functions that can be hooked, and number of entry stubs */
#define KP_CALLTRACE_ROW_SHIFT 6   /* bytes of a row: 1 << 6 */
#define KP_CALLTRACE_STUB_SHIFT 4  /* bytes of an entry stub: 1 << 4 */
#define KP_CALLTRACE_STUB_CALLED 9 /* offset in an entry stub of the address behind its call */
#define KP_CALLTRACE_CALLS 65536   /* calls that can be open at once, and number of exit stubs */
#define KP_CALLTRACE_PAGE 512     /* exit stubs in a page; the first of each page is a distance for unwinders instead */
#define KP_CALLTRACE_BLOCK 16     /* exit stubs that a thread takes at once */
#define KP_CALLTRACE_CALL_BYTES 3 /* offset in an exit stub of the address behind its call */

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_symbol.h"
#include "collector/record/kp_record.h"

/* The meaning of a call of the row's function. */
enum kp_calltrace_does {
    KP_CALLTRACE_CALL,   /* recorded */
    KP_CALLTRACE_JUMPS,  /* it unwinds frames without running cleanups (longjmp): the calls around it are noted */
    KP_CALLTRACE_THROWS, /* it unwinds frames and runs their cleanups */
    KP_CALLTRACE_LANDS,  /* frames were unwound: an exception handler begins */
    KP_CALLTRACE_ENDS,   /* it ends the thread */
};
struct kp_calltrace_row {
    _Atomic uintptr_t target; /* must be first: the stub jumps there */
    const char *name, *object;
    _Atomic uintptr_t
        word; /* address of an unbound slot; target is its binding stub, and the loader binds it at the first call */
    _Atomic uint32_t id; /* string id of the name; 0: not in this spool, or calls are not recorded (`does`) */
    uint8_t does;        /* enum kp_calltrace_does */
    uint8_t pad[27];
};
_Static_assert(sizeof(struct kp_calltrace_row) == 1 << KP_CALLTRACE_ROW_SHIFT, "stubs count in rows");

/* A call whose return address was replaced. It belongs to the calling thread; the returning thread sets `state`. */
enum { KP_CALL_OPEN = 1, KP_CALL_DONE };
struct kp_calltrace_call {
    uintptr_t slot; /* the return address's place on the stack */
    struct kp_rec_symbol *rec;
    struct kp_calltrace_calls *owner;
    struct kp_calltrace_row *lazy; /* the row whose unbound slot this call goes through; else NULL */
    uintptr_t under;               /* the owner's `under` before this call */
    uint32_t place;                /* index among the owner's calls */
    uint32_t cycle;
    bool is_foreign; /* not on the thread's own stack */
    bool is_noted;   /* longjmp or throw was called inside it: if its frame is gone next time, it never returns */
    /* its frame was gone and its record has an end; it may still return, as programs copy stacks away and back */
    bool is_left;
    bool is_ended; /* its record has an end */
    _Atomic uint8_t state;
} __attribute__((aligned(64)));

/* The function that was called, which unwinds frames. An exception counts as caught after LANDS_LATE calls, if no
 * handler was seen. */
enum { KP_NOTED_NONE, KP_NOTED_JUMP, KP_NOTED_THROW };
enum { KP_CALLTRACE_LANDS_LATE = 1000 };
/* A thread's open calls, innermost last. */
enum { KP_CALLTRACE_BLOCKS = 64, KP_CALLTRACE_DEPTH = KP_CALLTRACE_BLOCKS * KP_CALLTRACE_BLOCK };
struct kp_calltrace_calls { /* fields that each call needs come first, in one cache line */
    uintptr_t lo,
        /* a call at lo or above and below `under` nests in the last one and takes the fast path; 0: none does */
        under;
    uint32_t n, room; /* open calls, and how many fit in the blocks taken */
    uint16_t block[KP_CALLTRACE_BLOCKS];
    uintptr_t hi;                     /* end of the thread's own stack, which is readable from lo to hi */
    uintptr_t foreign;                /* an address known not to be on that stack, for its granule; 0: none */
    uint32_t thread_no;               /* number of the thread that uses it */
    uint8_t noted;                    /* KP_NOTED_*: why calls are noted */
    uint32_t settled;                 /* calls since they were noted */
    struct kp_calltrace_row *unbound; /* its first call was unwound: its slot is still to be read */
    uint64_t left_ticks;              /* time of the last longjmp or throw */
};

/*
 * Tables are mapped when the source attaches: in .bss they would count against RLIMIT_DATA of every program.
 * kp_calltrace_returns alone is in .bss: it must lie at a fixed distance from the stubs.
 */
extern struct kp_calltrace_row *kp_calltrace_rows; /* KP_CALLTRACE_ROWS */
/* Plus 4 times the address behind a stub's call: the address of its row (a row is 4 stubs). */
extern uintptr_t kp_calltrace_row_base;
extern struct kp_calltrace_call *kp_calltrace_open; /* KP_CALLTRACE_CALLS */
extern uintptr_t kp_calltrace_returns[KP_CALLTRACE_CALLS];
bool kp_calltrace_calls_make(void);         /* false: no memory. Call once, before the first row is made */
extern _Atomic uint32_t kp_calltrace_armed; /* 0: stubs jump straight to the function */
extern uint32_t kp_calltrace_vectors;       /* vector registers that may hold arguments: 0 SSE, 1 AVX, 2 AVX-512 */

/* --- stubs_x86_64.S --- */
void kp_calltrace_stubs(void); /* the first entry stub; a stub every 16 bytes */
void kp_calltrace_exits(
    void); /* the first exit stub; one every 8 bytes: it calls through the row in r11, then jumps to the exit code */
bool kp_calltrace_shadow_stack(void); /* the processor checks return addresses against a shadow stack */
uint32_t kp_calltrace_vector_kind(void);

static inline uintptr_t kp_calltrace_exit_of(uint32_t call)
{
    return (uintptr_t)&kp_calltrace_exits + call * 8u + KP_CALLTRACE_CALL_BYTES;
}
static inline bool kp_calltrace_is_exit(uintptr_t at)
{
    return at - (uintptr_t)&kp_calltrace_exits < KP_CALLTRACE_CALLS * 8u;
}
static inline uint32_t kp_calltrace_number(const struct kp_calltrace_calls *c, uint32_t at)
{
    return c->block[at / KP_CALLTRACE_BLOCK] + at % KP_CALLTRACE_BLOCK;
}

/* --- calls.c, slow.c: called by the stubs --- */
/* Tells the entry stub what to do next; any other value is the exit stub that calls the function. */
enum {
    KP_CALLTRACE_GOES_ON = 0,
    /* jumps to the function */ KP_CALLTRACE_IS_SLOW = 1 /* kp_calltrace_enter_slow, which may use vector registers */
};
uintptr_t kp_calltrace_enter(struct kp_calltrace_row *row, uintptr_t *slot);
uintptr_t kp_calltrace_enter_slow(struct kp_calltrace_row *row, uintptr_t *slot);
void kp_calltrace_exit(uintptr_t stub);
/* Writes the record and replaces the return address; the caller has made room for both. Returns the exit stub. */
uintptr_t kp_calltrace_push(struct kp_calltrace_calls *c, struct kp_thread *t, uint64_t gate,
                            struct kp_calltrace_row *row, uintptr_t *slot, bool is_foreign);
void kp_calltrace_end(struct kp_calltrace_call *call, uint64_t gate, uint64_t now);
void kp_calltrace_bound(struct kp_calltrace_row *row);
void kp_calltrace_pop(struct kp_calltrace_calls *c);
void kp_calltrace_under_find(struct kp_calltrace_calls *c);
/* Ends the calls that were unwound, and frees those that can never return. `slot`: the top of the owner's stack. */
void kp_calltrace_settle(struct kp_calltrace_calls *c, uintptr_t slot, uint64_t gate, uint64_t now);
void kp_calltrace_forget(void);
void kp_calltrace_thread_dies(struct kp_thread *t);

/* --- stubtable.c --- */
/* The row for a function; each unbound slot has a row of its own. NULL: no row is left. One thread at a time. */
struct kp_calltrace_row *kp_calltrace_row_get(const char *name, const char *object, uintptr_t target,
                                              uintptr_t lazy_word, enum kp_calltrace_does does);
uint32_t kp_calltrace_rows_used(void);
uintptr_t kp_calltrace_stub_of(const struct kp_calltrace_row *row);
struct kp_calltrace_row *kp_calltrace_row_of(uintptr_t stub); /* NULL: this is no stub */

/* --- glob.c, name.c --- */
enum { KP_CALLTRACE_NAME_MAX = 1024 };
/* The name of a C++ function without its arguments: "at::_ops::add_Tensor::call". false: it is no C++ name, or has a
 * form that is not known here. */
bool kp_calltrace_name(const char *mangled, char *out, size_t bytes);
/* Does a glob of the list match the name or its demangled form? *used gets a bit for each of the first 64 globs that
 * does. */
bool kp_globs_match(const char *list, const char *name, uint64_t *used);

/* --- nameset.c: a set of names. All 0 is an empty set. One thread at a time, no signal handlers. --- */
struct kp_calltrace_names {
    uint64_t *of; /* hashes; 0: free */
    uint32_t n, cap;
    bool is_full; /* there was no room for some name: the set lacks it */
};
bool kp_calltrace_names_have(const struct kp_calltrace_names *s, const char *name);
bool kp_calltrace_names_add(struct kp_calltrace_names *s, const char *name); /* true: the name was new */
void kp_calltrace_names_clear(struct kp_calltrace_names *s);                 /* frees its memory */

/* --- hidden.c --- */
struct kp_calltrace_hidden {
    uint32_t functions; /* functions in .symtab that their module does not export */
    uint32_t bare;      /* modules whose file has no .symtab (stripped), or was replaced since it was loaded */
    uint32_t late;      /* modules for which there was no time or memory: not counted */
};
/* Reads the files of all modules. Takes up to two seconds if they are large and not in the page cache. */
void kp_calltrace_hidden_count(bool (*wants)(const char *name), struct kp_calltrace_hidden *out);
#endif
