// SPDX-License-Identifier: Apache-2.0
/*
 * phases.c - the phases of a program: their schedules (KPROF_PHASES), and in which one it is
 *
 * Called by: boot.c and the CLI (parse); window.c, under its lock (where the program is)
 * Owns:      the rows of KPROF_PHASES, constant after start-up; the open phases
 * Memory:    kp_phases_init compiles patterns with libc's malloc
 * Locks:     none: the caller's lock lets one thread at a time change the phase; loops without a row are atomic
 * Safe in:   after fork yes: kp_phases_forget
 */
#include <errno.h>
#include <regex.h>
#include <string.h>

#include "schedule/complain.h"
#include "schedule/kp_schedule.h"

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

enum { DEEP_MAX = 16 };

static struct kp_phases all;
static regex_t patterns[KP_PHASES_MAX];
static bool is_compiled[KP_PHASES_MAX];
static const struct kp_schedule never = {.set = true};
/* The names of loops of Lightning and transformers. */
static const char *const loops[] = {"train", "validate", "evaluate", "test", "predict", "sanity_check"};
enum { LOOPS = sizeof loops / sizeof *loops };
static _Atomic bool is_rowless[LOOPS]; /* such a loop began, and has no row */
static uint32_t by_name;               /* the phase that was set by its name, or NONE */
static uint32_t stack[DEEP_MAX];       /* phases that began, the innermost last */
static uint32_t depth;                 /* may exceed DEEP_MAX: those are counted, not kept */

/* ---- the setting ---- */

static int complain(char *why, unsigned long why_bytes, const char *what, const char *at)
{
    return kp_complain_at(why, why_bytes, what, at, ";", "train=wait=1,warmup=1,active=3;validate=active=2");
}

static bool is_name_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* Reads SCHEDULE of `bytes` bytes. */
static int schedule_parse(const char *text, size_t bytes, struct kp_phase *row, char *why, unsigned long why_bytes)
{
    char schedule[256];
    if (bytes >= sizeof schedule) return complain(why, why_bytes, "has too long a schedule in", text);
    memcpy(schedule, text, bytes);
    schedule[bytes] = '\0';
    return kp_schedule_parse(schedule, &row->schedule, why, why_bytes);
}

/* Reads REGEX=SCHEDULE. The expression may hold a "=": it ends at the first behind which a schedule stands. */
static int range_parse(const char *text, size_t bytes, struct kp_phase *row, char *why, unsigned long why_bytes)
{
    for (size_t n = 0; n < bytes; n++) {
        if (text[n] != '=' || schedule_parse(text + n + 1, bytes - n - 1, row, why, why_bytes) < 0) continue;
        if (n >= sizeof row->pattern) return complain(why, why_bytes, "has too long a regular expression in", text);
        memcpy(row->pattern, text, n);
        row->pattern[n] = '\0';
        return kp_pattern_check(row->pattern, why, why_bytes);
    }
    return complain(why, why_bytes, "needs NAME~REGEX=SCHEDULE: no schedule in", text);
}

/* Reads NAME=SCHEDULE or NAME~REGEX=SCHEDULE of `bytes` bytes. */
static int row_parse(const char *text, size_t bytes, struct kp_phase *row, char *why, unsigned long why_bytes)
{
    size_t n = 0;
    while (n < bytes && is_name_letter(text[n])) n++;
    if (!n || n >= sizeof row->name)
        return complain(why, why_bytes, "needs a name of up to 31 letters, digits, _ and - in", text);
    memcpy(row->name, text, n);
    row->name[n] = '\0';
    row->pattern[0] = '\0';
    if (n < bytes && text[n] == '~') return range_parse(text + n + 1, bytes - n - 1, row, why, why_bytes);
    if (n == bytes || text[n] != '=')
        return complain(why, why_bytes, "needs NAME=SCHEDULE, of a range NAME~REGEX=SCHEDULE, in", text);
    return schedule_parse(text + n + 1, bytes - n - 1, row, why, why_bytes);
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
    for (uint32_t i = 0; i < KP_PHASES_MAX; i++)
        if (is_compiled[i]) regfree(&patterns[i]);
    all = *phases;
    for (uint32_t i = 0; i < LOOPS; i++) kp_store_relaxed(&is_rowless[i], false);
    for (uint32_t i = 0; i < KP_PHASES_MAX; i++)
        is_compiled[i] = i < all.count && all.row[i].pattern[0] &&
                         regcomp(&patterns[i], all.row[i].pattern, REG_EXTENDED | REG_NOSUB) == 0;
    kp_phases_forget();
}

uint32_t kp_phases_match(const char *range)
{
    for (uint32_t i = 0; i < all.count; i++)
        if (is_compiled[i] && regexec(&patterns[i], range, 0, NULL, 0) == 0) return i + 1;
    return KP_PHASE_NONE;
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

/* A row with a pattern is the user's own range: a loop has it by its exact name alone. */
static uint32_t other_spelling(const char *name)
{
    const bool is_evaluate = strcmp(name, "evaluate") == 0;
    if (!is_evaluate && strcmp(name, "validate") != 0) return KP_PHASE_OTHER;
    const uint32_t phase = kp_phases_find(is_evaluate ? "validate" : "evaluate");
    return is_row(phase) && !all.row[phase - 1].pattern[0] ? phase : KP_PHASE_OTHER;
}

uint32_t kp_phases_find_loop(const char *name)
{
    uint32_t phase = kp_phases_find(name);
    if (phase == KP_PHASE_OTHER) phase = other_spelling(name);
    for (uint32_t i = 0; phase == KP_PHASE_OTHER && i < LOOPS; i++)
        if (strcmp(loops[i], name) == 0) kp_store_relaxed(&is_rowless[i], true);
    return phase;
}

unsigned long kp_phases_rowless(char *out, unsigned long bytes)
{
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < LOOPS && n < bytes; i++)
        if (kp_load_relaxed(&is_rowless[i])) n += kp_fmt(out + n, bytes - n, "%s%s", n ? ", " : "", loops[i]);
    return n;
}

const char *kp_phases_name(uint32_t phase) { return is_row(phase) ? all.row[phase - 1].name : ""; }

const char *kp_phases_pattern(uint32_t phase) { return is_row(phase) ? all.row[phase - 1].pattern : ""; }

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

bool kp_phases_are_named(void) { return by_name != KP_PHASE_NONE; }

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
