// SPDX-License-Identifier: Apache-2.0
/*
 * walk.c - collects the calling thread's return addresses, by rules that it keeps from earlier walks
 *
 * Called by: stack_ids.c and sources, on any host thread inside a hook (hot: some nanoseconds a frame)
 * Owns:      the table of rules by return address; the readable range of each thread's stack (two thread-local words)
 * Locks:     none. Memory: 8 MB of address space, reserved once.
 * On fail:   the walk ends without the outer frames. It reads only stack memory that was found readable.
 * Safe in:   signal handlers yes (also on their own stack); after fork yes
 *
 * A rule (rule.h) is looked up in .eh_frame once for each return address. From glibc 2.35 on the loader's
 * _dl_find_object finds the section without a lock. If it is absent codemap.c looks in the modules that it saw last. A
 * rule is one word, so a thread reads all of it or none. It contains the generation of modules, so rules of unloaded
 * code become void. The walk leaves code without a rule (made at run time) by its frame pointer, to code with a rule.
 *
 * The main thread's stack ends at the program's arguments. Another thread's ends at its descriptor, which the C library
 * keeps at the stack's far end. The range from there down to the lowest stack pointer so far is known to be readable.
 * When a thread is deeper than before, the pages between are checked. A stack outside that range (a signal stack, a
 * fiber) is foreign, and its pages are checked in each walk.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/unwind/codemap.h"
#include "preload/unwind/trail.h"
#include "collector/base/kp_poison.h"

#define PAGE UINT64_C(4096)           /* the unit of checks; real pages may be larger */
#define DEEP_MAX (UINT64_C(64) << 20) /* a stack pointer that is further down at once is on a foreign stack */
#define FOREIGN_STEP (16 * PAGE)      /* bytes of a foreign stack to check at once */
#define EXACT (UINT64_C(1) << 63)     /* marks the key of an address that a signal interrupted */
#define BUSY UINT64_C(1)

enum { RULES = 1 << 19, PROBES = 16, FOREIGN_MAX = 64, SWITCHES_MAX = 8 };

struct slot {
    _Atomic uint64_t key, rule; /* key 0: free; BUSY: being filled; else it never changes */
};
static struct slot *_Atomic rules;
static uintptr_t main_top;

/* Exit stubs of calltrace, and the words with the true return addresses (KPROF_SYMBOLS). */
static struct {
    uintptr_t lo, bytes, words;
} returns;

struct span {
    uintptr_t lo, hi; /* readable */
};
static _Thread_local struct span own __attribute__((tls_model("initial-exec")));

static _Thread_local bool is_interrupted __attribute__((tls_model("initial-exec"))); /* by a signal: the last walk */

struct walk {
    uintptr_t pc, sp, fp;
    uintptr_t link; /* AArch64: the link register of an interrupted function */
    struct span stack;
    bool is_foreign, is_exact, is_sp_lost;
    bool is_guess;   /* the step used a frame pointer, so pc may be any word, even in a module being unloaded */
    uint32_t looks;  /* checks of a foreign stack's pages */
    uint32_t read_n; /* words that the step read */
    struct kp_trail_word read[KP_TRAIL_WORDS];
    uint32_t switches;
};

/* ---- stacks ---- */

static bool is_readable(uintptr_t lo, uintptr_t hi)
{
    const int saved = errno;
    const bool is = kp_io_peek_pages((const void *)lo, hi - lo) == 0;
    errno = saved;
    return is;
}

/* End of the calling thread's stack; 0: not known. */
static uintptr_t top_find(void)
{
    const int saved = errno;
    const bool is_main = kp_io_tid() == (uint32_t)getpid();
    errno = saved;
    return is_main ? main_top : (uintptr_t)pthread_self();
}

/* Makes w->stack the readable memory around sp. */
static bool stack_enter(struct walk *w, uintptr_t sp)
{
    if (!own.hi) {
        own.hi = top_find() & ~UINT64_C(7);
        kp_signal_fence();
        own.lo = own.hi;
    }
    const uintptr_t page = sp & ~(PAGE - 1);
    if (sp < own.lo && own.lo - sp < DEEP_MAX && is_readable(page, own.lo)) own.lo = page;
    w->is_foreign = sp < own.lo || sp >= own.hi;
    w->stack = w->is_foreign ? (struct span){page, page} : own;
    return true;
}

/* Checks a foreign stack's pages up to `end`. false: not readable, too far, or too many checks in this walk. */
static bool stack_extend(struct walk *w, uintptr_t end)
{
    if (!w->is_foreign || end < w->stack.lo || end - w->stack.hi > FOREIGN_STEP || w->looks++ == FOREIGN_MAX)
        return false;
    const uintptr_t hi = (end + PAGE - 1) & ~(PAGE - 1);
    const bool is_good = is_readable(w->stack.hi, hi);
    if (is_good) w->stack.hi = hi;
    return is_good;
}

static inline void word_note(struct walk *w, uintptr_t at, uintptr_t value)
{
    if (w->read_n == KP_TRAIL_WORDS) return;
    w->read[w->read_n++] = (struct kp_trail_word){at, value};
}

static inline bool word_read(struct walk *w, uintptr_t at, uintptr_t *out)
{
    if (__builtin_expect(at < w->stack.lo || at > w->stack.hi - 8 || at & 7 || w->stack.hi - w->stack.lo < 8, 0)) {
        if (at & 7 || at < w->stack.lo || at + 8 < at || !stack_extend(w, at + 8)) return false;
    }
    *out = *(const uintptr_t *)at;
    word_note(w, at, *out);
    return true;
}

/* Replaces the address of an exit stub by the true return address. */
static inline void return_get(struct walk *w, uintptr_t *pc)
{
    if (__builtin_expect(*pc - returns.lo >= returns.bytes, 1)) return;
    const uintptr_t at = returns.words + (*pc - returns.lo) / 8 * 8;
    *pc = *(const uintptr_t *)at;
    word_note(w, at, *pc);
}

/* ---- what differs by processor ---- */

#if defined(__x86_64__)

/* Does a call leave the return address in a register? A function that calls others then stores it on the stack. */
static const bool is_link_kept = false;
static bool rule_of_trampoline(uintptr_t pc, union kp_rule *rule) { return (void)pc, (void)rule, false; }
static bool link_read(struct walk *w) { return (void)w, true; }
static inline uintptr_t unsigned_address(uintptr_t pc) { return pc; }

#else

static const bool is_link_kept = true;

/* Offsets of the interrupted registers that the kernel saved, from the stack pointer at entry to the trampoline. */
enum { SIGNAL_REGISTERS = 128 /* siginfo */ + offsetof(ucontext_t, uc_mcontext.regs) };
enum {
    SIGNAL_FP = SIGNAL_REGISTERS + 29 * 8,
    SIGNAL_LINK = SIGNAL_FP + 8,
    SIGNAL_SP = SIGNAL_LINK + 8,
    SIGNAL_PC = SIGNAL_SP + 8
};

/* Makes a rule if pc is at "mov x8, #rt_sigreturn; svc #0", to which a handler returns. That code's .eh_frame would
 * skip the interrupted function. */
static bool rule_of_trampoline(uintptr_t pc, union kp_rule *rule)
{
    const uint32_t form[2] = {0xd2801168, 0xd4000001};
    uint32_t code[2];
    if (kp_io_peek((const void *)pc, code, sizeof code) != 0 || memcmp(code, form, sizeof code) != 0) return false;
    *rule = (union kp_rule){.is_known = 1,
                            .is_signal = 1,
                            .cfa_is_word = 1,
                            .cfa_at = SIGNAL_SP / 8,
                            .fp_on = KP_ON_SP,
                            .fp_at = SIGNAL_FP / 8,
                            .ra_on = KP_ON_SP,
                            .ra_at = SIGNAL_PC / 8};
    return true;
}

static bool link_read(struct walk *w) { return word_read(w, w->sp + SIGNAL_LINK, &w->link); }

/* Strips the pointer signature, by an instruction that is a no-op on older processors. */
static inline uintptr_t unsigned_address(uintptr_t pc)
{
    __asm__("mov x30, %0\n\thint #7\n\tmov %0, x30" : "+r"(pc) : : "x30"); /* xpaclri */
    return pc;
}

#endif

/* ---- rules ---- */

static union kp_rule rule_make(uintptr_t pc, bool is_exact, uint32_t generation, bool is_guess)
{
    struct kp_unwind_table table;
    union kp_rule rule = {.word = 0};
    const int saved = errno;
    if (kp_unwind_table_find(pc, &table)) {
        table.is_sure = table.is_sure && !is_guess;
        rule = kp_rule_find(&table, pc);
    }
    if (!rule.is_known || rule.is_signal) (void)rule_of_trampoline(is_exact ? pc : pc + 1, &rule);
    errno = saved;
    if (!rule.is_known) rule.ra_on = KP_ON_SP; /* stored too, so that it is looked up only once */
    rule.generation = generation & 0x3fff;
    return rule;
}

static __attribute__((noinline)) union kp_rule rule_fill(struct slot *table, uint64_t key, uint64_t hash,
                                                         uint32_t generation, bool is_guess)
{
    const union kp_rule rule =
        rule_make((key & EXACT) ? key & ~EXACT : key - 1, (key & EXACT) != 0, generation, is_guess);
    for (uint32_t i = 0; i < PROBES; i++) {
        struct slot *s = &table[(hash + i) & (RULES - 1)];
        uint64_t seen = kp_load_acquire(&s->key); /* pairs with: rule_fill */
        if (seen == key) {
            kp_store_relaxed(&s->rule, rule.word); /* the old one was of an older generation */
            return rule;
        }
        if (seen == 0 && kp_cas_acq_rel(&s->key, &seen, BUSY)) {
            kp_store_relaxed(&s->rule, rule.word);
            kp_store_release(&s->key, key); /* pairs with: walk.c:rule_get */
            return rule;
        }
    }
    return rule; /* no free slot: looked up each time */
}

static inline union kp_rule rule_get(struct slot *table, uint64_t key, uint32_t generation, bool is_guess)
{
    const uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct slot *s = &table[(hash + i) & (RULES - 1)];
        const uint64_t seen = kp_load_acquire(&s->key); /* pairs with: walk.c:rule_fill */
        if (seen == 0) break;
        if (seen != key) continue;
        const union kp_rule rule = {.word = kp_load_relaxed(&s->rule)};
        if (rule.generation == (generation & 0x3fff)) return rule;
        break;
    }
    return rule_fill(table, key, hash, generation, is_guess);
}

/* Steps out of a PLT entry that a signal interrupted, by the link register. AArch64 linkers write no rules for PLTs. */
static bool step_by_link(struct walk *w)
{
    struct kp_unwind_table table;
    const uintptr_t pc = unsigned_address(w->link);
    if (!is_link_kept || !w->is_exact || !kp_unwind_table_find(w->pc, &table) || !kp_unwind_table_find(pc - 1, &table))
        return false;
    w->is_exact = false;
    w->pc = pc;
    w->is_guess = true;
    return true;
}

/* Steps out of code without a rule by its frame pointer, to code that has a rule. */
static bool step_by_pointer(struct walk *w)
{
    uintptr_t fp, pc;
    struct kp_unwind_table table;
    if (step_by_link(w)) return true;
    if (w->is_exact || w->fp < w->sp || w->fp - w->sp > DEEP_MAX || !word_read(w, w->fp, &fp) ||
        !word_read(w, w->fp + 8, &pc))
        return false;
    pc = unsigned_address(pc);
    return_get(w, &pc);
    if (!kp_unwind_table_find(pc - 1, &table)) return false;
    w->sp = w->fp + 16;
    w->fp = fp;
    w->pc = pc;
    w->is_guess = true;
    w->is_sp_lost = is_link_kept; /* on AArch64 the two words are at the frame's low end */
    return true;
}

/* Finds the CFA after code without a rule, where sp is lost. A function that uses the frame pointer points it to its
 * caller's saved one. */
static bool cfa_by_pointer(struct walk *w, union kp_rule rule, uintptr_t *cfa)
{
    w->is_sp_lost = false;
    if (rule.cfa_on_fp) return true;
    if (rule.cfa_is_word || rule.fp_on != KP_ON_CFA) return false;
    *cfa = w->fp - (uintptr_t)((int64_t)rule.fp_at * 8);
    return true;
}

/* Steps to the interrupted function, which may be on another stack. */
static bool step_to_interrupted(struct walk *w, uintptr_t sp)
{
    w->is_exact = true;
    if (sp >= w->stack.lo && sp < w->stack.hi) return true;
    return w->switches++ < SWITCHES_MAX && stack_enter(w, sp);
}

static bool return_read(struct walk *w, union kp_rule rule, uintptr_t at, uintptr_t *pc)
{
    if (is_link_kept && rule.ra_on == KP_IN_LINK) {
        *pc = w->link;
        return w->is_exact;
    }
    return word_read(w, at + (uintptr_t)((int64_t)rule.ra_at * 8), pc);
}

/* Steps from a frame to its caller. */
static inline bool step(struct walk *w, struct slot *table, uint32_t generation)
{
    const union kp_rule rule = rule_get(table, w->is_exact ? w->pc | EXACT : w->pc, generation, w->is_guess);
    if (__builtin_expect(!rule.is_known, 0)) return step_by_pointer(w);
    if (rule.ra_on == KP_ON_NONE) return false;
    uintptr_t cfa = (rule.cfa_on_fp ? w->fp : w->sp) + (uintptr_t)((int64_t)rule.cfa_at * 8), fp = w->fp, pc;
    if (__builtin_expect(w->is_sp_lost, 0) && !cfa_by_pointer(w, rule, &cfa)) return step_by_pointer(w);
    if (rule.cfa_is_word && !word_read(w, cfa, &cfa)) return false;
    const uintptr_t bases[4] = {cfa, w->sp, w->fp, 0};
    if (rule.fp_on != KP_ON_NONE && !word_read(w, bases[rule.fp_on] + (uintptr_t)((int64_t)rule.fp_at * 8), &fp))
        return false;
    if (!return_read(w, rule, bases[rule.ra_on], &pc)) return false;
    const bool was_exact = w->is_exact;
    w->is_exact = false;
    return_get(w, &pc);
    if (rule.is_signal) {
        if (!link_read(w) || !step_to_interrupted(w, cfa)) return false;
    } else if (cfa < w->sp || (cfa == w->sp && !(is_link_kept && was_exact))) {
        return false;
    }
    w->sp = cfa, w->fp = fp, w->pc = unsigned_address(pc);
    return true;
}

/* ---- the walk ---- */

/* Not inlined, since the walk begins at its own frame. This library is built with frame pointers. */
__attribute__((noinline)) int kp_unwind_walk(uintptr_t *frames, int most)
{
    struct slot *table = kp_load_acquire(&rules); /* pairs with: kp_unwind_setup */
    const uintptr_t *frame = __builtin_frame_address(0);
    struct walk w = {
        .pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)__builtin_dwarf_cfa(), .fp = frame[0]};
    int n = 0;
    is_interrupted = false;
    if (!table || !stack_enter(&w, (uintptr_t)frame)) return 0;
    const uint32_t generation = kp_unwind_generation();
    bool is_ours = true, goes_on = true;
    while (goes_on && w.pc >= PAGE) {
        is_ours = is_ours && kp_unwind_is_ours(w.pc);
        if (n == most) break;
        if (!is_ours) frames[n++] = w.is_exact ? w.pc + 1 : w.pc; /* readers subtract 1, which is inside the code */
        goes_on = step(&w, table, generation);
        is_interrupted |= w.is_exact;
    }
    return n;
}

bool kp_unwind_walk_met_signal(void) { return is_interrupted; }

/* ---- the walk that remembers the last one ---- */

/* All words of the trail lie on this thread's stack, where it is known to be readable. */
static bool is_own(const struct kp_trail *trail) { return trail->hi == own.hi && trail->lo >= own.lo; }

static bool is_state(const struct kp_trail_frame *f, const struct walk *w)
{
    return f->pc == w->pc && f->sp == w->sp && f->fp == w->fp;
}

static uint32_t words_end(const struct kp_trail *trail, uint32_t n) { return n ? trail->of[n - 1].words_end : 0; }

/* Would the steps from the first n frames read the same words as before? Returns how many words, from the outermost on,
 * lie around the innermost changed one, and that one; 0: all are unchanged. They are readable: all lie on this stack,
 * or among the words of exit stubs. */
static inline uint32_t changed_word(const struct kp_trail *trail, uint32_t n)
{
    uint32_t i = words_end(trail, n);
    while (i && *(const uintptr_t *)trail->words[i - 1].at == trail->words[i - 1].value) i--;
    return i;
}

/* A frame of the trail becomes a fresh one. */
static void fresh_again(struct kp_trail *trail, uint32_t number)
{
    struct kp_trail_fresh *fresh = &trail->fresh[trail->fresh_n++];
    const uint32_t first = words_end(trail, number);
    fresh->frame = trail->of[number];
    fresh->words_n = fresh->frame.words_end - first;
    for (uint32_t i = 0; i < fresh->words_n; i++) fresh->words[i] = trail->words[first + i];
}

/* The walk has met frame n - 1 of the trail. If the words of all n frames are unchanged, returns n. Else moves the walk
 * to the innermost changed frame, takes the frames inside it as fresh, and returns 0. */
static uint32_t rejoin(struct kp_trail *trail, uint32_t n, struct walk *w)
{
    const uint32_t word = changed_word(trail, n);
    uint32_t changed = n;
    if (!word) return n;
    while (words_end(trail, changed - 1) >= word) changed--;
    for (uint32_t i = n; i-- > changed && trail->fresh_n < KP_UNWIND_DEPTH;) fresh_again(trail, i);
    w->pc = trail->of[changed - 1].pc, w->sp = trail->of[changed - 1].sp, w->fp = trail->of[changed - 1].fp;
    return 0;
}

struct kp_trail_frame *kp_unwind_trail_put(struct kp_trail *trail, const struct kp_trail_fresh *fresh)
{
    struct kp_trail_frame *f = &trail->of[trail->n];
    const uint32_t first = words_end(trail, trail->n);
    for (uint32_t i = 0; i < fresh->words_n; i++) trail->words[first + i] = fresh->words[i];
    *f = fresh->frame;
    f->words_end = first + fresh->words_n;
    return f;
}

static bool step_and_note(struct walk *w, struct kp_trail *trail, struct slot *table, uint32_t generation)
{
    struct kp_trail_fresh *f = &trail->fresh[trail->fresh_n++];
    f->frame = (struct kp_trail_frame){.pc = w->pc, .sp = w->sp, .fp = w->fp};
    w->read_n = 0;
    const bool goes_on = step(w, table, generation);
    f->words_n = w->read_n;
    for (uint32_t i = 0; i < w->read_n; i++) f->words[i] = w->read[i];
    return goes_on && w->pc >= PAGE;
}

/* Not inlined, for the same reason as kp_unwind_walk. */
__attribute__((noinline)) bool kp_unwind_trail_walk(struct kp_trail *trail)
{
    struct slot *table = kp_load_acquire(&rules); /* pairs with: kp_unwind_setup */
    const uintptr_t *frame = __builtin_frame_address(0);
    struct walk w = {
        .pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)__builtin_dwarf_cfa(), .fp = frame[0]};
    const uint32_t generation = kp_unwind_generation();
    if (!table || !stack_enter(&w, (uintptr_t)frame) || w.is_foreign) return false;
    uint32_t n = trail->generation == generation && is_own(trail) ? trail->n : 0;
    trail->generation = generation;
    trail->lo = own.lo, trail->hi = own.hi;
    trail->fresh_n = trail->n = 0;
    for (bool goes_on = true; goes_on;) {
        while (n && trail->of[n - 1].sp < w.sp) n--;
        if (n && is_state(&trail->of[n - 1], &w)) {
            trail->n = rejoin(trail, n, &w);
            if (trail->n) return trail->n + trail->fresh_n <= KP_UNWIND_DEPTH;
            while (n && !is_state(&trail->of[n - 1], &w)) n--;
            n -= n > 0; /* leaves out the changed frame */
        }
        if (trail->fresh_n == KP_UNWIND_DEPTH) return false;
        goes_on = step_and_note(&w, trail, table, generation);
        if (w.is_exact || w.is_foreign) return false;
    }
    return true;
}

bool kp_unwind_own_stack(uintptr_t at, uintptr_t *lo, uintptr_t *hi)
{
    struct walk w;
    if (!stack_enter(&w, at)) return false;
    *lo = own.lo;
    *hi = own.hi;
    return !w.is_foreign;
}

void kp_unwind_set_returns(uintptr_t lo, uintptr_t bytes, uintptr_t words)
{
    returns.words = words;
    returns.lo = lo;
    returns.bytes = bytes;
}

void kp_unwind_setup(void)
{
    if (kp_load_relaxed(&rules)) return;
    kp_unwind_modules_setup();
    const uintptr_t *end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    main_top = end ? *end : 0;
    dlerror(); /* clears our failed look-up, so that the host does not read it */
    struct slot *table = kp_map_alloc(RULES * sizeof *table);
    const int err = !table ? -ENOMEM : kp_io_peek_pages(&end, sizeof end);
    if (err)
        kp_log(0, "there are no machine code stacks: %s (%s)",
               table ? "a thread's stack cannot be read with care" : "no memory", kp_log_error_text(err));
    kp_store_release(&rules, table); /* pairs with: walk.c:kp_unwind_walk */
}
