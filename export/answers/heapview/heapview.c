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

#include "collector/base/text/kp_jsonread.h"
#include "collector/base/text/kp_jsonvalue.h"
#include "collector/base/kp_order.h"
#include "collector/base/sys/kp_path.h"
#include "export/read/files/budget.h"
#include "export/show/say.h"
#include "export/answers/heapview/heapfold.h"
#include "export/write/names/shorten.h"
#include "export/read/parse/kineto_parse.h"
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
    FEW_VALUES = 65536
};

struct view_text {
    char *bytes;
    size_t used, capacity;
};

/* The object, and what it tells of call stacks as a profile. */
struct heap_object {
    struct kp_jsonvalue text;
    bool is_traced; /* it has sites */
    struct kp_profile *p;
    struct kp_strings *texts, *frames; /* their ids are the profile's numbers of texts and of addresses */
    char *plain;                       /* a text without escapes */
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

static uint64_t number(struct kp_jsonvalue object, const char *key)
{
    const struct kp_jsonvalue v = kp_jsonvalue_member(object, key);
    char text[24], *end;
    if (!v.bytes || v.bytes >= sizeof text) return 0;
    memcpy(text, v.at, v.bytes);
    text[v.bytes] = 0;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    return *end || errno ? 0 : (uint64_t)value;
}

/* The number of a text in the profile. */
static uint32_t text_number(struct heap_object *h, const char *text, size_t bytes)
{
    const uint32_t id = kp_strings_put(h->texts, text, bytes);
    return id > h->p->texts_n ? kp_profile_text_add(h->p, text, bytes) : id;
}

/* Reads "FILE+0xOFFSET", a return address, or "file.py(12): f". */
static struct kp_profile_address address_read(struct heap_object *h, const char *text)
{
    struct kp_profile *const p = h->p;
    const char *const end = strstr(text, "): "), *const plus = strrchr(text, '+'), *bracket = end;
    while (bracket && bracket > text && *bracket != '(') bracket--;
    if (bracket && bracket > text) {
        *KP_KINETO_NEXT(p->places, p->places_n, p->places_cap) = (struct kp_profile_place){
            .function = text_number(h, end + 3, strlen(end + 3)),
            .file = text_number(h, text, (size_t)(bracket - text)),
            .line = (uint32_t)strtoul(bracket + 1, NULL, 10),
        };
        return (struct kp_profile_address){
            .module = text_number(h, "Python", strlen("Python")),
            .at = (uint32_t)p->places_n - 1,
            .n = 1,
        };
    }
    return (struct kp_profile_address){.offset = strtoull(plus ? plus + 1 : text, NULL, 16),
                                       .module = plus ? text_number(h, text, (size_t)(plus - text)) : 0};
}

/* The number of a frame's address. */
static uint32_t address_number(struct heap_object *h, struct kp_jsonvalue v)
{
    struct kp_profile *const p = h->p;
    h->plain[0] = 0;
    if (kp_jsonvalue_is_string(v)) (void)kp_jsonvalue_text(h->plain, v.bytes + 4, v);
    if (!h->plain[0]) memcpy(h->plain, "?", 2);
    const uint32_t id = kp_strings_put(h->frames, h->plain, strlen(h->plain));
    if (id > p->addresses_n) {
        const struct kp_profile_address a = address_read(h, h->plain);
        *KP_KINETO_NEXT(p->addresses, p->addresses_n, p->addresses_cap) = a;
    }
    return id;
}

/* Adds the frames of a stack, innermost first. The number of the innermost; 0: no frame. */
static uint32_t stack_read(struct heap_object *h, struct kp_jsonvalue stack)
{
    struct kp_profile *const p = h->p;
    const uint32_t first = (uint32_t)p->frames_n + 1;
    struct kp_jsonvalue v;
    for (const char *at = NULL; kp_jsonvalue_element(stack, &at, &v);) {
        const uint32_t address = address_number(h, v);
        *KP_KINETO_NEXT(p->frames, p->frames_n, p->frames_cap) = (struct kp_profile_frame){address, 0};
        if (p->frames_n > first) p->frames[p->frames_n - 2].around = (uint32_t)p->frames_n;
    }
    return p->frames_n < first ? 0 : first;
}

static struct kp_profile_site sums_read(struct kp_jsonvalue v)
{
    return (struct kp_profile_site){.allocations = number(v, "allocations"),
                                    .bytes = number(v, "bytes"),
                                    .peak_blocks = number(v, "peak_blocks"),
                                    .peak_bytes = number(v, "peak_bytes"),
                                    .live_blocks = number(v, "live_blocks"),
                                    .live_bytes = number(v, "live_bytes")};
}

/* The first file of a path counts. */
static void module_read(struct heap_object *h, struct kp_jsonvalue v)
{
    struct kp_profile *const p = h->p;
    const struct kp_jsonvalue path = kp_jsonvalue_member(v, "path"), build = kp_jsonvalue_member(v, "build_id");
    if (!kp_jsonvalue_is_string(path) || !kp_jsonvalue_is_string(build)) return;
    (void)kp_jsonvalue_text(h->plain, path.bytes + 4, path);
    const uint32_t number = text_number(h, h->plain, strlen(h->plain));
    while (p->builds_n < number) *KP_KINETO_NEXT(p->builds, p->builds_n, p->builds_cap) = NULL;
    (void)kp_jsonvalue_text(h->plain, build.bytes + 4, build);
    if (number && !p->builds[number - 1]) p->builds[number - 1] = kp_kineto_copy(h->plain);
}

static void object_fini(struct heap_object *h)
{
    kp_profile_close(h->p);
    kp_strings_close(h->texts);
    kp_strings_close(h->frames);
    free(h->plain);
}

/* False: the text is no JSON. */
static bool object_parse(struct heap_object *h, const char *text, const char *installed)
{
    size_t offset;
    const char *why;
    struct kp_jsonvalue v;
    *h = (struct heap_object){.text = {text, strlen(text)}};
    if (kp_jsonread_check(text, h->text.bytes, &offset, &why) != 0) return false;
    h->plain = kp_kineto_room(h->text.bytes + 8, 1);
    h->texts = kp_strings_open();
    h->frames = kp_strings_open();
    struct kp_profile *const p = h->p = kp_kineto_zeros(1, sizeof *p);
    const struct kp_jsonvalue sites = kp_jsonvalue_member(h->text, "sites");
    const struct kp_jsonvalue modules = kp_jsonvalue_member(h->text, "modules");
    p->installed = kp_kineto_copy(installed);
    p->total = sums_read(h->text);
    h->is_traced = sites.at && *sites.at == '[';
    for (const char *at = NULL; kp_jsonvalue_element(modules, &at, &v);) module_read(h, v);
    for (const char *at = NULL; kp_jsonvalue_element(sites, &at, &v);) {
        struct kp_profile_site *const s = KP_KINETO_NEXT(p->sites, p->sites_n, p->sites_cap);
        *s = sums_read(v);
        s->frame = stack_read(h, kp_jsonvalue_member(v, "stack"));
    }
    return true;
}

KP_ORDER_DOWN(by_live, struct kp_profile_site, live_bytes)

KP_ORDER_DOWN(by_kept, struct kp_profile_site, kept_bytes)

KP_ORDER_DOWN(by_peak, struct kp_profile_site, peak_bytes)

KP_ORDER_DOWN(by_count, struct kp_profile_site, allocations)

/* ---- frames ---- */

struct view {
    FILE *out;
    const struct kp_places *places; /* NULL: none */
    const struct kp_profile *profile;
    bool is_of_trace; /* the profile is the trace's object, which has frames of Python as text */
};

static const char *name_of(const struct view *v, const struct kp_place *place, char *out, size_t bytes)
{
    const bool is_mangled = place->function && v->places && v->places->plain;
    const char *plain = is_mangled ? v->places->plain(v->places->context, place->function) : place->function;
    if (!plain || strlen(plain) >= bytes) return place->function ? place->function : "?";
    (void)kp_symbol_short(plain, out, bytes);
    return out;
}

/* The text stays if there is no place. */
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

/* A profile's address: by debug files, else by the name that the profile has. */
static void address_print(const struct view *v, const struct kp_profile_address *a)
{
    const struct kp_profile *p = v->profile;
    struct kp_place of[PLACES_MOST];
    char text[NAME_BYTES];
    const char *path = kp_profile_text(p, a->module);
    int n = v->places ? kp_profile_places(p, a, v->places, of, PLACES_MOST) : 0;
    snprintf(text, sizeof text, "%s%s0x%llx", path, *path ? "+" : "", (unsigned long long)a->offset);
    if (v->places && n <= 0 && a->n && p->places[a->at].function) {
        of[0] = (struct kp_place){.function = kp_profile_text(p, p->places[a->at].function)};
        n = 1;
    }
    if (kp_profile_is_python(p, a)) {
        const struct kp_profile_place *place = &p->places[a->at];
        const char *const function = kp_profile_text(p, place->function), *const file = kp_profile_text(p, place->file);
        of[0] = (struct kp_place){.function = function, .file = file, .line = place->line};
        n = !v->is_of_trace;
        if (v->is_of_trace) snprintf(text, sizeof text, "%s(%u): %s", file, place->line, function);
    }
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

/* A line for the frames that were folded, where no frame of Python stands for them. */
static void folded_print(FILE *out, struct kp_heapfold *fold, struct stack_shown *shown, bool has_python)
{
    const size_t n = fold->run;
    fold->run = 0;
    if (n && !has_python && is_shown(shown, out, false))
        fprintf(out, "        [interpreter, %zu frame%s]\n", n, kp_units_s(n));
}

/* The program's own line comes first, since it may lie far out, around functions of the interpreter. */
static void stack_print(const struct view *v, uint32_t frame)
{
    const struct kp_profile *p = v->profile;
    struct kp_heapfold fold = {.is_all = shows_interpreter};
    const bool of_python = kp_profile_has_python(p, frame);
    const struct kp_profile_place *own = kp_profile_own_line(p, frame);
    struct stack_shown shown = {.most = own && !shows_interpreter ? FRAMES_BESIDE : FRAMES_SHOWN};
    if (own)
        kp_plain_fmt(v->out, "        your line: %s at %s:%u\n", kp_profile_text(p, own->function),
                     kp_profile_text(p, own->file), own->line);
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
    stack_print(&(struct view){.out = out, .places = places, .profile = p}, frame);
}

/* ---- tables ---- */

enum column { KEPT, LIVE, PEAK, ALL };

static void table_print(const struct view *v, const char *title, struct kp_profile_site *sites, enum column column,
                        long row_limit)
{
    static int (*const orders[])(const void *, const void *) = {by_kept, by_live, by_peak, by_count};
    const size_t n = v->profile->sites_n, rows = row_limit < 0 ? n : (size_t)row_limit;
    size_t shown = 0, left = 0;
    FILE *out = v->out;
    if (n) qsort(sites, n, sizeof *sites, orders[column]);
    fprintf(out, "\n%s\n", title);
    for (size_t i = 0; i < n; i++) {
        const struct kp_profile_site *s = &sites[i];
        const uint64_t of_bytes[] = {s->kept_bytes, s->live_bytes, s->peak_bytes, s->bytes};
        const uint64_t of_blocks[] = {s->kept_blocks, s->live_blocks, s->peak_blocks, s->allocations};
        const uint64_t blocks = of_blocks[column];
        if (!blocks) continue;
        if (shown == rows) {
            left++;
            continue;
        }
        fprintf(out, "    %s in %lld block%s\n", kp_units_size((int64_t)of_bytes[column]), (long long)blocks,
                kp_units_s(blocks));
        stack_print(v, s->frame);
        shown++;
    }
    if (left) fprintf(out, "    and %zu more call stack%s: -n 0 shows all\n", left, kp_units_s(left));
    if (!shown) fprintf(out, "    none\n");
}

static void tables_print(const struct view *v, long row_limit)
{
    const struct kp_profile *p = v->profile;
    const bool has_leaks = p->steps_n > 1;
    const long rows = row_limit ? row_limit : has_leaks ? FEWER_ROWS : FEW_ROWS;
    struct kp_profile_site *const sites = kp_kineto_room(p->sites_n + 1, sizeof *sites); /* each table sorts them */
    if (p->sites_n) memcpy(sites, p->sites, p->sites_n * sizeof *sites);
    kp_arenaview_write(v->out, p, 0, p->steps_n, KP_ARENAS_ALL);
    if (has_leaks) fprintf(v->out, "what the steps left, without the start-up: kprof memory --leaks\n");
    if (p->is_python_over) {
        fprintf(v->out, "before Python freed what the program kept: %s in %llu block%s\n",
                kp_units_size((int64_t)p->total.kept_bytes), (unsigned long long)p->total.kept_blocks,
                kp_units_s(p->total.kept_blocks));
        table_print(v, "what the program kept until Python ended, most bytes first:", sites, KEPT, rows);
    }
    table_print(v, "still there at the end, most bytes first:", sites, LIVE, rows);
    table_print(v, "there at the peak, most bytes first:", sites, PEAK, rows);
    table_print(v, "most allocations, all of the window:", sites, ALL, rows);
    free(sites);
}

static void head_print(FILE *out, const struct kp_profile_site *t, uint64_t frees)
{
    fprintf(out, "host heap: %lld allocation%s of %s in all, %lld free%s\n", (long long)t->allocations,
            kp_units_s(t->allocations), kp_units_size((int64_t)t->bytes), (long long)frees, kp_units_s(frees));
}

static void peak_print(FILE *out, const struct kp_profile_site *t)
{
    fprintf(out, "peak: %s; at the end %s in %lld block%s are still there", kp_units_size((int64_t)t->peak_bytes),
            kp_units_size((int64_t)t->live_bytes), (long long)t->live_blocks, kp_units_s(t->live_blocks));
}

void kp_heapview_profile(FILE *out, const struct kp_profile *p, long row_limit, const struct kp_places *places)
{
    head_print(out, &p->total, p->total.allocations - p->total.live_blocks);
    peak_print(out, &p->total);
    fputc('\n', out);
    tables_print(&(struct view){.out = out, .places = places, .profile = p}, row_limit);
}

/* Totals are those of the object, also where the tables are of the profile beside the trace. */
static void object_print(const struct view *v, const struct heap_object *h, long row_limit)
{
    const struct kp_profile_site *const total = &h->p->total;
    const size_t n = h->p->sites_n;
    const uint64_t older = number(h->text, "unknown_frees"), lost = number(h->text, "unkept_blocks"),
                   stacks = number(h->text, "call_stacks");
    FILE *out = v->out;
    head_print(out, total, number(h->text, "frees"));
    if (!h->is_traced) {
        fprintf(out, "it grew by %s; record with kprof run --malloc trace for peak and leaks\n",
                kp_units_size((int64_t)total->live_bytes));
        return;
    }
    peak_print(out, total);
    fprintf(out, "; %lld free%s of blocks taken before\n", (long long)older, kp_units_s(older));
    if (lost)
        fprintf(out, "%lld block%s could not be followed: counted as allocations, but not at the peak or at the end\n",
                (long long)lost, kp_units_s(lost));
    tables_print(v, row_limit);
    if (v->is_of_trace && (int64_t)stacks > (int64_t)n)
        fprintf(out, "\nthe trace has the largest %zu of %lld call stacks; NAME.heap.zst beside it has all\n", n,
                (long long)stacks);
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

/* Writes "kprof_frames" with a member for each FILE+0xOFFSET: its functions, innermost first. */
static void frames_json(struct kp_jsonout *j, const struct view *v, struct kp_strings *frames)
{
    const size_t n = kp_strings_count(frames) - 1;
    const char **of_name = kp_kineto_room(n + 1, sizeof *of_name);
    struct kp_place of[PLACES_MOST];
    for (uint32_t id = 1; id <= n; id++) of_name[id - 1] = kp_strings_get(frames, id);
    if (n) qsort(of_name, n, sizeof *of_name, by_text);
    kp_jsonout_open(j, "kprof_frames", '{');
    for (size_t i = 0; i < n; i++) {
        const uint32_t address = kp_strings_put(frames, of_name[i], strlen(of_name[i]));
        const int places =
            kp_profile_places(v->profile, &v->profile->addresses[address - 1], v->places, of, PLACES_MOST);
        if (!places) continue;
        kp_jsonout_line(j);
        kp_jsonout_open(j, of_name[i], '[');
        for (int k = 0; k < places; k++) kp_fields_put(j, NULL, &place_fields, &(struct json_place){v, of[k]});
        kp_jsonout_close(j, ']');
    }
    kp_jsonout_close(j, '}');
    free(of_name);
}

static void object_json(const struct view *v, const struct heap_object *h)
{
    struct kp_jsonout *const j = KP_JSONOUT(v->out);
    kp_jsonout_key(j, "kprof_heap");
    kp_plain_json_raw(v->out, h->text.at);
    if (v->places) frames_json(j, v, h->frames);
}

bool kp_heapview_write(FILE *out, const struct kp_texts *from, long row_limit, bool as_json,
                       const struct kp_places *places, const struct kp_profile *profile, const char *installed)
{
    char *const text = object_read(from);
    struct heap_object h = {.plain = NULL};
    const bool is_there = text && is_ours(text) && object_parse(&h, text, installed);
    const bool is_of_trace = as_json || !profile;
    const struct view v = {out, places, is_of_trace ? h.p : profile, is_of_trace};
    if (is_there && as_json) object_json(&v, &h);
    else if (is_there) object_print(&v, &h, row_limit);
    object_fini(&h);
    free(text);
    return is_there;
}
