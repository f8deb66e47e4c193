// SPDX-License-Identifier: Apache-2.0
/*
 * hangwatch.c - watches for a program that stands (KPROF_HANG), and then writes where all its threads are
 *
 * Called by: the thread kprof-control; kprof_alive() on any thread
 * Owns:      what was seen at the last look
 * Locks:     none
 * Memory:    that of where.c, once a program stands
 * On fail:   a file that cannot be written is told in a line, with the first thread's place
 * Safe in:   signal handlers no; after fork: kp_hangwatch_forget comes first
 *
 * A look reads four files of /proc, and is made each 5 s, or ten times in a short KPROF_HANG. If nothing has ended
 * since the last one it also reads those of the processes that descend from this one. While the whole process was
 * stopped no look was made: then the time starts anew.
 */
#include "preload/blackbox/hangwatch.h"

#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/procfacts/procfacts.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "preload/window/sources.h"
#include "preload/blackbox/task.h"
#include "preload/blackbox/where.h"
#include "preload/torch_bridge.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { EVERY_MS = 5000, LOOKS_IN_LIMIT = 10, LEAST_EVERY_MS = 50, IDLE_MS = 60000 };
enum { TEXT_BYTES = 1024, PATH_BYTES = 64, FAMILY_MAX = 256 };
enum { COLLECTIVES_MAX = 64, THREADS_MAX = 2048 };

static uint64_t limit_ms, due_ms;
static struct kp_hangwatch_state state;
static _Atomic uint64_t alive_calls;
static bool is_launcher_known, is_launcher;

/* ---- the setting ---- */

void kp_hangwatch_setup(const struct kp_config *config)
{
    limit_ms = kp_config_time_ms(config->hang);
    if (limit_ms) kp_torch_collectives_watch();
}

bool kp_hangwatch_is_wanted(void) { return limit_ms != 0; }

void kp_hangwatch_alive(void) { kp_add_relaxed(&alive_calls, 1); }

void kp_hangwatch_forget(void)
{
    memset(&state, 0, sizeof state);
    due_ms = 0;
}

/* ---- what is seen ---- */

/* Processor time of a process, and of its children that it has waited for. A word that cannot be read stays as it
 * was. */
static void times_of(const char *process, uint64_t *own_ms, uint64_t *child_ms)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    kp_fmt(path, sizeof path, "/proc/%s/stat", process);
    if (kp_io_text(path, text, sizeof text) <= 0 || !*kp_digits_stat(text, KP_STAT_STATE)) return;
    *own_ms = kp_digits_stat_ticks(text, KP_STAT_TIMES) * KP_STAT_TICK_MS;
    *child_ms = kp_digits_stat_ticks(text, KP_STAT_CHILD_TIMES) * KP_STAT_TICK_MS;
}

/* How long the first thread of a process had no core when it wanted one; `known` where that cannot be read. */
static uint64_t waited_of(const char *process, uint64_t known)
{
    char path[PATH_BYTES];
    uint64_t had_ns, waited_ns;
    kp_fmt(path, sizeof path, "/proc/%s/schedstat", process);
    return kp_procfacts_schedstat(path, &had_ns, &waited_ns) ? waited_ns / 1000000 : known;
}

static struct hang_family {
    uint32_t pids[FAMILY_MAX], count, of;
} family;

/* Adds what a thread has started. */
static void children_add(void *context, const char *tid)
{
    struct hang_family *const f = context;
    f->count += kp_task_children(f->of, (uint32_t)kp_digits(tid), f->pids + f->count, FAMILY_MAX - f->count);
}

/* Adds what processes that descend from this one have taken and waited for: a compiler that still runs. */
static uint64_t family_ms(void)
{
    char process[16], path[PATH_BYTES];
    uint64_t sum = 0;
    family.count = family.of = 0;
    (void)kp_io_each_name("/proc/self/task", children_add, &family);
    for (uint32_t i = 0; i < family.count; i++) {
        uint64_t own_ms = 0, child_ms = 0;
        family.of = family.pids[i];
        kp_fmt(process, sizeof process, "%u", family.of);
        kp_fmt(path, sizeof path, "/proc/%s/task", process);
        (void)kp_io_each_name(path, children_add, &family);
        times_of(process, &own_ms, &child_ms);
        sum += own_ms + child_ms + waited_of(process, 0);
    }
    return sum;
}

static void times_read(struct kp_hangwatch_sample *s)
{
    const uint64_t helpers_ms = kp_io_helpers_cpu_us() / 1000;
    static uint64_t own_ms, child_ms;
    times_of("self", &own_ms, &child_ms);
    s->own_ms = own_ms > helpers_ms ? own_ms - helpers_ms : 0;
    s->waited_ms = waited_of("self", state.last.waited_ms);
    s->child_ms = child_ms + (s->done == state.last.done ? family_ms() : 0); /* a program that goes on is not asked */
}

static void bytes_read(struct kp_hangwatch_sample *s)
{
    char text[TEXT_BYTES];
    s->bytes = state.last.bytes;
    if (kp_io_text("/proc/self/io", text, sizeof text) <= 0) return;
    const char *const in = strstr(text, "rchar: "), *const out = strstr(text, "wchar: ");
    s->bytes = (in ? kp_digits(in + 7) : 0) + (out ? kp_digits(out + 7) : 0);
}

/* The functions that the main thread is in, whatever their lines: a loop that waits is in the same ones. */
static uint64_t place_read(void)
{
    static struct {
        struct kp_pywhere_thread threads[THREADS_MAX];
        struct kp_pywhere_stack stack;
    } * seen;
    uint32_t count = 0;
    uint64_t key = 0;
    if (!seen) seen = kp_map_alloc(sizeof *seen);
    if (!seen || kp_pywhere_threads(seen->threads, THREADS_MAX, &count)) return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (seen->threads[i].tid != (uint32_t)getpid()) continue;
        kp_pywhere_stack(&seen->threads[i], &seen->stack);
        for (uint32_t k = 0; k < seen->stack.count; k++)
            for (const char *at = seen->stack.frames[k].function; *at; at++) key = key * 31 + (uint8_t)*at;
    }
    return key;
}

static void sample(struct kp_hangwatch_sample *s)
{
    struct kp_collective_count all[COLLECTIVES_MAX];
    const uint32_t count = kp_torch_collectives(all, COLLECTIVES_MAX);
    s->done = kp_steps_seen() + kp_load_relaxed(&alive_calls);
    for (uint32_t i = 0; i < count; i++) s->done += all[i].begun + all[i].ended;
    s->has_step = kp_steps_seen() > 0;
    kp_io_apart(false);
    times_read(s);
    bytes_read(s);
    kp_io_apart(true);
    s->place = place_read();
}

/* A launcher waits for its ranks. A program that has run no op may be idle, as a server, or a shell. */
static bool is_watched(void)
{
    if (!is_launcher_known) is_launcher = kp_procfacts_is_launcher();
    is_launcher_known = true;
    return !is_launcher && (kp_run_rank().is_launched || kp_sources_had_activity());
}

/* ---- what is written ---- */

static void tell(enum kp_hangwatch_finding finding, uint64_t for_ms)
{
    const bool is_busy = finding == KP_HANGWATCH_BUSY;
    struct kp_where_text text = {0};
    const uint64_t steps = kp_steps_seen(); /* they are numbered from 0 on */
    char path[KP_WHERE_PATH], rank[24] = "", step[64] = "no step counted yet (three times KPROF_HANG)";
    if (steps) kp_fmt(step, sizeof step, "after step %lu", (unsigned long)steps - 1);
    if (kp_run_rank().is_launched) kp_fmt(rank, sizeof rank, "rank %u: ", kp_run_rank().rank);
    kp_where_path(path, "hang");
    int rc = kp_where_write(&text, is_busy ? "busy" : "hang");
    if (rc == 0) rc = kp_where_keep(&text, path);
    kp_log(0, "%sno step and no collective has ended for %lu s, %s; the program %s at %s (%s%s)", rank,
           (unsigned long)(for_ms / 1000), step, is_busy ? "computes" : "is stuck", kp_where_main(),
           rc == 0 ? "all threads: " : "no file: ", rc == 0 ? kp_path_display(path) : kp_log_error_text(rc));
    kp_where_drop(&text);
}

bool kp_hangwatch_has_step(void) { return state.last.has_step; }

uint32_t kp_hangwatch_look(void)
{
    const uint64_t now_ms = kp_clock_ms();
    uint64_t every_ms = limit_ms / LOOKS_IN_LIMIT < EVERY_MS ? limit_ms / LOOKS_IN_LIMIT : EVERY_MS;
    struct kp_hangwatch_sample now = {0};
    if (!limit_ms) return IDLE_MS;
    if (every_ms < LEAST_EVERY_MS) every_ms = LEAST_EVERY_MS;
    if (now_ms < due_ms) return (uint32_t)(due_ms - now_ms);
    due_ms = now_ms + every_ms;
    if (!is_watched()) return (uint32_t)every_ms;
    sample(&now);
    const enum kp_hangwatch_finding finding = kp_hangwatch_turn(&state, &now, now_ms, limit_ms, every_ms);
    if (finding != KP_HANGWATCH_GOES_ON) tell(finding, now_ms - state.since_ms);
    return (uint32_t)every_ms;
}
