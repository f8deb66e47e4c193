// SPDX-License-Identifier: Apache-2.0
/*
 * heapview.c - finds the key kprof_heap of a trace and shows it: totals, leaks, peak, the sites that allocate most
 *
 * export/write/heap/allocations.c writes the key behind all events, on its own line. So it is found without parsing the
 * events, since a line break inside a JSON string is escaped.
 */
#include "export/answers/heapview/heapview.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_jsonread.h"
#include "collector/base/kp_jsonvalue.h"
#include "collector/base/kp_order.h"
#include "collector/base/kp_path.h"
#include "export/read/files/budget.h"
#include "export/show/say.h"
#include "export/answers/heapview/heapfold.h"
#include "export/write/names/shorten.h"
#include "export/read/parse/kineto_parse.h"
#include "export/read/frames/ownline.h"
#include "export/show/fields.h"
#include "export/show/plain.h"
#include "export/show/units.h"

#define KEY "\n  \"kprof_heap\": "
#define BEHIND ",\n  \"traceName\""

enum {
    FRAMES_SHOWN = 12,
    FRAMES_BESIDE = 3, /* behind the program's own line, which says where: its callers say little more */
    FEW_ROWS = 5,
    FEWER_ROWS = 3, /* where --leaks tells more: the first rows are of the start-up */
    DEEPEST = 64,
    PLACES_MOST = 64,
    NAME_BYTES = 4096,
    FEW_VALUES = 65536,
    MODULES_MOST = 4096
};

struct view_text {
    char *bytes;
    size_t used, capacity;
};

struct site {
    long long allocations, bytes, peak_blocks, peak_bytes, live_blocks, live_bytes, kept_blocks, kept_bytes;
    size_t stack, stack_n; /* of the object's frames */
    uint32_t frame;        /* of a profile, in place of `stack` */
};

struct heap_module {
    const char *path, *build_id; /* NULL: not told */
};

/* The object's lists. Texts lie in `plain`, without escapes. */
struct heap_lists {
    struct kp_jsonvalue object;
    bool is_traced; /* it has sites */
    char *plain;
    size_t used;
    const char **frames; /* of all sites; NULL: no text */
    struct site *sites;
    struct heap_module *modules;
    size_t frame_count, frame_room, site_count, site_room, module_count, module_room;
};

static void text_add(struct view_text *t, const char *bytes, size_t n)
{
    t->bytes = kp_kineto_grow(t->bytes, &t->capacity, t->used + n + 1, 1);
    memcpy(t->bytes + t->used, bytes, n);
    t->used += n;
    t->bytes[t->used] = 0;
}

/* Drops what lies before the key; until it is found, all but what may be its beginning. */
static bool key_find(struct view_text *t)
{
    char *at = t->used ? memmem(t->bytes, t->used, KEY, sizeof KEY - 1) : NULL;
    size_t keep = t->used < sizeof KEY ? t->used : sizeof KEY;
    const char *from = at ? at + sizeof KEY - 1 : t->bytes + t->used - keep;
    if (at) keep = t->used - (size_t)(from - t->bytes);
    if (t->used) memmove(t->bytes, from, keep);
    t->used = keep;
    return at != NULL;
}

struct key_search {
    struct view_text text;
    bool is_found;
};

static int piece_take(void *context, const char *bytes, size_t n)
{
    struct key_search *f = context;
    const uint64_t most = kp_budget_now()->memory / 16;
    if (most && f->text.used + n > most) return -ENOMEM;
    text_add(&f->text, bytes, n);
    f->is_found = f->is_found || key_find(&f->text);
    return 0;
}

/* The object's text, or NULL; to be freed. */
static char *object_read(const struct kp_texts *from)
{
    struct key_search f = {0};
    char why[512], *end = NULL;
    const int rc = from->each(from->from, piece_take, &f, why, sizeof why);
    if (f.is_found && !rc) {
        f.text.bytes[f.text.used] = 0;
        end = strstr(f.text.bytes, BEHIND);
    }
    if (rc == -ENOMEM) kp_cli_fail("memory", "the host's heap in this trace: %s", kp_budget_explain(rc));
    if (end) {
        *end = 0;
        return f.text.bytes;
    }
    free(f.text.bytes);
    return NULL;
}

static long long number(struct kp_jsonvalue object, const char *key)
{
    const struct kp_jsonvalue v = kp_jsonvalue_member(object, key);
    char text[24], *end;
    if (!v.bytes || v.bytes >= sizeof text) return 0;
    memcpy(text, v.at, v.bytes);
    text[v.bytes] = 0;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    return *end || errno ? 0 : value;
}

/* Keeps a text, which is no longer than it is written. NULL: it is none. */
static const char *text_keep(struct heap_lists *h, struct kp_jsonvalue v)
{
    char *const to = h->plain + h->used;
    if (!kp_jsonvalue_is_string(v)) return NULL;
    h->used += kp_jsonvalue_text(to, v.bytes + 4, v) + 1;
    return to;
}

static void site_read(struct heap_lists *h, struct kp_jsonvalue v)
{
    const struct kp_jsonvalue stack = kp_jsonvalue_member(v, "stack");
    struct kp_jsonvalue frame;
    struct site *const s = KP_KINETO_NEXT(h->sites, h->site_count, h->site_room);
    *s = (struct site){.allocations = number(v, "allocations"),
                       .bytes = number(v, "bytes"),
                       .peak_blocks = number(v, "peak_blocks"),
                       .peak_bytes = number(v, "peak_bytes"),
                       .live_blocks = number(v, "live_blocks"),
                       .live_bytes = number(v, "live_bytes"),
                       .stack = h->frame_count};
    for (const char *at = NULL; kp_jsonvalue_element(stack, &at, &frame); s->stack_n++)
        *KP_KINETO_NEXT(h->frames, h->frame_count, h->frame_room) = text_keep(h, frame);
}

static void lists_fini(struct heap_lists *h)
{
    free(h->plain);
    free(h->frames);
    free(h->sites);
    free(h->modules);
}

/* False: the text is no JSON. */
static bool lists_read(struct heap_lists *h, const char *text)
{
    const size_t bytes = strlen(text);
    size_t offset;
    const char *why;
    struct kp_jsonvalue v;
    *h = (struct heap_lists){.object = {text, bytes}};
    if (kp_jsonread_check(text, bytes, &offset, &why) != 0) return false;
    h->plain = kp_kineto_room(bytes + 8, 1);
    const struct kp_jsonvalue sites = kp_jsonvalue_member(h->object, "sites");
    const struct kp_jsonvalue modules = kp_jsonvalue_member(h->object, "modules");
    h->is_traced = sites.at && *sites.at == '[';
    for (const char *at = NULL; kp_jsonvalue_element(sites, &at, &v);) site_read(h, v);
    for (const char *at = NULL; kp_jsonvalue_element(modules, &at, &v);) {
        struct heap_module *const m = KP_KINETO_NEXT(h->modules, h->module_count, h->module_room);
        m->path = text_keep(h, kp_jsonvalue_member(v, "path"));
        m->build_id = text_keep(h, kp_jsonvalue_member(v, "build_id"));
    }
    return true;
}

KP_ORDER_DOWN(by_live, struct site, live_bytes)

KP_ORDER_DOWN(by_kept, struct site, kept_bytes)

KP_ORDER_DOWN(by_peak, struct site, peak_bytes)

KP_ORDER_DOWN(by_count, struct site, allocations)

/* ---- frames ---- */

struct view {
    FILE *out;
    const struct kp_places *places;   /* NULL: none */
    const struct heap_lists *heap;    /* NULL: the profile alone */
    const struct kp_profile *profile; /* NULL: the trace alone */
    const char *installed;            /* what the trace lists, or NULL */
};

/*
 * Finds the functions at FILE+0xOFFSET, a return address. Of several files of that path the first with a result counts.
 */
static int places_find(const struct view *v, const char *text, struct kp_place *of, char *path, size_t path_bytes)
{
    const char *plus = strrchr(text, '+');
    const size_t n = v->heap ? v->heap->module_count : 0;
    int found = 0;
    if (!v->places || !plus || plus == text) return 0;
    snprintf(path, path_bytes, "%.*s", (int)(plus - text), text);
    const uint64_t offset = strtoull(plus + 1, NULL, 16);
    for (size_t i = 0; i < n && i < MODULES_MOST && !found && offset; i++) {
        const char *its = v->heap->modules[i].path, *id = v->heap->modules[i].build_id;
        struct kp_frame frame = {.path = path, .offset = offset};
        if (!its || !id || strcmp(its, path) != 0 || strlen(id) >= sizeof frame.build_id) continue;
        snprintf(frame.build_id, sizeof frame.build_id, "%s", id);
        found = v->places->find(v->places->context, &frame, offset - 1, of, PLACES_MOST);
    }
    return found;
}

static const char *name_of(const struct view *v, const struct kp_place *place, char *out, size_t bytes)
{
    const bool is_mangled = place->function && v->places && v->places->plain;
    const char *plain = is_mangled ? v->places->plain(v->places->context, place->function) : place->function;
    if (!plain || strlen(plain) >= bytes) return place->function ? place->function : "?";
    (void)kp_symbol_short(plain, out, bytes);
    return out;
}

/* Without a place the text stays. */
static void places_print(const struct view *v, const struct kp_place *of, int n, const char *path, const char *text)
{
    char name[NAME_BYTES];
    for (int i = 0; i < n; i++) {
        kp_plain_fmt(v->out, "        %s", name_of(v, &of[i], name, sizeof name));
        if (of[i].file && of[i].line) kp_plain_fmt(v->out, " at %s:%u", of[i].file, of[i].line);
        fputs(of[i].is_inlined ? " (inlined)" : " in ", v->out);
        if (!of[i].is_inlined) kp_plain_put(v->out, of[i].file ? kp_path_base(path) : text);
        fputc('\n', v->out);
    }
    if (!n) kp_plain_fmt(v->out, "        %s\n", text);
}

static void frame_print(const struct view *v, const char *text)
{
    struct kp_place of[PLACES_MOST];
    char path[NAME_BYTES];
    const int n = places_find(v, text, of, path, sizeof path);
    places_print(v, of, n, path, text);
}

/* A profile's address: by debug files, else by the name that the profile has. */
static void address_print(const struct view *v, const struct kp_profile_address *a)
{
    const struct kp_profile *p = v->profile;
    struct kp_place of[PLACES_MOST];
    char text[NAME_BYTES];
    const char *path = kp_profile_text(p, a->module);
    int n = v->places ? kp_profile_places(p, a, v->places, of, PLACES_MOST) : 0;
    if (v->places && n <= 0 && a->n && p->places[a->at].function) {
        of[0] = (struct kp_place){.function = kp_profile_text(p, p->places[a->at].function)};
        n = 1;
    }
    if (kp_profile_is_python(p, a)) {
        const struct kp_profile_place *place = &p->places[a->at];
        of[0] = (struct kp_place){.function = kp_profile_text(p, place->function),
                                  .file = kp_profile_text(p, place->file),
                                  .line = place->line};
        n = 1;
    }
    snprintf(text, sizeof text, "%s%s0x%llx", path, *path ? "+" : "", (unsigned long long)a->offset);
    places_print(v, of, n > 0 ? n : 0, path, text);
}

static bool shows_interpreter; /* as the command's flags have it */

void kp_heapview_show_interpreter(void) { shows_interpreter = true; }

/* The outermost function of an address: what the file has, else what debug files have. NULL: not known. */
static const char *function_of(const struct view *v, const struct kp_profile_address *a)
{
    const struct kp_profile *p = v->profile;
    struct kp_place of[PLACES_MOST];
    if (a->n) return kp_profile_text(p, p->places[a->at + a->n - 1].function);
    const int n = v->places ? kp_profile_places(p, a, v->places, of, PLACES_MOST) : 0;
    return n > 0 ? of[n - 1].function : NULL;
}

/* The innermost frames are shown, and as many of Python, which may lie far out. */
struct stack_shown {
    size_t most, n, python, left_out; /* left_out: since the last that was shown */
};

static struct stack_shown shown_begin(bool has_own_line)
{
    return (struct stack_shown){.most = has_own_line && !shows_interpreter ? FRAMES_BESIDE : FRAMES_SHOWN};
}

static bool is_shown(struct stack_shown *s, FILE *out, bool is_python)
{
    const bool is = s->n++ < s->most || (is_python && s->python < s->most);
    s->python += is_python;
    if (!is) s->left_out++;
    if (!is || !s->left_out) return is;
    fprintf(out, "        (%zu left out)\n", s->left_out);
    s->left_out = 0;
    return true;
}

/* The program's own line comes first, since it may lie far out, around functions of the interpreter. False: not own. */
static bool own_line_print(const struct view *v, const char *function, const char *file, unsigned long line)
{
    if (!kp_ownline_is_file(v->profile ? v->profile->installed : v->installed, file)) return false;
    kp_plain_fmt(v->out, "        your line: %s at %s:%lu\n", function, file, line);
    return true;
}

/* A line for the frames that were folded, where no frame of Python stands for them. */
static void folded_print(FILE *out, struct kp_heapfold *fold, struct stack_shown *shown, bool has_python)
{
    const size_t n = fold->run;
    fold->run = 0;
    if (n && !has_python && is_shown(shown, out, false))
        fprintf(out, "        [interpreter, %zu frame%s]\n", n, kp_units_s(n));
}

static void profile_stack_print(const struct view *v, uint32_t frame)
{
    const struct kp_profile *p = v->profile;
    struct kp_heapfold fold = {.is_all = shows_interpreter};
    const bool of_python = kp_profile_has_python(p, frame);
    const struct kp_profile_place *own = kp_profile_own_line(p, frame);
    struct stack_shown shown = shown_begin(
        own && own_line_print(v, kp_profile_text(p, own->function), kp_profile_text(p, own->file), own->line));
    if (!frame) fprintf(v->out, "        call stack not known\n");
    for (; frame; frame = p->frames[frame - 1].around) {
        const struct kp_profile_address *a = &p->addresses[p->frames[frame - 1].address - 1];
        const bool is_python = kp_profile_is_python(p, a);
        if (!is_python && kp_heapfold_take(&fold, kp_profile_text(p, a->module), function_of(v, a))) continue;
        folded_print(v->out, &fold, &shown, of_python);
        if (is_python) kp_heapfold_pass(&fold);
        if (is_shown(&shown, v->out, is_python)) address_print(v, a);
    }
    folded_print(v->out, &fold, &shown, of_python);
    if (shown.left_out) fprintf(v->out, "        and %zu more\n", shown.left_out);
}

void kp_heapview_stack(FILE *out, const struct kp_profile *p, const struct kp_places *places, uint32_t frame)
{
    profile_stack_print(&(struct view){.out = out, .places = places, .profile = p}, frame);
}

/* "file.py(12): f" among the frames. */
static bool stack_own_line(const struct view *v, const char *const *frames, size_t n)
{
    char file[NAME_BYTES];
    for (size_t i = 0; i < n; i++) {
        const char *frame = frames[i];
        const char *end = frame ? strstr(frame, "): ") : NULL, *bracket = end;
        while (bracket && bracket > frame && *bracket != '(') bracket--;
        if (!bracket || bracket == frame) continue;
        snprintf(file, sizeof file, "%.*s", (int)(bracket - frame), frame);
        if (own_line_print(v, end + 3, file, strtoul(bracket + 1, NULL, 10))) return true;
    }
    return false;
}

static bool is_python_text(const char *frame) { return frame && strstr(frame, "): ") != NULL; }

/* As kp_heapfold_take, of FILE+0xOFFSET. */
static bool text_fold(const struct view *v, struct kp_heapfold *fold, const char *frame)
{
    struct kp_place of[PLACES_MOST];
    char path[NAME_BYTES];
    const char *plus = strrchr(frame, '+');
    const int n = places_find(v, frame, of, path, sizeof path);
    if (!plus) return false;
    snprintf(path, sizeof path, "%.*s", (int)(plus - frame), frame);
    return kp_heapfold_take(fold, path, n > 0 ? of[n - 1].function : NULL);
}

static void stack_print(const struct view *v, const struct site *site)
{
    const size_t n = site->stack_n;
    const char *const *const frames = n ? v->heap->frames + site->stack : NULL;
    struct kp_heapfold fold = {.is_all = shows_interpreter};
    bool of_python = false;
    for (size_t i = 0; i < n && !of_python; i++) of_python = is_python_text(frames[i]);
    struct stack_shown shown = shown_begin(stack_own_line(v, frames, n));
    for (size_t i = 0; i < n; i++) {
        const char *frame = frames[i] ? frames[i] : "?";
        const bool is_python = is_python_text(frame);
        if (!is_python && text_fold(v, &fold, frame)) continue;
        folded_print(v->out, &fold, &shown, of_python);
        if (is_python) kp_heapfold_pass(&fold);
        if (is_shown(&shown, v->out, is_python)) frame_print(v, frame);
    }
    folded_print(v->out, &fold, &shown, of_python);
    if (shown.left_out) fprintf(v->out, "        and %zu more\n", shown.left_out);
    if (!n) fprintf(v->out, "        call stack not known\n");
}

/* ---- tables ---- */

enum column { KEPT, LIVE, PEAK, ALL };

static void table_print(const struct view *v, const char *title, struct site *sites, size_t n, enum column column,
                        long row_limit)
{
    static int (*const orders[])(const void *, const void *) = {by_kept, by_live, by_peak, by_count};
    size_t rows = row_limit < 0 ? n : (size_t)row_limit, shown = 0, left = 0;
    FILE *out = v->out;
    if (n) qsort(sites, n, sizeof *sites, orders[column]);
    fprintf(out, "\n%s\n", title);
    for (size_t i = 0; i < n; i++) {
        const struct site *s = &sites[i];
        const long long of_bytes[] = {s->kept_bytes, s->live_bytes, s->peak_bytes, s->bytes};
        const long long of_blocks[] = {s->kept_blocks, s->live_blocks, s->peak_blocks, s->allocations};
        const long long bytes = of_bytes[column], blocks = of_blocks[column];
        if (!blocks) continue;
        if (shown == rows) {
            left++;
            continue;
        }
        fprintf(out, "    %s in %lld block%s\n", kp_units_size(bytes), blocks, kp_units_s((uint64_t)blocks));
        if (v->profile) profile_stack_print(v, s->frame);
        else stack_print(v, s);
        shown++;
    }
    if (left) fprintf(out, "    and %zu more call stack%s: -n 0 shows all\n", left, kp_units_s(left));
    if (!shown) fprintf(out, "    none\n");
}

static struct site *sites_of_profile(const struct kp_profile *p, size_t *n)
{
    struct site *sites = kp_kineto_room(p->sites_n + 1, sizeof *sites);
    *n = p->sites_n;
    for (size_t i = 0; i < *n; i++) {
        const struct kp_profile_site *s = &p->sites[i];
        sites[i] = (struct site){.allocations = (long long)s->allocations,
                                 .bytes = (long long)s->bytes,
                                 .peak_blocks = (long long)s->peak_blocks,
                                 .peak_bytes = (long long)s->peak_bytes,
                                 .live_blocks = (long long)s->live_blocks,
                                 .live_bytes = (long long)s->live_bytes,
                                 .kept_blocks = (long long)s->kept_blocks,
                                 .kept_bytes = (long long)s->kept_bytes,
                                 .frame = s->frame};
    }
    return sites;
}

static void tables_print(const struct view *v, struct site *sites, size_t n, long row_limit)
{
    const struct kp_profile *p = v->profile;
    const bool has_leaks = p && p->steps_n > 1;
    const long rows = row_limit ? row_limit : has_leaks ? FEWER_ROWS : FEW_ROWS;
    if (p) kp_arenaview_write(v->out, p, 0, p->steps_n, KP_ARENAS_ALL);
    if (has_leaks) fprintf(v->out, "what the steps left, without the start-up: kprof memory --leaks\n");
    if (p && p->is_python_over) {
        fprintf(v->out, "before Python freed what the program kept: %s in %llu block%s\n",
                kp_units_size((int64_t)p->total.kept_bytes), (unsigned long long)p->total.kept_blocks,
                kp_units_s(p->total.kept_blocks));
        table_print(v, "what the program kept until Python ended, most bytes first:", sites, n, KEPT, rows);
    }
    table_print(v, "still there at the end, most bytes first:", sites, n, LIVE, rows);
    table_print(v, "there at the peak, most bytes first:", sites, n, PEAK, rows);
    table_print(v, "most allocations, all of the window:", sites, n, ALL, rows);
}

void kp_heapview_profile(FILE *out, const struct kp_profile *p, long row_limit, const struct kp_places *places)
{
    const struct view v = {.out = out, .places = places, .profile = p};
    const struct kp_profile_site *t = &p->total;
    const uint64_t frees = t->allocations - t->live_blocks;
    size_t n;
    struct site *sites = sites_of_profile(p, &n);
    fprintf(out, "host heap: %llu allocation%s of %s in all, %llu free%s\n", (unsigned long long)t->allocations,
            kp_units_s(t->allocations), kp_units_size((int64_t)t->bytes), (unsigned long long)frees, kp_units_s(frees));
    fprintf(out, "peak: %s; at the end %s in %llu block%s are still there\n", kp_units_size((int64_t)t->peak_bytes),
            kp_units_size((int64_t)t->live_bytes), (unsigned long long)t->live_blocks, kp_units_s(t->live_blocks));
    tables_print(&v, sites, n, row_limit);
    free(sites);
}

static void head_print(FILE *out, struct kp_jsonvalue object)
{
    const long long allocations = number(object, "allocations"), frees = number(object, "frees");
    fprintf(out, "host heap: %lld allocation%s of %s in all, %lld free%s\n", allocations,
            kp_units_s((uint64_t)allocations), kp_units_size(number(object, "bytes")), frees,
            kp_units_s((uint64_t)frees));
}

static void peak_print(FILE *out, struct kp_jsonvalue object)
{
    const long long live = number(object, "live_blocks"), older = number(object, "unknown_frees"),
                    lost = number(object, "unkept_blocks");
    fprintf(out, "peak: %s; at the end %s in %lld block%s are still there; ",
            kp_units_size(number(object, "peak_bytes")), kp_units_size(number(object, "live_bytes")), live,
            kp_units_s((uint64_t)live));
    fprintf(out, "%lld free%s of blocks taken before\n", older, kp_units_s((uint64_t)older));
    if (lost)
        fprintf(out, "%lld block%s could not be followed: counted as allocations, but not at the peak or at the end\n",
                lost, kp_units_s((uint64_t)lost));
}

static void object_print(const struct view *v, long row_limit)
{
    const struct kp_jsonvalue object = v->heap->object;
    FILE *out = v->out;
    size_t n = v->heap->site_count;
    struct site *of_profile = v->profile ? sites_of_profile(v->profile, &n) : NULL;
    struct site *sites = v->profile ? of_profile : v->heap->sites;
    head_print(out, object);
    if (!v->heap->is_traced)
        fprintf(out, "it grew by %s; record with kprof run --malloc trace for peak and leaks\n",
                kp_units_size(number(object, "live_bytes")));
    if (v->heap->is_traced) {
        peak_print(out, object);
        tables_print(v, sites, n, row_limit);
        if (!v->profile && number(object, "call_stacks") > (long long)n)
            fprintf(out, "\nthe trace has the largest %zu of %lld call stacks; NAME.heap.zst beside it has all\n", n,
                    number(object, "call_stacks"));
    }
    free(of_profile);
}

/*
 * Refuses text that write/heap did not make: it nests three levels deep, and values are short. A site takes 100 bytes
 * of memory, and a file may have any number of them.
 */
static bool is_ours(const char *text)
{
    size_t depth = 0, values = 0, at = 0;
    bool in_string = false;
    for (; text[at] && depth < DEEPEST; at++) {
        const char c = text[at];
        if (in_string && c == '\\' && text[at + 1]) at++;
        else if (c == '"') in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{')) depth++, values++;
        else if (!in_string && (c == ']' || c == '}') && depth) depth--;
        else if (!in_string && c == ',') values++;
    }
    return depth < DEEPEST && values < FEW_VALUES + at / 8;
}

/* ---- JSON ---- */

struct json_place {
    const struct view *view;
    struct kp_place of;
};
#define PLACE(F, IF)                                               \
    F(TEXT, function, name_of(r->view, &r->of, room, sizeof room)) \
    IF(r->of.file && r->of.line, TEXT, file, r->of.file)           \
    IF(r->of.file && r->of.line, WHOLE, line, r->of.line)          \
    IF(r->of.is_inlined, BOOL, inlined, true)
KP_FIELDS(place, struct json_place, PLACE)

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Each frame of all sites once. The caller frees the list. */
static const char **frames_list(const struct heap_lists *h, size_t *n)
{
    const char **of = kp_kineto_room(h->frame_count + 1, sizeof *of);
    size_t all = 0;
    *n = 0;
    for (size_t i = 0; i < h->frame_count; i++)
        if (h->frames[i]) of[all++] = h->frames[i];
    if (all) qsort(of, all, sizeof *of, by_text);
    for (size_t i = 0; i < all; i++)
        if (!*n || strcmp(of[*n - 1], of[i]) != 0) of[(*n)++] = of[i];
    return of;
}

/* Writes "kprof_frames" with a member for each FILE+0xOFFSET: its functions, innermost first. */
static void frames_json(struct kp_jsonout *j, const struct view *v)
{
    struct kp_place of[PLACES_MOST];
    char path[NAME_BYTES];
    size_t n;
    const char **frames = frames_list(v->heap, &n);
    kp_jsonout_open(j, "kprof_frames", '{');
    for (size_t i = 0; i < n; i++) {
        const int places = places_find(v, frames[i], of, path, sizeof path);
        if (!places) continue;
        kp_jsonout_line(j);
        kp_jsonout_open(j, frames[i], '[');
        for (int k = 0; k < places; k++) kp_fields_put(j, NULL, &place_fields, &(struct json_place){v, of[k]});
        kp_jsonout_close(j, ']');
    }
    kp_jsonout_close(j, '}');
    free(frames);
}

static void object_json(const struct view *v, const char *text)
{
    struct kp_jsonout *const j = KP_JSONOUT(v->out);
    kp_jsonout_key(j, "kprof_heap");
    kp_plain_json_raw(v->out, text);
    if (v->places) frames_json(j, v);
}

bool kp_heapview_write(FILE *out, const struct kp_texts *from, long row_limit, bool as_json,
                       const struct kp_places *places, const struct kp_profile *profile, const char *installed)
{
    char *const text = object_read(from);
    struct heap_lists heap = {.plain = NULL};
    const bool is_there = text && is_ours(text) && lists_read(&heap, text);
    const struct view v = {out, places, &heap, profile, installed};
    if (is_there && as_json) object_json(&v, text);
    else if (is_there) object_print(&v, row_limit);
    lists_fini(&heap);
    free(text);
    return is_there;
}
