// SPDX-License-Identifier: Apache-2.0
/* cmd_memory.c - `kprof memory`: allocations over time by category, the peak, growth from step to step */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/files/budget.h"
#include "export/cli/cli.h"
#include "export/answers/memory/oomfiles.h"
#include "export/answers/heapview/heapview.h"
#include "export/answers/jobs/latest.h"
#include "export/read/symbols/lines.h"
#include "export/read/files/outfile.h"
#include "export/read/folder/run_folder.h"
#include "export/read/folder/trace_source.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/parse/kineto_parse.h"
#include "export/answers/memory/memblocks.h"
#include "export/show/units.h"

enum form { FORM_TABLE, FORM_JSON, FORM_RAW, FORM_SVG, FORM_HTML };
enum format { FORMAT_NONE, FORMAT_HEAPTRACK, FORMAT_PPROF, FORMAT_FOLDED, FORMAT_JSON, FORMAT_N };
static const char *const format_names[FORMAT_N] = {"", "heaptrack", "pprof", "folded", "json"};

struct memory_command {
    enum form form;
    enum format format;    /* of the heap's profile */
    enum kp_profile_by by; /* what folded stacks and the flame graph count */
    bool has_by, leaks, all_steps, all_frames, partial;
    bool has_told; /* files of KPROF_ON_OOM were shown: what a trace has comes behind them, or nothing */
    const char *device, *out;
    long row_limit, first_step, last_step; /* -1: all */
    long heap_limit;                       /* of call stacks and steps of the heap; 0: the default of each, -1: all */
    struct kp_lines_options wish;
    const struct kp_places *places; /* names frames of the host's heap, or NULL */
};

enum { JSON, SVG, HTML, RAW, OUT, DEVICE, ROW_LIMIT, STEP, LINES, DEBUGINFO_PATH, FORMAT, BY };
enum { LEAKS = BY + 1, STEPS, TOP, LIMIT, ALL_FRAMES, PARTIAL };
#define INTO(member) KP_OPT_INTO(struct memory_command, member)
static const struct kp_opt flags[] = {
    [JSON] = {"json", 0, KP_OPT_FLAG, NULL, "all of it as JSON, one object a trace", 0},
    [SVG] = {"svg", 0, KP_OPT_FLAG, NULL, "the timeline as a drawing that opens in a browser", 0},
    [HTML] = {"html", 0, KP_OPT_FLAG, NULL, "timeline and tables as one page, as KPROF_EXPORT=memory writes it", 0},
    [RAW] = {"raw", 0, KP_OPT_FLAG, NULL,
             "one device's blocks as torch's export_memory_timeline writes .raw.json, for HTA", 0},
    [OUT] = {"out", 'o', KP_OPT_VALUE, "OUT",
             "write to a file (default: stdout); a name that ends in .svg, .html or .json needs no such flag",
             INTO(out)},
    [DEVICE] = {"device", 0, KP_OPT_VALUE, "DEVICE", "cpu, cuda or cuda:N (default: all; with --raw cpu)", 0},
    [ROW_LIMIT] = {"row-limit", 'n', KP_OPT_VALUE, "N",
                   "rows of a table (default 10, of call stacks of the heap 3 or 5, of its steps 20; 0 or -1: all)", 0},
    [STEP] =
        {"step", 0, KP_OPT_VALUE, "A-B",
         "only what was live within these steps; all: the whole window (default: its steps, where they have the peak)",
         0},
    KP_LINES_OPTIONS("on, in what is said of the host's heap", INTO(wish.lines), INTO(wish.debug_path)),
    [FORMAT] = {"format", 0, KP_OPT_VALUE, "FORMAT",
                "the heap's profile as heaptrack, pprof, folded or json; heaptrack_gui, speedscope and flamegraph.pl "
                "read the first three",
                0},
    [BY] = {"by", 0, KP_OPT_VALUE, "BYTES",
            "the heap's bytes in folded stacks and --svg: peak, leaked, allocated or temporary; default peak", 0},
    [LEAKS] = {"leaks", 0, KP_OPT_FLAG, NULL,
               "what each step allocated on the host's heap and left there, by call stack", INTO(leaks)},
    [STEPS] = {"steps", 0, KP_OPT_VALUE, "A-B", "the same as --step", 0},
    [TOP] = {"top", 0, KP_OPT_VALUE, "N", "the same as -n", 0},
    [LIMIT] = {"limit", 0, KP_OPT_VALUE, "N", "the same as -n", 0},
    [ALL_FRAMES] =
        {"all-frames", 0, KP_OPT_FLAG, NULL,
         "call stacks of the heap, also in the flame graph and in --format folded, with the frames of Python's "
         "interpreter (default: folded where they only call), and twelve frames after your line (default: three)",
         0},
    [PARTIAL] = {"partial", 0, KP_OPT_FLAG, NULL, "show what is there of a file that ends early", INTO(partial)},
    {0}};

/* Index of a device by torch's name, or -1 for all. -2: not in this trace. */
static int device_find(const struct kp_memview *view, const char *name)
{
    long id = -1;
    if (!name) return -1;
    const bool is_cpu = strncmp(name, "cpu", 3) == 0;
    const char *colon = strchr(name, ':');
    if (colon && !is_cpu) id = strtol(colon + 1, NULL, 10);
    for (size_t i = 0; i < view->device_count; i++)
        if ((view->devices[i].type == 0) == is_cpu && (is_cpu || id < 0 || view->devices[i].id == id)) return (int)i;
    return -2;
}

static bool is_device(const char *name)
{
    static const char *const known[] = {"cpu", "cuda", "xpu", "gpu", "hip"};
    size_t bytes = strcspn(name, ":");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == bytes && strncmp(name, known[i], bytes) == 0)
            return !name[bytes] || (name[bytes + 1] && !name[bytes + 1 + strspn(name + bytes + 1, "0123456789")]);
    return false;
}

/* Programs that read JSON get all of the window. */
static bool steps_apply(const struct kp_memview *view, const struct memory_command *m, struct kp_mem_show *show)
{
    const bool is_all = m->all_steps || m->form == FORM_JSON || m->form == FORM_RAW;
    if (m->first_step >= 0 || !is_all) return kp_memview_steps(view, show, m->first_step, m->last_step);
    show->from_ns = view->begin_ns;
    show->to_ns = view->end_ns;
    return true;
}

static void heap_put(FILE *out, const struct memory_command *m, const char *heap)
{
    fprintf(out, m->form == FORM_JSON ? "{%s}\n" : "%s", heap);
}

static void view_put(FILE *out, const struct kp_memview *view, const struct memory_command *m,
                     const struct kp_mem_show *show)
{
    switch (m->form) {
    case FORM_TABLE: kp_memtable_write(out, view, show); break;
    case FORM_JSON: kp_memjson_write(out, view, show); break;
    case FORM_RAW: kp_memjson_raw(out, view, (size_t)(show->device < 0 ? 0 : show->device)); break;
    case FORM_SVG: kp_memsvg_write(out, view, show); break;
    case FORM_HTML: break; /* show_it */
    }
}

/* view NULL: the trace tells of the host's heap alone. */
static int show_it(const struct kp_memview *view, const struct memory_command *m, const struct kp_mem_show *show,
                   bool several)
{
    struct kp_outfile file;
    if (kp_outfile_open(&file, m->out)) return kp_outfile_fail("memory", &file);
    FILE *const out = file.to;
    if (m->form == FORM_TABLE && m->has_told) fputs("\n", out); /* kp_cli_say escapes what it is given */
    if (m->form == FORM_TABLE && (several || m->has_told)) kp_cli_say(out, "%s:", show->label);
    if (m->form == FORM_HTML) kp_mempage_write(out, view, show, show->members);
    else if (show->members && (!view || m->form == FORM_TABLE)) heap_put(out, m, show->members);
    if (view && m->form != FORM_HTML) view_put(out, view, m, show);
    if (kp_outfile_close(&file, true)) return kp_outfile_fail("memory", &file);
    kp_outfile_tell_drawing(m->out);
    return KP_EXIT_DONE;
}

/* The trace has no block of torch's memory. `no_addresses`: its events do not tell which blocks they are of. */
static int heap_show(const struct memory_command *m, struct kp_mem_show *show, bool no_addresses, bool several)
{
    if (!show->members && m->has_told) return KP_EXIT_DONE;
    if (show->members && m->form != FORM_SVG && m->form != FORM_RAW) return show_it(NULL, m, show, several);
    if (show->members)
        return kp_cli_fail("memory", "%s: it has the host's heap and no tensors; --html shows it as a page",
                           show->label);
    if (no_addresses)
        return kp_cli_fail("memory", "%s: " KP_MEM_NO_ADDRESSES "; kprof report --sort mem shows what ops allocate",
                           show->label);
    return kp_cli_fail(
        "memory",
        "%s: no event of memory; record with kprof run --profile-memory (torch's profile_memory=True), or "
        "--malloc trace",
        show->label);
}

/* first -1: there is none. */
static int step_missing(const struct memory_command *m, const char *label, long first, long last)
{
    char asked[80], steps[80] = "no steps";
    if (first >= 0) kp_units_steps(steps, sizeof steps, first, last);
    return kp_cli_fail("memory", "%s: no %s in it: it has %s", label,
                       kp_units_steps(asked, sizeof asked, m->first_step, m->last_step), steps);
}

static int view_step_missing(const struct memory_command *m, const struct kp_memview *view, const char *label)
{
    long first = -1, last = -1;
    for (size_t i = 0; i < view->step_count; i++) {
        const long number = view->steps[i].number;
        if (first < 0 || number < first) first = number;
        if (number > last) last = number;
    }
    return step_missing(m, label, first, last);
}

static int tree_show(const struct memory_command *m, struct kp_tree *tree, struct kp_mem_show *show, bool several)
{
    struct kp_memview view;
    int rc;
    kp_tree_fill_line_stacks(tree, true);
    kp_tree_set_forward_stacks(tree);
    if (kp_memview_build(&view, tree) < 0) {
        rc = heap_show(m, show, view.no_addresses, several);
    } else {
        show->device = device_find(&view, m->device);
        if (show->device == -2) rc = kp_cli_fail("memory", "%s: no memory of %s was recorded", show->label, m->device);
        else if (!steps_apply(&view, m, show)) rc = view_step_missing(m, &view, show->label);
        else rc = show_it(&view, m, show, several);
    }
    kp_memview_fini(&view);
    return rc;
}

/* The profile beside the trace, or of the spool. NULL: none; one that cannot be read is named on stderr. */
static struct kp_profile *profile_open(const struct kp_trace_source *source)
{
    char path[4096], why[512];
    struct kp_profile *p = NULL;
    const struct kp_texts from = kp_trace_source_heap(source);
    if (!source->is_spool && !kp_profile_find(path, sizeof path, source->path)) return NULL;
    if (!source->is_spool && strcmp(path, source->path) != 0) kp_budget_beside(path);
    const int rc = kp_profile_read(&p, &from, source->is_spool ? source->label : path, why, sizeof why);
    if (rc && rc != -ENODATA) (void)kp_cli_fail("memory", "%s", why);
    return p;
}

static int leaks_put(const struct memory_command *m, const struct kp_profile *p, const char *path, FILE *out)
{
    if (kp_leakview_write(out, p, m->heap_limit, m->places, m->first_step, m->last_step)) return KP_EXIT_DONE;
    if (p->steps_n) return step_missing(m, path, (long)p->steps[0].number, (long)p->steps[p->steps_n - 1].number);
    return kp_cli_fail("memory",
                       "%s: no step in it; record with a schedule, as kprof run --schedule active=1000; in a program "
                       "without steps of its own --step time:1s makes each second one",
                       path);
}

static int profile_put(const struct memory_command *m, struct kp_profile *p, const struct kp_trace_source *source,
                       FILE *out)
{
    const struct kp_texts from = kp_trace_source_heap(source);
    char why[512] = "";
    p->all_frames = m->all_frames;
    if (m->format != FORMAT_NONE && m->places) kp_profile_name(p, m->places);
    switch (m->format) {
    case FORMAT_HEAPTRACK:
        if (kp_profile_heaptrack(p, out, &from, why, sizeof why)) return kp_cli_fail("memory", "%s", why);
        break;
    case FORMAT_PPROF: kp_profile_pprof(p, out); break;
    case FORMAT_FOLDED: kp_profile_folded(p, out, m->by); break;
    case FORMAT_JSON: kp_profile_json(p, out); break;
    default:
        if (m->leaks) return leaks_put(m, p, source->label, out);
        if (m->form == FORM_SVG) kp_profile_flame(p, out, m->by, source->label);
        else kp_heapview_profile(out, p, m->heap_limit, m->places);
    }
    return KP_EXIT_DONE;
}

static int profile_show(const struct memory_command *m, const struct kp_trace_source *source)
{
    struct kp_profile *p = profile_open(source);
    if (!p)
        return kp_cli_fail("memory",
                           "%s: no profile of the heap%s; record with kprof run --malloc trace (of tensors kprof "
                           "memory says what grows)",
                           source->label, source->is_spool ? "" : " (NAME.heap.zst) beside it");
    struct kp_outfile file;
    const bool is_open = kp_outfile_open(&file, m->out) == 0;
    int rc = is_open ? profile_put(m, p, source, file.to) : KP_EXIT_DONE;
    if (!is_open || kp_outfile_close(&file, rc == KP_EXIT_DONE)) rc = kp_outfile_fail("memory", &file);
    kp_profile_close(p);
    if (rc == KP_EXIT_DONE) kp_outfile_tell(m->out);
    return rc;
}

/* The trace's text on the host's heap, to be freed; NULL: nothing. */
static char *heap_text(const struct memory_command *m, const struct kp_trace_source *source,
                       const struct kp_kineto *trace)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    const struct kp_texts texts = kp_trace_source_texts(source);
    struct kp_profile *profile = m->form == FORM_JSON || source->is_spool ? NULL : profile_open(source);
    bool is_there = kp_heapview_write(out, &texts, m->heap_limit, m->form == FORM_JSON, m->places, profile,
                                      kp_kineto_fact(trace, "kprof.installed"));
    kp_profile_close(profile);
    if (fclose(out) == 0 && is_there) return text;
    free(text);
    return NULL;
}

static int trace_show(void *context, const struct kp_trace_source *source, bool several)
{
    const struct memory_command *m = context;
    struct kp_kineto *trace;
    struct kp_tree tree;
    int rc;
    if (several && (m->out || m->format || m->leaks || (m->form != FORM_TABLE && m->form != FORM_JSON)))
        return kp_cli_misuse("memory", "one output, and there are several traces");
    if (m->format || m->leaks || kp_profile_is(source->path) || (m->form == FORM_SVG && m->has_by))
        return profile_show(m, source);
    rc = kp_trace_source_show("memory", source, m->partial, false, &trace);
    if (rc != KP_EXIT_DONE) return rc;
    char *heap = heap_text(m, source, trace);
    struct kp_mem_show show = {.device = -1, .row_limit = m->row_limit, .label = source->label, .members = heap};
    if (kp_tree_build(&tree, trace) < 0) rc = kp_cli_fail("memory", "%s: too many events", source->label);
    else rc = tree_show(m, &tree, &show, several);
    free(heap);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return rc;
}

static int form_set(struct memory_command *m, enum form form)
{
    if (m->form != FORM_TABLE && m->form != form)
        return kp_cli_misuse("memory", "--json, --svg, --html and --raw do not go together");
    m->form = form;
    return KP_EXIT_DONE;
}

static int format_take(struct memory_command *m, const char *value)
{
    for (m->format = FORMAT_N; --m->format > FORMAT_NONE && strcmp(value, format_names[m->format]) != 0;) continue;
    return m->format ? KP_EXIT_DONE
                     : kp_cli_misuse("memory", "a format is heaptrack, pprof, folded or json, not %s", value);
}

static int by_take(struct memory_command *m, const char *value)
{
    m->has_by = true;
    for (m->by = KP_BY_PEAK; m->by < KP_BY_N && strcmp(value, kp_profile_by_names[m->by]) != 0; m->by++) continue;
    return m->by < KP_BY_N ? KP_EXIT_DONE
                           : kp_cli_misuse("memory", "--by is peak, leaked, allocated or temporary, not %s", value);
}

static int value_take(void *command, const struct kp_opt_scan *scan, int option, const char *value)
{
    struct memory_command *const m = command;
    switch (option) {
    case JSON: return form_set(m, FORM_JSON);
    case SVG: return form_set(m, FORM_SVG);
    case HTML: return form_set(m, FORM_HTML);
    case RAW: return form_set(m, FORM_RAW);
    case DEVICE:
        m->device = value;
        if (!is_device(value)) return kp_cli_misuse("memory", "a device is cpu, cuda or cuda:N, not %s", value);
        break;
    case ROW_LIMIT:
    case TOP:
    case LIMIT:
        if (!kp_opt_number(value, -1, &m->row_limit))
            return kp_cli_misuse("memory", "a row limit is a number from -1 on, not %s", value);
        if (!m->row_limit) m->row_limit = -1;
        m->heap_limit = m->row_limit;
        break;
    case FORMAT: return format_take(m, value);
    case BY: return by_take(m, value);
    case ALL_FRAMES:
        m->all_frames = true;
        kp_heapview_show_interpreter();
        break;
    default: return kp_opt_steps_or_all(scan->command, value, &m->first_step, &m->last_step, &m->all_steps);
    }
    return KP_EXIT_DONE;
}

/* ---- files of KPROF_ON_OOM ---- */

static void oom_put(void *context, const struct kp_oom *oom)
{
    const struct memory_command *m = context;
    if (m->form == FORM_JSON) kp_oom_json(stdout, oom);
    else kp_oom_print(stdout, oom, m->row_limit);
}

static bool has_traces(const char *path)
{
    struct kp_run_folder folder = {.path = path};
    const bool has = kp_run_folder_read(&folder) == 0 && folder.count;
    kp_run_folder_free(&folder);
    return has;
}

/* -1: the traces follow. A folder's files come first: they say why the program ended. */
static int oom_show(struct memory_command *m, const char *path)
{
    struct kp_oom oom;
    const char *why;
    const bool is_text = m->form == FORM_TABLE || m->form == FORM_JSON;
    const bool is_plain = is_text && !m->out && !m->format && !m->leaks, is_oom = kp_oomfile_is(path);
    if (!is_plain && is_oom)
        return kp_cli_misuse("memory", "%s is of KPROF_ON_OOM: only text and --json show it", path);
    if (!is_plain) return -1;
    if (!is_oom) {
        m->has_told = kp_oomfile_each(path, oom_put, m) > 0;
        return m->has_told && !has_traces(path) ? KP_EXIT_DONE : -1;
    }
    if (!kp_oomfile_read(&oom, path, &why)) return kp_cli_fail("memory", "%s: %s", path, why);
    oom_put(m, &oom);
    kp_oom_fini(&oom);
    return KP_EXIT_DONE;
}

/* The name of OUT chooses the format if no flag does. */
static void form_read(struct memory_command *m)
{
    static const char *const endings[] = {[FORM_JSON] = "json", [FORM_SVG] = "svg", [FORM_HTML] = "html"};
    if (m->form == FORM_TABLE && !m->format && !m->leaks)
        m->form = (enum form)kp_outfile_form(m->out, endings, sizeof endings / sizeof *endings, m->form);
}

int kp_cmd_memory(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "memory", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct memory_command m = {.row_limit = 10, .first_step = -1, .last_step = -1, .wish = {.lines = true}};
    const int i = kp_opt_flags(&scan, &m, value_take);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    int count = scan.count;
    form_read(&m);
    if (m.leaks && (m.format || m.form != FORM_TABLE))
        return kp_cli_misuse("memory", "--leaks is a text of its own; --format json has its numbers");
    const int told = count < 2 ? oom_show(&m, count ? argv[0] : "kprof") : -1;
    if (told >= 0) return told;
    const bool wants_one = m.out || m.format || m.leaks || (m.form != FORM_TABLE && m.form != FORM_JSON);
    const unsigned which = (wants_one ? KP_LATEST_ONE : 0) | (m.leaks || m.format ? KP_LATEST_PARENT : 0);
    count = kp_latest_take("memory", &argv, count, which | (m.wish.lines ? KP_LATEST_SPOOL : 0));
    if (!count) return KP_EXIT_USAGE;
    if (m.form == FORM_SVG || m.form == FORM_HTML)
        m.out = kp_outfile_drawing(m.out, argv[0], m.form == FORM_SVG ? "memory.svg" : "memory.html");
    struct kp_lines *lines = kp_lines_open("memory", &m.wish);
    m.places = m.wish.lines ? kp_lines_places(lines) : NULL;
    const int worst = kp_input_each("memory", argv, count, NULL, trace_show, &m);
    kp_lines_close(lines);
    return worst;
}
