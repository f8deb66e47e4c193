// SPDX-License-Identifier: Apache-2.0
/*
 * calltrace_source.c - calls of functions by name as a source: which slots are redirected, and the report
 *
 * Called by: boot.c through source.h; hook/slot_rules.c, for each slot
 * Owns:      the globs; the counts for the report
 * Locks:     none
 * Memory:    a set of names while the report is made
 * On fail:   nothing is hooked; one line says why
 * Safe in:   after fork yes (the gate reads 0 in a child)
 *
 * Nothing is installed if KPROF_SYMBOLS is not set. Else the source attaches in the constructor, so a program without
 * torch has a run too. The slots are never restored; while no window records, a stub costs a load and a jump.
 */
#include <string.h>
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/text/kp_glob.h"
#include "collector/base/kp_log.h"
#include "preload/hook/hook.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/run.h"
#include "preload/source.h"
#include "preload/calltrace/calltrace.h"
#include "collector/base/kp_poison.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* this library's ELF header, from the linker */
extern const char _end[] __attribute__((visibility("hidden")));

static const char *globs;
static bool is_refused, is_said;
static uint32_t words_n, left_n, full_n;

/* ---- which functions ---- */

struct special {
    const char *names; /* separated by commas; a star matches any rest */
    enum kp_calltrace_does does;
};
static const struct special specials[] = {
    /* an exec does not return in a vfork child: the parent goes on, with their frames gone */
    {"longjmp,_longjmp,siglongjmp,__longjmp_chk,execve,execv,execvp,execvpe,execl,execlp,execle,fexecve,execveat,_exit,"
     "_Exit",
     KP_CALLTRACE_JUMPS},
    {"__cxa_throw,__cxa_rethrow,_Unwind_Resume,_Unwind_RaiseException,_Unwind_Resume_or_Rethrow,_Unwind_ForcedUnwind",
     KP_CALLTRACE_THROWS},
    {"__cxa_begin_catch", KP_CALLTRACE_LANDS},
    {"pthread_exit", KP_CALLTRACE_ENDS},
};
/*
 * Never hooked: functions that return twice, read their return address, have another calling convention, or run while
 * the loader binds a slot. They would notice or break the changed return address.
 */
static const char excluded[] =
    "setjmp,_setjmp,sigsetjmp,__sigsetjmp,vfork,__vfork,getcontext,setcontext,makecontext,swapcontext,clone,__clone,"
    "__clone2,dlopen,dlmopen,dlsym,dlvsym,__tls_get_addr,__libc_start_main,mcount,_mcount,__fentry__,__morestack,_dl_*,"
    "__cyg_profile_func_*,_Unwind_*,__gxx_personality_v0,__gcc_personality_v0,rust_eh_personality,__sigreturn,"
    "__libc_longjmp,__libc_siglongjmp,__sanitizer_*,__asan_*,__tsan_*,__msan_*,*unw_getcontext,_Ux86_64_*getcontext*,"
    "_ITM_beginTransaction,__regcall*,__svml_*";

static bool is_in(const char *names, const char *name)
{
    for (size_t n; (n = strcspn(names, ",")) != 0; names += n + (names[n] == ','))
        if (kp_glob_matches(names, n, name)) return true;
    return false;
}

static const struct special *special_find(const char *name)
{
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (is_in(specials[i].names, name)) return &specials[i];
    return NULL;
}

static bool is_asked_for(const char *name) { return kp_globs_match(globs, name, NULL) && !is_in(excluded, name); }

static bool wants(const char *name) { return special_find(name) || is_asked_for(name); }

static bool is_ours(uintptr_t at) { return at >= (uintptr_t)__ehdr_start && at < (uintptr_t)_end; }

static uintptr_t take(const struct kp_word *word)
{
    const struct special *special = special_find(word->symbol);
    if (is_ours(word->holds) || strncmp(word->object, "ld-linux", 8) == 0) return 0;
    struct kp_calltrace_row *row =
        kp_calltrace_row_get(word->symbol, word->object, word->holds, word->is_lazy ? word->at : 0,
                             special ? special->does : KP_CALLTRACE_CALL);
    if (!row) {
        full_n++;
        return 0;
    }
    words_n += !special;
    return kp_calltrace_stub_of(row);
}

static void left(const char *name) { left_n += !special_find(name); }

static uintptr_t real(uintptr_t holds)
{
    const struct kp_calltrace_row *row = kp_calltrace_row_of(holds);
    return row ? kp_load_relaxed(&row->target) : 0;
}

static const struct kp_word_taker taker = {.wants = wants, .take = take, .left = left, .real = real};

/* ---- the source ---- */

static void setup(const struct kp_config *config)
{
    globs = config->symbols;
    if (globs) kp_unwind_setup();
}

static bool refuse(const char *why)
{
    is_refused = true;
    kp_log(0, "KPROF_SYMBOLS: %s: no calls of functions are recorded", why);
    return false;
}

static bool attach(void)
{
    if (!globs || is_refused) return false;
    if (kp_calltrace_shadow_stack())
        return refuse("this process has a shadow stack, which knows where calls return to");
    if (!kp_calltrace_calls_make()) return refuse("there is no memory for open calls");
    kp_calltrace_vectors = kp_calltrace_vector_kind();
    kp_unwind_set_returns((uintptr_t)&kp_calltrace_exits, KP_CALLTRACE_CALLS * 8u, (uintptr_t)kp_calltrace_returns);
    kp_thread_on_exit = kp_calltrace_thread_dies;
    if (kp_hook_take_words(&taker) != 0) return refuse("the words of this program could not be looked at");
    kp_hook_early();
    return true;
}

static void set_mode(enum kp_source_mode mode) { kp_store_relaxed(&kp_calltrace_armed, mode == KP_SOURCE_FULL); }

/* ---- the report, logged once, before the first trace is written ---- */

struct report {
    struct kp_calltrace_names names; /* names of hooked functions, then also of the others */
    uint64_t used;                   /* a bit for each glob that has a function */
    uint32_t unhooked, called;
};

static void look_at(void *arg, const char *name, uintptr_t address)
{
    struct report *r = arg;
    (void)address;
    if (special_find(name) && !kp_globs_match(globs, name, NULL)) return;
    r->unhooked += kp_calltrace_names_add(&r->names, name);
}

static uint32_t functions_count(struct report *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < kp_calltrace_rows_used(); i++) {
        const struct kp_calltrace_row *row = &kp_calltrace_rows[i];
        if (row->does != KP_CALLTRACE_CALL) continue;
        r->called += kp_load_relaxed(&row->id) != 0;
        kp_globs_match(globs, row->name, &r->used);
        n += kp_calltrace_names_add(&r->names, row->name);
    }
    return n;
}

static void say_nothing(const char *glob, size_t bytes)
{
    char text[200];
    if (bytes >= sizeof text) bytes = sizeof text - 1;
    memcpy(text, glob, bytes);
    text[bytes] = 0;
    kp_log(0, "KPROF_SYMBOLS: no call to %s goes through a PLT or GOT slot, so none is recorded", text);
}

/* Logs the globs that matched no function. */
static void say_unmatched(uint64_t used)
{
    unsigned number = 0;
    for (const char *glob = globs; *glob; number++) {
        glob += strspn(glob, ", ");
        const size_t bytes = strcspn(glob, ",");
        if (!bytes) break;
        if (number < 64 && !(used >> number & 1)) say_nothing(glob, bytes);
        glob += bytes;
    }
}

/* Logs the report in one line, and writes it to the spool for the metadata of its traces. */
static void say(const struct report *r, const struct kp_calltrace_hidden *hidden, uint32_t hooked)
{
    char bare[128] = "", note[192];
    size_t n = 0;
    kp_fmt(note, sizeof note,
           "hooked %u, words %u, not hooked: exported %u, static or hidden %u, pointers %u; stripped files %u, unread "
           "files %u",
           hooked, words_n, r->unhooked, hidden->functions, left_n, hidden->bare, hidden->late);
    (void)kp_record_note("symbols", note);
    if (hidden->bare)
        n = kp_fmt(bare, sizeof bare, "; static functions of %u stripped files are unknown", hidden->bare);
    if (hidden->late) kp_fmt(bare + n, sizeof bare - n, "; %u files were not read in time", hidden->late);
    if (!hooked) {
        /* a program that was started by a shell or launcher with this setting, which has logged it already */
        const bool is_known = !r->unhooked && !hidden->functions && !kp_parent_lacks("KPROF_SYMBOLS=");
        kp_log(is_known,
               "KPROF_SYMBOLS: no call to %s goes through a PLT or GOT slot. None is recorded (%u such functions "
               "defined, %u static or hidden%s)",
               globs, r->unhooked + hidden->functions, hidden->functions, bare);
        return;
    }
    /* logged at level 1 if the program calls none of them, as many programs that a shell starts */
    kp_log(r->called ? 0 : 1,
           "KPROF_SYMBOLS: calls of %u functions are recorded; not those of %u without a PLT/GOT slot and %u static or "
           "hidden ones%s%s",
           hooked, r->unhooked, hidden->functions, bare, full_n ? "; the table is full" : "");
    say_unmatched(r->used);
}

static void report(void)
{
    struct report r = {.used = 0};
    struct kp_calltrace_hidden hidden;
    if (!globs || is_refused || is_said || !kp_run_may_log()) return;
    is_said = true;
    const uint32_t hooked = functions_count(&r);
    kp_hook_each_function(look_at, &r);
    kp_calltrace_names_clear(&r.names);
    const uint64_t began_ns = kp_clock_ns(CLOCK_MONOTONIC);
    kp_calltrace_hidden_count(is_asked_for, &hidden);
    kp_log(1, "KPROF_SYMBOLS: the modules' files were read in %u ms",
           (unsigned)((kp_clock_ns(CLOCK_MONOTONIC) - began_ns) / 1000000));
    say(&r, &hidden, hooked);
}

static void forget(void)
{
    if (!globs || is_refused) return;
    kp_calltrace_forget();
    kp_store_relaxed(&kp_calltrace_armed, true);
    kp_gate_set(kp_gate_get() | KP_GATE_CHILD_PENDING);
}

const struct kp_source kp_calltrace_source = {
    .name = "symbols",
    .setup = setup,
    .attach = attach,
    .set_mode = set_mode,
    .report = report,
    .forget = forget,
    .starts_active = true,
};
