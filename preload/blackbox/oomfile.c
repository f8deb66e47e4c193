// SPDX-License-Identifier: Apache-2.0
/*
 * oomfile.c - writes what is live when an allocation of torch fails (KPROF_ON_OOM), by line of the program
 *
 * Called by: stepnote.c, on the thread whose allocation failed (cold), and on the thread that writes
 * Owns:      the sums and the text, mapped at the start: memory is short when they are used
 * Locks:     one word; a second failure meanwhile has no file
 * Memory:    0.8 MB mapped once
 * On fail:   a file that cannot be written is told in the line that is logged
 * Safe in:   signal handlers no; in a child that does not record it does nothing
 *
 * The thread kprof-summary writes the file, and the thread that failed waits for it for 100 ms. In a worker, and at
 * the end, that thread writes itself. A program may fail often and go on. It keeps the first files and the newest one.
 */
#include "preload/blackbox/oomfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "export/write/out/json.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "preload/blackbox/where.h"
#include "preload/torch_bridge.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { SITES_TOLD = 64, LARGEST = 16, STEPS = 8, FILES_MOST = 8, WAIT_MS = 100 };

struct site_sum {
    uint64_t bytes, largest;
    uint64_t born[STEPS]; /* bytes of the last steps: [0] of the one that runs */
    uint32_t blocks, first, last;
    bool is_told;
};

static struct oomfile {
    struct site_sum sums[KP_CALLSITES];
    struct kp_torch_block largest[LARGEST]; /* the largest first; 0 bytes: none */
    uint64_t live, step;
    uint32_t blocks;
    uint16_t device;
    struct kp_json json;
    char words[KP_OOMWORDS_BYTES];
    char path[KP_WHERE_PATH], last[KP_WHERE_PATH]; /* of the text, and of the last file */
} * out;

enum { FREE, LOOKING, MADE, WRITING }; /* LOOKING: the thread that failed has it; MADE: it may be written */
static _Atomic uint32_t state;
static uint32_t files; /* written; of the thread that writes */

static int no_room(void *context, const void *data, size_t bytes)
{
    (void)context, (void)data, (void)bytes;
    return -ENOSPC;
}

void kp_oomfile_setup(const struct kp_config *config)
{
    if (!kp_config_dumps_oom(config)) return;
    struct oomfile *const made = kp_map_alloc(sizeof *made);
    if (made && kp_json_init(&made->json, no_room, NULL) == 0) out = made;
    else kp_log(0, "no memory for KPROF_ON_OOM: it does nothing");
}

/* ---- sums ---- */

static void largest_note(struct oomfile *o, const struct kp_torch_block *block)
{
    uint32_t at = LARGEST;
    while (at > 0 && block->bytes > o->largest[at - 1].bytes) at--;
    if (at == LARGEST) return;
    memmove(&o->largest[at + 1], &o->largest[at], (LARGEST - 1 - at) * sizeof *block);
    o->largest[at] = *block;
}

static void block_add(void *context, const struct kp_torch_block *block)
{
    struct oomfile *const o = context;
    struct site_sum *const s = &o->sums[block->site % KP_CALLSITES];
    const uint64_t age = o->step - block->step;
    if (block->device != o->device) return;
    if (!s->blocks || block->step < s->first) s->first = block->step;
    if (!s->blocks || block->step > s->last) s->last = block->step;
    if (block->bytes > s->largest) s->largest = block->bytes;
    if (age < STEPS) s->born[age] += block->bytes;
    s->bytes += block->bytes;
    s->blocks++;
    o->live += block->bytes;
    o->blocks++;
    largest_note(o, block);
}

/* The site with the most bytes of those that were not told; NULL: none. */
static struct site_sum *next_find(struct oomfile *o)
{
    struct site_sum *most = NULL;
    for (uint32_t i = 0; i < KP_CALLSITES; i++) {
        struct site_sum *const s = &o->sums[i];
        if (s->blocks && !s->is_told && (!most || s->bytes > most->bytes)) most = s;
    }
    return most;
}

/* Bytes that each of the last whole steps left, at least; 0: one of them left none. */
static uint64_t grown_of(const struct site_sum *s)
{
    uint64_t least = s->born[1];
    for (int i = 2; i < STEPS / 2; i++)
        if (s->born[i] < least) least = s->born[i];
    return least;
}

/* ---- the text ---- */

static void site_put(struct kp_json *j, uint32_t number)
{
    const struct kp_callsite *const site = kp_callsite_get(number);
    if (!site) kp_json_lit(j, "\"file\":null,\"line\":null,\"function\":null,\"category\":null,\"module\":null");
    else
        kp_json_fmt(j, "\"file\":\"%s\",\"line\":%d,\"function\":\"%s\",\"category\":\"%s\",\"module\":\"%s\"",
                    site->file, site->line, site->function, site->category, site->module);
}

static void sites_put(struct oomfile *o)
{
    struct kp_json *const j = &o->json;
    struct site_sum *s;
    kp_json_lit(j, ",\"sites\":[");
    for (int n = 0; n < SITES_TOLD && (s = next_find(o)); n++) {
        s->is_told = true;
        kp_json_fmt(j, "%s{", n ? "," : "");
        site_put(j, (uint32_t)(s - o->sums));
        kp_json_fmt(j,
                    ",\"bytes\":%lu,\"blocks\":%u,\"largest\":%lu,\"first_step\":%u,\"last_step\":%u,"
                    "\"grows\":%lu}",
                    s->bytes, s->blocks, s->largest, s->first, s->last, grown_of(s));
    }
    kp_json_char(j, ']');
}

static void largest_put(struct oomfile *o)
{
    struct kp_json *const j = &o->json;
    kp_json_lit(j, ",\"largest\":[");
    for (int i = 0; i < LARGEST && o->largest[i].bytes; i++) {
        kp_json_fmt(j, "%s{", i ? "," : "");
        site_put(j, o->largest[i].site);
        kp_json_fmt(j, ",\"bytes\":%lu,\"step\":%u}", o->largest[i].bytes, o->largest[i].step);
    }
    kp_json_char(j, ']');
}

static const char *device_name(const struct kp_run_oom *oom, char name[24])
{
    static const char *const types[] = {[1] = "cuda", [6] = "hip", [12] = "xpu"};
    const size_t known = sizeof types / sizeof *types;
    const char *const type = oom->device_type < known ? types[oom->device_type] : NULL;
    if (!oom->device_type) return "cpu";
    kp_fmt(name, 24, "%s:%d", type ? type : "device", oom->device < 0 ? 0 : oom->device);
    return name;
}

/* The memory that the process may have, if something limits it; UINT64_MAX: nothing. */
static uint64_t limit_find(const char **by)
{
    const uint64_t addresses = kp_io_address_limit(), memory = kp_io_memory_limit();
    *by = addresses < memory ? "RLIMIT_AS" : "memory";
    return addresses < memory ? addresses : memory;
}

static void words_make(struct oomfile *o, const struct kp_run_oom *oom, uint64_t limit)
{
    char name[24];
    struct site_sum *const most = next_find(o);
    const uint64_t cached = oom->reserved > oom->allocated ? oom->reserved - oom->allocated : 0;
    kp_oomwords_put(o->words,
                    &(struct kp_oomwords){.device = device_name(oom, name),
                                          .asked = oom->bytes,
                                          .live = o->live,
                                          .most = most ? most->bytes : 0,
                                          .limit = limit != UINT64_MAX ? limit : 0,
                                          .cached = oom->device_type ? cached : 0,
                                          .at = kp_callsite_get(oom->site),
                                          .most_at = most ? kp_callsite_get((uint32_t)(most - o->sums)) : NULL});
}

static int text_make(struct oomfile *o, const struct kp_run_oom *oom, uint64_t unkept)
{
    struct kp_json *const j = &o->json;
    char name[24];
    const char *by = NULL;
    const uint64_t limit = oom->device_type ? UINT64_MAX : limit_find(&by);
    words_make(o, oom, limit);
    j->used = 0;
    j->error = 0;
    kp_json_lit(j, "{\"oom\":1,");
    kp_where_process(j, "oom");
    kp_json_fmt(j, ",\"text\":\"%s\",\"device\":\"%s\",\"asked\":%lu,\"asked_at\":{", o->words, device_name(oom, name),
                oom->bytes);
    site_put(j, oom->site);
    kp_json_fmt(j, "},\"live\":%lu,\"blocks\":%u,\"unkept\":%lu", o->live, o->blocks, unkept);
    if (oom->device_type) kp_json_fmt(j, ",\"allocated\":%lu,\"reserved\":%lu", oom->allocated, oom->reserved);
    if (limit != UINT64_MAX) kp_json_fmt(j, ",\"limit\":%lu,\"limit_by\":\"%s\"", limit, by);
    sites_put(o);
    largest_put(o);
    kp_json_lit(j, "}\n");
    return j->error;
}

static int file_keep(struct oomfile *o)
{
    const struct kp_where_text text = {.at = o->json.buf, .used = o->json.used};
    if (*o->last && (files >= FILES_MOST || strcmp(o->path, o->last) == 0)) kp_io_unlink(o->last);
    const int rc = kp_where_keep(&text, o->path);
    files += rc == 0;
    kp_fmt(o->last, sizeof o->last, "%s", o->path);
    return rc;
}

static void tell(const struct oomfile *o, int rc)
{
    kp_log(0, "%s (%s%s)", o->words, rc == 0 ? "by line: kprof memory " : "no file: ",
           rc == 0 ? kp_path_display(o->path) : kp_log_error_text(rc));
}

/* ---- who writes ---- */

static bool written(void)
{
    uint32_t from = MADE;
    if (!kp_cas_acq_rel(&state, &from, WRITING)) return false;
    tell(out, file_keep(out));
    kp_store_release(&state, FREE); /* pairs with: kp_oomfile_make, kp_oomfile_wait */
    kp_io_wake(&state);
    return true;
}

bool kp_oomfile_turn(void) { return out && written(); }

static int look(struct oomfile *o, const struct kp_run_oom *oom)
{
    memset(o->sums, 0, sizeof o->sums);
    memset(o->largest, 0, sizeof o->largest);
    o->live = o->blocks = 0;
    o->step = kp_steps_seen();
    o->device = oom->device_type ? (uint16_t)(oom->device_type | (uint8_t)oom->device << 8) : 0;
    const uint64_t unkept = kp_torch_blocks(block_add, o);
    kp_where_path(o->path, "oom");
    return text_make(o, oom, unkept);
}

bool kp_oomfile_make(const struct kp_run_oom *oom)
{
    uint32_t none = FREE;
    if (!out || !(kp_gate_get() & KP_GATE_ON) || !kp_cas_acq_rel(&state, &none, LOOKING)) return false;
    const int rc = look(out, oom);
    kp_run_set_out_of_memory(out->words, out->step);
    if (rc != 0) tell(out, rc);
    kp_store_release(&state, rc == 0 ? MADE : FREE); /* pairs with: written, kp_oomfile_make */
    return rc == 0;
}

void kp_oomfile_wait(void)
{
    const uint64_t until_ms = kp_clock_ms() + WAIT_MS;
    uint32_t now;
    while ((now = kp_load_acquire(&state)) >= MADE && kp_clock_ms() < until_ms) /* pairs with: written */
        kp_io_wait(&state, now, WAIT_MS * UINT64_C(1000000));
    if (now >= MADE) kp_log(0, "%s (its file waits for the folder %s)", out->words, kp_path_display(kp_run_out_dir()));
}

void kp_oomfile_forget(void)
{
    kp_store_relaxed(&state, FREE);
    files = 0;
    if (out) out->last[0] = '\0'; /* the parent's */
}
