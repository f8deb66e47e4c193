// SPDX-License-Identifier: Apache-2.0
/*
 * phases.c - the phases of a program: their schedules (KPROF_PHASES), and in which one it is
 *
 * Called by: boot.c and the CLI (parse); window.c, under its lock (where the program is)
 * Owns:      the rows of KPROF_PHASES, constant after start-up; the open phases
 * Locks:     none: the caller's lock lets one thread at a time change the phase
 * Safe in:   after fork yes: kp_phases_forget
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "schedule/complain.h"
#include "schedule/kp_schedule.h"

#include "collector/base/kp_poison.h"

enum { DEEP_MAX = 16 };

static struct kp_phases all;
static const struct kp_schedule never = {.set = true};
static uint32_t by_name;         /* the phase that was set by its name, or NONE */
static uint32_t stack[DEEP_MAX]; /* those that began, the innermost last */
static uint32_t depth;           /* may exceed DEEP_MAX: those are counted, not kept */

/* ---- the setting ---- */

static int complain(char *why, unsigned long why_bytes, const char *what, const char *at)
{
    return kp_complain_at(why, why_bytes, what, at, ";", "train=wait=1,warmup=1,active=3;validate=active=2");
}

static bool is_name_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* Reads NAME=SCHEDULE of `bytes` bytes. */
static int row_parse(const char *text, size_t bytes, struct kp_phase *row, char *why, unsigned long why_bytes)
{
    char schedule[256];
    size_t n = 0;
    while (n < bytes && is_name_letter(text[n])) n++;
    if (!n || n >= sizeof row->name)
        return complain(why, why_bytes, "needs a name of up to 31 letters, digits, _ and - in", text);
    memcpy(row->name, text, n);
    row->name[n] = '\0';
    if (n == bytes || text[n] != '=') return complain(why, why_bytes, "needs NAME=SCHEDULE in", text);
    if (bytes - n - 1 >= sizeof schedule) return complain(why, why_bytes, "has too long a schedule in", text);
    memcpy(schedule, text + n + 1, bytes - n - 1);
    schedule[bytes - n - 1] = '\0';
    return kp_schedule_parse(schedule, &row->schedule, why, why_bytes);
}

int kp_phases_parse(const char *text, struct kp_phases *out, char *why, unsigned long why_bytes)
{
    struct kp_phases read = {.count = 0};
    for (const char *p = text; *p;) {
        const size_t bytes = strcspn(p, ";");
        if (read.count == KP_PHASES_MAX) return complain(why, why_bytes, "has more than 16 phases at", p);
        struct kp_phase *const row = &read.row[read.count];
        if (row_parse(p, bytes, row, why, why_bytes) < 0) return -EINVAL;
        for (uint32_t i = 0; i < read.count; i++)
            if (strcmp(read.row[i].name, row->name) == 0) return complain(why, why_bytes, "says twice", p);
        read.count++;
        p += bytes;
        if (*p) p++;
    }
    if (!read.count) return complain(why, why_bytes, "has no phase in", text);
    *out = read;
    return 0;
}

/* ---- the rows ---- */

void kp_phases_init(const struct kp_phases *phases)
{
    all = *phases;
    kp_phases_forget();
}

bool kp_phases_are_set(void) { return all.count > 0; }

static bool is_row(uint32_t phase) { return phase > KP_PHASE_NONE && phase <= all.count; }

uint32_t kp_phases_find(const char *name)
{
    if (!name || !*name) return KP_PHASE_NONE;
    for (uint32_t i = 0; i < all.count; i++)
        if (strcmp(all.row[i].name, name) == 0) return i + 1;
    return KP_PHASE_OTHER;
}

const char *kp_phases_name(uint32_t phase) { return is_row(phase) ? all.row[phase - 1].name : ""; }

const struct kp_schedule *kp_phases_schedule(uint32_t phase, const struct kp_schedule *outside)
{
    if (phase == KP_PHASE_NONE) return outside;
    return is_row(phase) ? &all.row[phase - 1].schedule : &never;
}

/* ---- where the program is ---- */

uint32_t kp_phases_now(void)
{
    if (by_name != KP_PHASE_NONE || !depth) return by_name;
    return stack[depth < DEEP_MAX ? depth - 1 : DEEP_MAX - 1];
}

uint32_t kp_phases_set(uint32_t phase)
{
    by_name = phase;
    return kp_phases_now();
}

uint32_t kp_phases_begin(uint32_t phase, uint32_t *at)
{
    *at = depth;
    if (depth < DEEP_MAX) stack[depth] = phase;
    depth++;
    return kp_phases_now();
}

uint32_t kp_phases_end(uint32_t at)
{
    if (at < depth) depth = at;
    return kp_phases_now();
}

void kp_phases_forget(void)
{
    by_name = KP_PHASE_NONE;
    depth = 0;
}
