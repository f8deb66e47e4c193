// SPDX-License-Identifier: Apache-2.0
/*
 * procfacts.c - notes in the spool what the program ran on: cores, who had them, busy threads, the script's name
 *
 * Called by: boot.c (a spool is open), window.c (a window opens and closes, by the thread that steps),
 *            window_sources.c (before a trace is written: the export thread, the exiting thread)
 * Owns:      the times of the thread that opened the window, and of all threads before the first step
 * Locks:     none of its own; window_lock guards these times
 * Memory:    4 KB of stack
 * On fail:   the note is missing, and the report says less
 *
 * A pool of threads cannot be asked for its size without calling into the program's libraries. So the time that each
 * thread has run tells: of 16 threads that share each op, all have run about as long. A pool that is not used has run
 * for some 0.1 ms a thread, one of a run of a few steps for some milliseconds. NumPy's BLAS has threads that spin for
 * 40 ms when it is imported. So what threads ran before steps were recorded does not count. Threads of gloo, of a
 * loader or of the program's own that sleep most of the time run often, and for next to nothing: busy is who had a core
 * for a twentieth of the time in which it could have one, where others have the cores, too.
 */
#include "preload/procfacts/procfacts.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/record/kp_record.h"
#include "preload/procfacts/faultcount.h"
#include "collector/base/kp_poison.h"

enum { TEXT_BYTES = 3072, SCRIPT_BYTES = 128 };
#define MS UINT64_C(1000000)
#define IMPORTS_NS (5000 * MS) /* the longest thread may have spent that long on imports, which run on one thread */
enum { BUSY_PART = 20 };       /* of the time: one of four threads on two cores has so little, gloo's have less */

/* Sets of instructions without which torch computes a type slowly: bfloat16 (decisions/185). */
static const char *const instructions[] = {"avx2", "avx512bw", "avx512_bf16", "avx_ne_convert", "amx_bf16"};

static void number_note(const char *key, unsigned number)
{
    char text[16];
    kp_fmt(text, sizeof text, "%u", number);
    if (number) (void)kp_record_note(key, text);
}

/* ---- cores ---- */

unsigned kp_procfacts_cores(const char *status)
{
    static const char key[] = "\nCpus_allowed:", digits[] = "0123456789abcdef";
    const char *at = strstr(status, key), *digit;
    unsigned cores = 0;
    if (!at) return 0;
    for (at += sizeof key - 1; *at && *at != '\n'; at++)
        if ((digit = strchr(digits, *at))) cores += (unsigned)__builtin_popcount((unsigned)(digit - digits));
    return cores;
}

/* ---- threads ---- */

uint64_t kp_procfacts_task_ns(const char *stat, const char *schedstat)
{
    const uint64_t ns = kp_digits(schedstat);
    if (strstr(stat, "(kprof-")) return 0;
    return ns ? ns : kp_digits_stat_ticks(stat, KP_STAT_TIMES) * KP_STAT_TICK_MS * MS; /* a kernel without schedstat */
}

/* If there is no time to compare with, the time is that of the longest less imports, which run on one thread. */
unsigned kp_procfacts_busy(const uint64_t *ns, size_t count, uint64_t over_ns)
{
    uint64_t longest = 0, least;
    unsigned busy = 0;
    for (size_t i = 0; i < count; i++)
        if (ns[i] > longest) longest = ns[i];
    if (!over_ns && longest > IMPORTS_NS) over_ns = longest - IMPORTS_NS;
    least = over_ns / BUSY_PART;
    if (least < MS) least = MS;
    for (size_t i = 0; i < count; i++) busy += ns[i] >= least;
    return busy;
}

uint64_t kp_procfacts_core_share(uint64_t ns, uint64_t had_ns, uint64_t waited_ns)
{
    const uint64_t wanted_us = (had_ns + waited_ns) / 1000;
    return wanted_us ? ns / wanted_us * (had_ns / 1000) : ns;
}

void kp_procfacts_leave_out(struct kp_tasks *now, const struct kp_tasks *before)
{
    for (size_t i = 0; i < now->count; i++)
        for (size_t k = 0; k < before->count; k++)
            if (now->tid[i] == before->tid[k] && now->ns[i] >= before->ns[k]) now->ns[i] -= before->ns[k];
}

static void task_visit(void *context, const char *name)
{
    struct kp_tasks *tasks = context;
    char stat[512], schedstat[128];
    if (tasks->count == KP_PROCFACTS_TASKS || !kp_io_task_text(name, "stat", stat, sizeof stat)) return;
    (void)kp_io_task_text(name, "schedstat", schedstat, sizeof schedstat);
    tasks->tid[tasks->count] = (uint32_t)kp_digits(name);
    tasks->ns[tasks->count++] = kp_procfacts_task_ns(stat, schedstat);
}

/* Before the first step that is recorded from its begin on. The export thread reads it once such a step has ended. */
static struct {
    struct kp_tasks tasks;
    uint64_t at_ns;
    _Atomic(uint32_t) is_over;
    _Atomic(uint64_t) over_ns; /* from then to a window's last step a thread that wants a core had one; 0: unknown */
} before;

static void before_take(void)
{
    if (kp_load_acquire(&before.is_over)) return;
    before.tasks.count = 0;
    before.at_ns = kp_clock_ns(CLOCK_MONOTONIC);
    if (kp_io_each_name("/proc/self/task", task_visit, &before.tasks) != 0) before.tasks.count = 0;
}

void kp_procfacts_note_end(void)
{
    struct kp_tasks tasks;
    tasks.count = 0;
    if (kp_io_each_name("/proc/self/task", task_visit, &tasks) == 0) {
        if (kp_load_acquire(&before.is_over)) kp_procfacts_leave_out(&tasks, &before.tasks);
        number_note("busy_threads", kp_procfacts_busy(tasks.ns, tasks.count, kp_load_relaxed(&before.over_ns)));
    }
    kp_faultcount_note_cost();
}

/* ---- the wait for a core ---- */

#define LOOK_NS (5 * MS)                     /* between two looks: one takes some 6 us, a thousandth of that */
#define NOTE_NS (100 * MS)                   /* between two notes */
enum { NOTE_PART = 100, PROGRAM_PART = 20 }; /* of the window's time: between two notes, and two of at_program */
#define BEHIND_NS (50 * MS)                  /* time so long after the last step is no time of a step */
static struct core_times {
    uint64_t had_ns, waited_ns, program_ns; /* program_ns: all its threads had a core */
} at_begin, at_look, at_program;            /* at_program: when program_ns was asked for */
static struct {
    pthread_t thread;         /* which opened the window, and steps */
    bool is_known, is_helper; /* is_helper: it is one of ours, as kprof-follow is. The program's first thread counts */
    bool has_steps;           /* ended since the last look */
    uint32_t window;
    uint64_t helpers_us;            /* processor time of our helper threads, when the window opened */
    uint64_t look_ns, step_ns;      /* when the last look was, and when the last step ended; 0: none yet */
    uint64_t first_step, last_step; /* ended since the last look */
    uint64_t begin_ns, note_ns;     /* of the first look, and of the last note */
    uint64_t program_ns;            /* of at_program */
} core;

bool kp_procfacts_core(const char *schedstat, uint64_t *had_ns, uint64_t *waited_ns)
{
    const char *const second = strchr(schedstat, ' ');
    *had_ns = kp_digits(schedstat);
    *waited_ns = second ? kp_digits(second + 1) : 0;
    return second && strpbrk(schedstat, "123456789"); /* a kernel without these numbers has "0 0 0" */
}

static bool is_helper(void)
{
    char name[16];
    kp_io_thread_name(name);
    return strncmp(name, "kprof-", 6) == 0;
}

bool kp_procfacts_schedstat(const char *path, uint64_t *had_ns, uint64_t *waited_ns)
{
    char text[128];
    return kp_io_text(path, text, sizeof text) > 0 && kp_procfacts_core(text, had_ns, waited_ns);
}

bool kp_procfacts_thread(uint64_t *had_ns, uint64_t *waited_ns)
{
    return kp_procfacts_schedstat("/proc/thread-self/schedstat", had_ns, waited_ns);
}

/*
 * /proc/self is of the first thread. For the clock the kernel counts the caller's time, and takes its core where its
 * slice has ended: so it is asked now and then, and behind the waits. Meanwhile the other threads count as asleep.
 */
static bool core_look(struct core_times *out, uint64_t now_ns, bool has_program)
{
    const bool is_known = core.is_helper ? kp_procfacts_schedstat("/proc/self/schedstat", &out->had_ns, &out->waited_ns)
                                         : kp_procfacts_thread(&out->had_ns, &out->waited_ns);
    out->program_ns =
        has_program ? kp_clock_ns(CLOCK_PROCESS_CPUTIME_ID) : at_program.program_ns + (out->had_ns - at_program.had_ns);
    if (!has_program) return is_known;
    at_program = *out;
    core.program_ns = now_ns;
    return is_known;
}

static void core_begin(void)
{
    core.thread = pthread_self();
    core.is_helper = is_helper();
    core.begin_ns = core.note_ns = core.look_ns = kp_clock_ns(CLOCK_MONOTONIC);
    core.is_known = core_look(&at_begin, core.begin_ns, true);
    at_look = at_begin;
    core.step_ns = 0;
    core.has_steps = false;
    kp_corewaits_begin(core.window);
    kp_residents_begin(core.window, core.look_ns);
    before_take();
}

void kp_procfacts_core_text(char *out, size_t room, uint64_t had_ns, uint64_t waited_ns, uint64_t program_ns,
                            uint64_t helpers_ns)
{
    const uint64_t ours_ns = had_ns + helpers_ns, others_ns = program_ns > ours_ns ? program_ns - ours_ns : 0;
    kp_fmt(out, room, "%lu,%lu,%lu", (unsigned long)(had_ns / 1000), (unsigned long)(waited_ns / 1000),
           (unsigned long)(others_ns / 1000));
}

/* How long threads that always want a core have one, as the thread of the steps does, which wants one now and then. */
static void over_put(void)
{
    const uint64_t had_ns = at_look.had_ns - at_begin.had_ns, waited_ns = at_look.waited_ns - at_begin.waited_ns;
    if (core.step_ns > before.at_ns)
        kp_store_relaxed(&before.over_ns, kp_procfacts_core_share(core.step_ns - before.at_ns, had_ns, waited_ns));
}

/* The last note of a window counts. */
static void core_put(uint32_t window)
{
    char key[24], value[72];
    kp_fmt(key, sizeof key, "core.%u", window);
    kp_procfacts_core_text(value, sizeof value, at_look.had_ns - at_begin.had_ns,
                           at_look.waited_ns - at_begin.waited_ns, at_look.program_ns - at_begin.program_ns,
                           (kp_io_helpers_cpu_us() - core.helpers_us) * 1000);
    (void)kp_record_note(key, value); /* on failure the trace says nothing of it */
}

/* A process that is killed leaves the note before: of all but a hundredth of the window's time, or 0.1 s. */
static void core_note_early(void)
{
    const uint64_t past_ns = core.look_ns - core.begin_ns, part_ns = past_ns / NOTE_PART;
    if (core.look_ns - core.note_ns < (part_ns > NOTE_NS ? part_ns : NOTE_NS)) return;
    core.note_ns = core.look_ns;
    core_put(core.window);
    kp_corewaits_note();
    kp_residents_note();
}

/* The thread's wait since the last look is the wait of the steps that ended since. */
static bool core_look_again(uint64_t now_ns, bool is_last)
{
    struct core_times now;
    const bool is_due = now_ns - core.program_ns >= (now_ns - core.begin_ns) / PROGRAM_PART;
    if (!core_look(&now, now_ns, is_last || is_due)) return false;
    if (core.has_steps)
        kp_corewaits_add(core.first_step, core.last_step, now.waited_ns - at_look.waited_ns, now_ns - core.look_ns);
    at_look = now;
    core.look_ns = now_ns;
    core.has_steps = false;
    core_note_early();
    return true;
}

void kp_procfacts_core_step(uint64_t now_ns, bool is_first, uint64_t step)
{
    if (!core.is_known) return;
    if (is_first || core.is_helper) {
        core_begin();
        return;
    }
    if (!pthread_equal(core.thread, pthread_self())) return;
    if (!core.has_steps) core.first_step = step;
    core.has_steps = true;
    core.last_step = step;
    core.step_ns = now_ns;
    kp_store_release(&before.is_over, 1);
    if (now_ns - core.look_ns >= LOOK_NS) (void)core_look_again(now_ns, false);
    kp_residents_step(step, now_ns);
}

/* Time long after the last step, as Python's end has, is no time of a step. */
static bool core_end(void)
{
    const uint64_t now_ns = kp_clock_ns(CLOCK_MONOTONIC);
    const bool is_long_after = core.step_ns && now_ns - core.step_ns >= BEHIND_NS;
    return is_long_after || core_look_again(now_ns, true);
}

static void core_note(uint32_t window)
{
    const bool is_known = core.is_known && (core.is_helper || pthread_equal(core.thread, pthread_self()));
    core.is_known = false;
    if (is_known) kp_residents_note();
    if (!is_known || !core_end()) return;
    core_put(window);
    over_put();
    kp_corewaits_note();
}

/* ---- a window ---- */

void kp_procfacts_window_begin(uint32_t window, bool is_step)
{
    core.window = window;
    core.helpers_us = kp_io_helpers_cpu_us();
    core_begin();
    kp_faultcount_begin(is_step);
}

void kp_procfacts_window_note(uint32_t window)
{
    core_note(window);
    kp_faultcount_note(window);
}

/* ---- the CPU ---- */

static bool has_word(const char *line, const char *word)
{
    const size_t bytes = strlen(word);
    for (const char *at = line; (at = strstr(at, word)); at += bytes)
        if (at > line && at[-1] == ' ' && (at[bytes] == ' ' || at[bytes] == '\n' || !at[bytes]))
            return !memchr(line, '\n', (size_t)(at - line));
    return false;
}

void kp_procfacts_instructions(const char *cpuinfo, char *out, size_t room)
{
    const char *const flags = strstr(cpuinfo, "\nflags");
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; flags && i < sizeof instructions / sizeof *instructions; i++) {
        if (!has_word(flags + 1, instructions[i])) continue;
        kp_fmt(out + used, room - used, "%s%s", used ? " " : "", instructions[i]);
        used = strlen(out);
    }
}

/* ---- the script ---- */

/* Each argument ends with a NUL. -X and -W take the next one, -m names a module, -c has no script. */
void kp_procfacts_script(const char *line, size_t bytes, char *out, size_t room)
{
    const char *const end = line + bytes;
    out[0] = '\0';
    if (strncmp(kp_path_base(line), "python", 6) != 0) return;
    for (const char *word = line + strlen(line) + 1; word < end; word += strlen(word) + 1) {
        if (strcmp(word, "-c") == 0 || strcmp(word, "-") == 0) return;
        if (strcmp(word, "-X") == 0 || strcmp(word, "-W") == 0) {
            word += strlen(word) + 1;
            if (word >= end) return;
        } else if (word[0] != '-') {
            kp_fmt(out, room, "%s", kp_path_base(word));
            return;
        }
    }
}

/* They run each rank as a program of its own, and no op. */
bool kp_procfacts_starts_ranks(const char *script)
{
    static const char *const launchers[] = {"torchrun", "torch.distributed.run", "torch.distributed.launch",
                                            "accelerate", "deepspeed"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (strcmp(script, launchers[i]) == 0) return true;
    return false;
}

void kp_procfacts_own_script(char *out, size_t room)
{
    char text[TEXT_BYTES];
    const ssize_t n = kp_io_text("/proc/self/cmdline", text, sizeof text);
    out[0] = '\0';
    if (n > 0) kp_procfacts_script(text, (size_t)n, out, room);
}

bool kp_procfacts_is_launcher(void)
{
    char script[SCRIPT_BYTES];
    kp_procfacts_own_script(script, sizeof script);
    return kp_procfacts_starts_ranks(script);
}

/* How much memory the program may have: the machine's, or its control group's. */
static void memory_note(void)
{
    char text[24];
    const uint64_t bytes = kp_io_memory_limit();
    kp_fmt(text, sizeof text, "%lu", (unsigned long)(bytes / 1024));
    if (bytes && bytes != UINT64_MAX) (void)kp_record_note("memory_kb", text);
}

void kp_procfacts_note_begin(void)
{
    char text[TEXT_BYTES], script[SCRIPT_BYTES], words[SCRIPT_BYTES] = "";
    if (kp_io_text("/proc/cpuinfo", text, sizeof text) > 0) kp_procfacts_instructions(text, words, sizeof words);
    else kp_log(0, "cannot read /proc/cpuinfo: which types the processor knows is not recorded");
    if (words[0]) (void)kp_record_note("instructions", words);
    if (kp_io_text("/proc/self/status", text, sizeof text) > 0) number_note("cores", kp_procfacts_cores(text));
    memory_note();
    kp_procfacts_own_script(script, sizeof script);
    if (script[0]) (void)kp_record_note("script", script);
}
