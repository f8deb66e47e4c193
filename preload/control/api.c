// SPDX-License-Identifier: Apache-2.0
/*
 * api.c - the exported kprof_* functions, each a short call into schedule, cycle or record
 *
 * Called by: the host, any thread, through kprof.h or ctypes; never from a signal handler
 * Owns:      a stack of open ranges per thread (arena, made at a thread's first push)
 * Locks:     none. Memory: a thread's first push takes one arena block.
 * On fail:   returns -errno and changes nothing
 */
#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_jsonread.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "preload/blackbox/hangwatch.h"
#include "preload/finish/finish.h"
#include "preload/window/window.h"
#include "preload/window/window_sources.h"
#include "preload/guard.h"
#define KPROF_IMPLEMENTATION
#include "preload/kprof.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { RANGES_MAX = 64, NAME_MAX_BYTES = 4096 };

struct range {
    struct kp_rec_op *rec; /* NULL: nothing was recording, or no room */
    uint32_t cycle;
};
struct ranges {
    uint32_t thread_no; /* tells a dead thread's ranges, since a thread struct is used again */
    uint32_t depth;     /* may exceed RANGES_MAX: ranges above are counted, not kept */
    struct range open[RANGES_MAX];
};

/* Marks the calling thread as inside and returns it; NULL with the reason in *err. leave() must follow. */
static inline __attribute__((always_inline)) struct kp_thread *enter(int *err)
{
    *err = -ENOSYS;
    if (!kp_run_is_active()) return NULL;
    struct kp_thread *self = kp_thread_get();
    *err = -EBUSY;
    if (!self || !kp_guard_mark(self)) return NULL;
    *err = 0;
    return self;
}

static void leave(struct kp_thread *self) { kp_guard_leave(&(struct kp_guard){.thread = self}); }

static struct kp_rec_op *range_put(struct kp_thread *self, const char *name)
{
    const uint64_t gate = kp_gate_get();
    const size_t len = strlen(name);
    if (!(gate & KP_GATE_RECORD) || kp_window_sources_are_off(KP_ACTIVITY_CPU)) return NULL;
    uint32_t id = kp_name_intern(self, name, len > NAME_MAX_BYTES ? NAME_MAX_BYTES : (uint32_t)len);
    return kp_put_range(self, gate, id, KP_SCOPE_USER, 0);
}

/* If there is no schedule no step is marked, and a range of no length ends it, as an optimizer's does. */
static void step_end(struct kp_thread *self)
{
    struct kp_rec_op *const rec = kp_window_marks_steps() ? NULL : range_put(self, "kprof_step");
    const uint64_t now = kp_ticks();
    if (rec) {
        rec->ends_step = 1;
        kp_put_end(&rec->ticks, rec->start, now);
    }
    kp_run_step(self, now);
}

int kprof_step(void)
{
    int kept = errno;
    int err;
    if (kp_run_is_active()) kp_window_begin_run(true);
    struct kp_thread *self = enter(&err);
    if (!self) return err;
    if (!kp_steps_takes_api()) err = -EPERM;
    else if (kp_steps_api()) step_end(self);
    leave(self);
    errno = kept;
    return err;
}

int kprof_phase(const char *name)
{
    int kept = errno;
    int err;
    if (kp_run_is_active()) kp_window_begin_run(true);
    struct kp_thread *self = enter(&err);
    if (!self) return err;
    if (kp_phases_are_set()) kp_window_phase_set(self, kp_phases_find(name));
    leave(self);
    errno = kept;
    return 0;
}

long long kprof_step_num(void) { return kp_run_is_active() ? (long long)kp_steps_seen() : -ENOSYS; }

int kprof_alive(void)
{
    if (!kp_run_is_active()) return -ENOSYS;
    kp_hangwatch_alive();
    return 0;
}

int kprof_start(void)
{
    int kept = errno;
    int err = kp_run_is_active() ? kp_window_start() : -ENOSYS;
    errno = kept;
    return err;
}

int kprof_stop(void)
{
    int kept = errno;
    if (!kp_run_is_active()) return -ENOSYS;
    int err = kp_window_stop();
    if (err == 0) kp_ticker_wake();
    errno = kept;
    return err;
}

int kprof_keep(void) { return kp_run_is_active() ? kp_finish_keep() : -ENOSYS; }

int kprof_toggle(const char *activity, int on)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } known[] = {{"cpu", KP_ACTIVITY_CPU}, {"cuda", KP_ACTIVITY_CUDA}};
    int kept = errno, err = -EINVAL;
    if (!kp_run_is_active()) return -ENOSYS;
    for (size_t i = 0; activity && i < sizeof known / sizeof *known; i++)
        if (strcmp(activity, known[i].name) == 0) err = kp_window_toggle(known[i].bit, on);
    errno = kept;
    return err;
}

static struct ranges *ranges_of(struct kp_thread *self)
{
    if (!self->source_state[KP_STATE_API]) self->source_state[KP_STATE_API] = kp_arena_alloc(sizeof(struct ranges));
    struct ranges *stack = self->source_state[KP_STATE_API];
    if (stack && stack->thread_no != self->thread_no) {
        stack->thread_no = self->thread_no;
        stack->depth = 0;
    }
    return stack;
}

static void begin_range(struct kp_thread *self, struct range *r, const char *name)
{
    r->cycle = kp_gate_cycle(kp_gate_get());
    r->rec = range_put(self, name);
}

int kprof_range_push(const char *name)
{
    int kept = errno;
    int err;
    if (!name) return -EINVAL;
    if (kp_run_is_active()) kp_window_begin_run(true);
    struct kp_thread *self = enter(&err);
    if (!self) return err;
    struct ranges *stack = ranges_of(self);
    if (!stack) {
        err = -ENOMEM;
    } else if (stack->depth >= RANGES_MAX) {
        stack->depth++;
        err = -EOVERFLOW;
    } else {
        begin_range(self, &stack->open[stack->depth], name);
        kp_signal_fence(); /* a signal handler may jump out of here: the entry is complete before depth counts it */
        stack->depth++;
    }
    leave(self);
    errno = kept;
    return err;
}

/* A range that outlives its window has no end there, as with torch's ranges. */
static void end_range(const struct range *r, uint64_t end)
{
    uint64_t gate = kp_gate_get();
    if (r->rec && (gate & KP_GATE_RECORD) && r->cycle == kp_gate_cycle(gate))
        kp_put_end(&r->rec->ticks, r->rec->start, end);
}

int kprof_range_pop(void)
{
    int kept = errno;
    int err;
    uint64_t end = kp_ticks();
    struct kp_thread *self = enter(&err);
    if (!self) return err;
    struct ranges *stack = ranges_of(self);
    if (!stack || !stack->depth) err = -ENOENT;
    else if (--stack->depth < RANGES_MAX) end_range(&stack->open[stack->depth], end);
    self->ended++;
    leave(self);
    errno = kept;
    return err;
}

/* Writes "meta.KEY=JSON" to the spool, so that the exporter has it after a crash, too. */
static int keep_metadata(const char *key, const char *json)
{
    char line[128];
    if (!*key || strlen(key) > 100 || strpbrk(key, "=\n\"\\")) return -EINVAL;
    int kept = errno, err = kp_run_open_spool();
    if (err) return err;
    kp_fmt(line, sizeof line, "meta.%s", key);
    err = kp_record_note(line, json);
    errno = kept;
    return err;
}

static bool is_json(const char *text)
{
    size_t offset;
    const char *why;
    return kp_jsonread_check(text, strlen(text), &offset, &why) == 0;
}

/* `text` as a JSON string; false when it does not fit or is not UTF-8. */
static bool quote(char *out, size_t size, const char *text)
{
    size_t n = 0;
    out[n++] = '"';
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (n + 8 > size) return false;
        if (*c == '"' || *c == '\\') {
            out[n++] = '\\';
            out[n++] = (char)*c;
        } else if (*c < 0x20) {
            static const char hex[] = "0123456789abcdef";
            memcpy(out + n, "\\u00", 4);
            out[n + 4] = hex[*c >> 4];
            out[n + 5] = hex[*c & 15];
            n += 6;
        } else {
            out[n++] = (char)*c;
        }
    }
    out[n++] = '"';
    out[n] = 0;
    return is_json(out);
}

int kprof_metadata_json(const char *key, const char *json)
{
    if (!kp_run_is_active()) return -ENOSYS;
    if (!key || !json || !is_json(json)) return -EINVAL;
    return keep_metadata(key, json);
}

int kprof_metadata(const char *key, const char *value)
{
    char quoted[4096];
    if (!kp_run_is_active()) return -ENOSYS;
    if (!key || !value || !quote(quoted, sizeof quoted, value)) return -EINVAL;
    return keep_metadata(key, quoted);
}
