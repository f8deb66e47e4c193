// SPDX-License-Identifier: Apache-2.0
/*
 * heapprofile.c - reads NAME.heap.zst, and plays its blocks for each call stack's sums, leaks and the peak
 *
 * The file is of any origin: a number that leads nowhere ends the reading. A frame's caller comes before it, so a stack
 * has no circle. A new peak does not walk all sites, as in export/write/heap/heapsites.c.
 */
#include "export/read/folder/heapprofile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/files/budget.h"
#include "export/read/folder/trace_source.h"
#include "export/read/parse/kineto_parse.h"

enum { LINE_MOST = 1 << 20, NUMBERS_MOST = 256, SIZED_TEXTS = 3, NO_SIZE = -1, ARENAS_MOST = 1 << 16 };
#define IN_STEP SIZE_MAX /* sizes_end of a step that goes on */

struct profile_read {
    struct kp_profile *p;
    uint32_t *site_of; /* by frame: its site + 1; [0]: of blocks without a stack */
    size_t site_of_cap;
    char *line; /* of which the end has not come yet */
    size_t line_n, line_cap;
    uint64_t lines, version, epoch;
    int64_t last; /* the size that was taken last, or NO_SIZE */
};

/* A new last item of a list. */
#define ADD(p, list) KP_KINETO_NEXT((p)->list, (p)->list##_n, (p)->list##_cap)

uint32_t kp_profile_text_add(struct kp_profile *p, const char *text, size_t bytes)
{
    *ADD(p, texts) = kp_kineto_print("%.*s", (int)bytes, text);
    return (uint32_t)p->texts_n;
}

/* --- numbers of a line --- */

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool number_next(const char **at, uint64_t *out)
{
    const char *c = *at;
    *out = 0;
    while (*c == ' ') c++;
    if (digit(*c) < 0) return false;
    for (; digit(*c) >= 0; c++) *out = *out << 4 | (uint64_t)digit(*c);
    *at = c;
    return true;
}

static int numbers_read(const char *at, uint64_t *of, int most)
{
    int n = 0;
    while (n < most && number_next(&at, &of[n])) n++;
    return n;
}

/* --- texts, addresses, frames, sizes --- */

static bool text_take(struct profile_read *r, const char *at)
{
    uint64_t bytes;
    if (r->version >= SIZED_TEXTS) {
        if (!number_next(&at, &bytes) || *at != ' ') return false;
        at++;
    }
    kp_profile_text_add(r->p, at, strlen(at));
    return true;
}

/* The blocks of the step in progress that are still there. */
static void step_end(struct kp_profile *p)
{
    struct kp_profile_step *step = p->steps_n ? &p->steps[p->steps_n - 1] : NULL;
    if (!step || step->sizes_end != IN_STEP) return;
    step->sizes_end = p->sizes_n;
    for (size_t i = step->sizes; i < step->sizes_end; i++) {
        step->left_blocks += p->sizes[i].live;
        step->left_bytes += p->sizes[i].live * p->sizes[i].bytes;
    }
}

/* "step NUMBER", or "step" when it is over. */
static void step_take(struct kp_profile *p, const char *at)
{
    uint64_t number;
    step_end(p);
    if (!number_next(&at, &number) || p->is_python_over) return; /* by the clock steps go on while Python ends */
    p->marks++;
    *ADD(p, steps) = (struct kp_profile_step){.number = number, .sizes = p->sizes_n, .sizes_end = IN_STEP};
}

/* Called before the number of live blocks changes: keeps what it was when the last step began. */
static void size_touch(const struct kp_profile *p, struct kp_profile_size *size)
{
    if (size->mark == p->marks) return;
    size->mark = p->marks;
    size->at_mark = size->live;
}

/* The program is over. It kept all that is there now. */
static void kept_note(struct kp_profile *p)
{
    for (size_t i = 0; i < p->sizes_n; i++) p->sizes[i].kept = p->sizes[i].live;
    for (size_t i = 0; i <= p->sites_n; i++) {
        struct kp_profile_site *s = i < p->sites_n ? &p->sites[i] : &p->total;
        s->kept_blocks = s->live_blocks;
        s->kept_bytes = s->live_bytes;
    }
}

static void python_ends(struct kp_profile *p)
{
    if (p->is_python_over) return;
    p->is_python_over = true;
    kept_note(p);
    step_end(p); /* one that the end cut short */
}

/* "+ ADDRESS BYTES FRAME" or "- ADDRESS". */
static void arena_take(struct kp_profile *p, const char *at)
{
    uint64_t of[3];
    const int n = at[0] ? numbers_read(at + 1, of, 3) : 0;
    if (at[0] == '+' && n == 3 && of[2] <= p->frames_n && p->arenas_n < ARENAS_MOST) {
        const bool is_in_step = p->steps_n && p->steps[p->steps_n - 1].sizes_end == IN_STEP;
        *ADD(p, arenas) = (struct kp_profile_arena){.address = of[0],
                                                    .bytes = of[1],
                                                    .frame = (uint32_t)of[2],
                                                    .step = is_in_step ? (uint32_t)p->steps_n - 1 : UINT32_MAX};
    }
    if (at[0] != '-' || n != 1 || p->is_python_over) return;
    for (size_t i = p->arenas_n; i-- > 0;)
        if (p->arenas[i].address == of[0] && !p->arenas[i].is_unmapped) {
            p->arenas[i].is_unmapped = true;
            return;
        }
}

/* "installed torch,numpy": told once, at the head. */
static void installed_take(struct kp_profile *p, const char *list)
{
    if (!p->installed) p->installed = strdup(list);
}

/* The text behind a '#': "NUMBER build ID", "installed ..", "step NUMBER", "arena .." or "python ends". Other comments
 * mean nothing. */
static void comment_take(struct kp_profile *p, const char *at)
{
    uint64_t number;
    if (strncmp(at, "installed ", 10) == 0) installed_take(p, at + 10);
    if (strncmp(at, "arena ", 6) == 0) arena_take(p, at + 6);
    if (strcmp(at, "python ends") == 0) python_ends(p);
    if (strncmp(at, "step", 4) == 0) step_take(p, at + 4);
    if (!number_next(&at, &number) || strncmp(at, " build ", 7) != 0 || !number || number > p->texts_n) return;
    while (p->builds_n < number) *ADD(p, builds) = NULL;
    free(p->builds[number - 1]);
    p->builds[number - 1] = strdup(at + 7);
}

static bool address_take(struct kp_profile *p, const char *at)
{
    uint64_t of[NUMBERS_MOST];
    const int n = numbers_read(at, of, NUMBERS_MOST);
    if (n < 2 || of[1] > p->texts_n) return false;
    struct kp_profile_address *a = ADD(p, addresses);
    *a = (struct kp_profile_address){of[0], (uint32_t)of[1], (uint32_t)p->places_n, 0};
    for (int i = 2; i + 2 < n; i += 3, a->n++) {
        if (of[i] > p->texts_n || of[i + 1] > p->texts_n) return false;
        *ADD(p, places) = (struct kp_profile_place){(uint32_t)of[i], (uint32_t)of[i + 1], (uint32_t)of[i + 2]};
    }
    return true;
}

static bool frame_take(struct kp_profile *p, const char *at)
{
    uint64_t of[2];
    if (numbers_read(at, of, 2) != 2 || !of[0] || of[0] > p->addresses_n || of[1] > p->frames_n) return false;
    *ADD(p, frames) = (struct kp_profile_frame){(uint32_t)of[0], (uint32_t)of[1]};
    return true;
}

static bool size_take(struct profile_read *r, const char *at)
{
    struct kp_profile *p = r->p;
    uint64_t of[2];
    if (numbers_read(at, of, 2) != 2 || of[1] > p->frames_n) return false;
    r->site_of = kp_kineto_grow_zeros(r->site_of, &r->site_of_cap, p->frames_n + 1, sizeof *r->site_of);
    uint32_t *site = &r->site_of[of[1]];
    if (!*site) {
        *ADD(p, sites) = (struct kp_profile_site){.frame = (uint32_t)of[1], .epoch = r->epoch};
        *site = (uint32_t)p->sites_n;
    }
    *ADD(p, sizes) = (struct kp_profile_size){.bytes = of[0], .site = *site - 1};
    return true;
}

/* --- blocks --- */

/* Before a site changes: if it did not change since the last peak, its state then is its state now. */
static void peak_note(const struct profile_read *r, struct kp_profile_site *s)
{
    if (s->epoch == r->epoch) return;
    s->peak_blocks = s->live_blocks;
    s->peak_bytes = s->live_bytes;
    s->epoch = r->epoch;
}

static bool taken_take(struct profile_read *r, const char *at)
{
    struct kp_profile *p = r->p;
    struct kp_profile_site *const total = &p->total;
    uint64_t number;
    if (!number_next(&at, &number) || number >= p->sizes_n) return false;
    const uint64_t bytes = p->sizes[number].bytes;
    struct kp_profile_site *const both[] = {&p->sites[p->sizes[number].site], total};
    peak_note(r, both[0]);
    for (int i = 0; i < 2; i++) {
        both[i]->allocations++;
        both[i]->bytes += bytes;
        both[i]->live_blocks++;
        both[i]->live_bytes += bytes;
    }
    size_touch(p, &p->sizes[number]);
    p->sizes[number].live++;
    r->last = (int64_t)number;
    if (total->live_bytes <= total->peak_bytes) return true;
    total->peak_bytes = total->live_bytes;
    total->peak_blocks = total->live_blocks;
    r->epoch++;
    return true;
}

static bool given_take(struct profile_read *r, const char *at)
{
    struct kp_profile *p = r->p;
    uint64_t number;
    if (!number_next(&at, &number) || number >= p->sizes_n) return false;
    struct kp_profile_site *const both[] = {&p->sites[p->sizes[number].site], &p->total};
    if (!both[0]->live_blocks) return false;
    size_touch(p, &p->sizes[number]);
    if (p->sizes[number].live) p->sizes[number].live--;
    peak_note(r, both[0]);
    for (int i = 0; i < 2; i++) {
        both[i]->live_blocks--;
        both[i]->live_bytes -= p->sizes[number].bytes;
        if (r->last != (int64_t)number) continue;
        both[i]->temporary++;
        both[i]->temporary_bytes += p->sizes[number].bytes;
    }
    r->last = NO_SIZE;
    return true;
}

/* --- lines --- */

static bool line_take(struct profile_read *r, const char *line)
{
    struct kp_profile *p = r->p;
    const char *at = line[0] && line[1] ? line + 2 : "";
    uint64_t of[2];
    switch (line[0]) {
    case 'v': return numbers_read(at, of, 2) == 2 && (r->version = of[1]) <= SIZED_TEXTS && of[1];
    case 's': return text_take(r, at);
    case '#': comment_take(p, at); return true;
    case 'i': return address_take(p, at);
    case 't': return frame_take(p, at);
    case 'a': return size_take(r, at);
    case '+': return taken_take(r, at);
    case '-': return given_take(r, at);
    case 'c': return number_next(&at, &p->ms);
    case 'X':
        free(p->program);
        p->program = strdup(at);
        return true;
    case 'x':
    case 'm': return false; /* heaptrack's raw form */
    default: return r->version != 0;
    }
}

static bool lines_take(struct profile_read *r, size_t end)
{
    char *at = r->line, *const stop = r->line + end;
    for (char *next; (next = memchr(at, '\n', (size_t)(stop - at))); at = next + 1) {
        *next = 0;
        r->lines++;
        if ((r->lines == 1 && at[0] != 'v') || !line_take(r, at)) return false;
    }
    r->line_n = (size_t)(stop - at);
    memmove(r->line, at, r->line_n);
    return r->line_n < LINE_MOST;
}

static int piece_take(void *context, const char *text, size_t bytes)
{
    struct profile_read *r = context;
    const int rc = kp_budget_text(bytes);
    if (rc) return rc;
    r->line = kp_kineto_grow(r->line, &r->line_cap, r->line_n + bytes + 1, 1);
    memcpy(r->line + r->line_n, text, bytes);
    return lines_take(r, r->line_n + bytes) ? 0 : -EINVAL;
}

/*
 * The blocks that steps left were there when the last step began. Later a function that returns gives back what its
 * locals kept, and the program what it had until its end.
 */
static void steps_kept(struct kp_profile *p)
{
    for (size_t i = 0; i + 1 < p->steps_n; i++)
        for (size_t k = p->steps[i].sizes; k < p->steps[i].sizes_end; k++) {
            struct kp_profile_size *const size = &p->sizes[k];
            size->kept = size->mark == p->marks ? size->at_mark : size->live;
        }
}

static void steps_settle(struct kp_profile *p)
{
    step_end(p);
    if (!p->is_python_over) kept_note(p);
    steps_kept(p);
    for (size_t i = 0; i < p->steps_n; i++)
        for (size_t k = p->steps[i].sizes; k < p->steps[i].sizes_end; k++) {
            p->steps[i].still_blocks += p->sizes[k].kept;
            p->steps[i].still_bytes += p->sizes[k].kept * p->sizes[k].bytes;
        }
}

int kp_profile_read(struct kp_profile **out, const struct kp_texts *from, const char *label, char *why,
                    size_t why_bytes)
{
    struct kp_profile *p = *out = kp_kineto_zeros(1, sizeof *p);
    struct profile_read r = {.p = p, .last = NO_SIZE};
    why[0] = 0;
    int rc = from->each(from->from, piece_take, &r, why, why_bytes);
    if (rc == 0 && !r.lines) rc = -EINVAL;
    if (rc && !why[0] && rc == -EINVAL)
        snprintf(why, why_bytes, "%s: line %llu is not one of a heap's profile", label, (unsigned long long)r.lines);
    else if (rc && !why[0]) snprintf(why, why_bytes, "%s: %s", label, kp_budget_explain(rc));
    for (size_t i = 0; i < p->sites_n; i++) peak_note(&r, &p->sites[i]);
    steps_settle(p);
    free(r.site_of);
    free(r.line);
    if (!rc) return 0;
    kp_profile_close(p);
    *out = NULL;
    return rc;
}

void kp_profile_close(struct kp_profile *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->texts_n; i++) free(p->texts[i]);
    for (size_t i = 0; i < p->builds_n; i++) free(p->builds[i]);
    free(p->texts);
    free(p->builds);
    free(p->addresses);
    free(p->places);
    free(p->frames);
    free(p->sites);
    free(p->sizes);
    free(p->steps);
    free(p->arenas);
    free(p->program);
    free(p->installed);
    free(p);
}

bool kp_profile_is(const char *path)
{
    return kp_input_has_end(path, ".heap.zst") || kp_input_has_end(path, ".heap.gz");
}

/* .heap.gz: of kprof until November 2026. */
bool kp_profile_find(char *out, size_t bytes, const char *path)
{
    static const char *const ends[] = {".heap.zst", ".heap.gz"};
    const char *const end = strstr(kp_path_base(path), ".pt.trace.json");
    if (kp_profile_is(path)) return snprintf(out, bytes, "%s", path) < (int)bytes;
    for (size_t i = 0; end && i < sizeof ends / sizeof *ends; i++)
        if (snprintf(out, bytes, "%.*s%s", (int)(end - path), path, ends[i]) < (int)bytes && access(out, R_OK) == 0)
            return true;
    return false;
}
