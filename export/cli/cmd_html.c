// SPDX-License-Identifier: Apache-2.0
/* cmd_html.c - `kprof html`: traces as one page for a browser */
#include "export/cli/cli.h"

#include <string.h>
#include <sys/stat.h>

#include "export/answers/runadvice/judged.h"
#include "export/answers/jobs/stood.h"
#include "export/answers/jobs/latest.h"
#include "export/read/files/outfile.h"
#include "export/read/folder/trace_source.h"
#include "export/read/folder/written.h"
#include "export/answers/page/page.h"
#include "export/read/parse/kineto_parse.h"
#include "export/show/units.h"

enum { LARGE_BYTES = 20 << 20 };
struct html_command {
    const char *path;
    FILE *to;
    struct kp_page_start start;
    bool begun, partial, is_json;
    int pages;
    uint64_t events; /* of all traces */
    struct kp_rankwaits ranks;
    struct kp_stuck stuck;
};
#define INTO(member) KP_OPT_INTO(struct html_command, member)
static const struct kp_opt flags[] = {
    {"out", 'o', KP_OPT_VALUE, "PAGE", "the page (default: stdout; on a terminal page.html beside the trace)",
     INTO(path)},
    {"json", 0, KP_OPT_FLAG, NULL, "say what was written as a line of JSON", INTO(is_json)},
    {"step", 0, KP_OPT_VALUE, "A-B",
     "begin with these steps chosen; all: with the whole trace (default: its steps, where it has some)", 0},
    {"partial", 0, KP_OPT_FLAG, NULL, "show what is there of a file that ends early", INTO(partial)},
    {0}};

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct html_command *h = context;
    struct kp_advised a;
    char why[512];
    (void)several;
    const struct kp_texts texts = kp_trace_source_texts(source);
    int rc = kp_advised_open(&a, &texts, source->path, h->partial, why, sizeof why);
    if (rc) {
        const bool is_torn = a.trace && a.trace->torn;
        kp_advised_close(&a);
        return kp_cli_fail("html", "%s%s", why, is_torn ? "; --partial shows those" : "");
    }
    if (a.is_part) kp_cli_say(stderr, "kprof: %s", why);
    h->events += a.trace->seen;
    if (!h->begun) kp_page_begin(h->to, source->label);
    h->begun = true;
    kp_judged_add(&a, source);
    kp_stood_note_oom(&a, source);
    kp_stood_look(&h->stuck, &a.tree, &a.chosen, source->path, source->is_spool);
    rc = kp_page_add(h->to, &a.tree, source->label, &h->start, &h->ranks, &a.advice, why, sizeof why);
    h->pages += rc == 0;
    kp_advised_close(&a);
    return rc ? kp_cli_fail("html", "%s: %s", source->label, why) : KP_EXIT_DONE;
}

/* A browser takes long to open a large page: says how to make a smaller one. */
static void size_tell(const char *path)
{
    struct stat st;
    if (!path || strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < LARGE_BYTES)
        return;
    kp_cli_say(stderr,
               "kprof html: that is %s; of fewer steps it is smaller: kprof slice --step A-B cuts them out of a trace, "
               "kprof run --schedule records them alone",
               kp_units_size(st.st_size));
}

static int html_write(struct html_command *h, char **files, int count)
{
    struct kp_outfile file;
    struct kp_stuck_told told;
    if (kp_outfile_open(&file, h->path)) return kp_outfile_fail("html", &file);
    h->to = file.to;
    const int worst = kp_input_each("html", files, count, NULL, trace_take, h);
    if (h->pages) kp_page_end(h->to, &h->ranks, kp_stood_tell(&told, &h->stuck) ? &told : NULL);
    kp_stuck_fini(&h->stuck);
    kp_rankwaits_fini(&h->ranks);
    if (kp_outfile_close(&file, h->pages > 0)) return kp_outfile_fail("html", &file);
    if (!h->is_json && h->pages) kp_outfile_tell_drawing(h->path);
    if (!h->is_json && h->pages) size_tell(h->path);
    if (h->is_json && h->pages)
        kp_written_say(&(struct kp_written){
            .by = KP_WRITER_PAGE, .name = h->path, .traces = (uint64_t)h->pages, .events = h->events});
    return worst;
}

static int step_take(void *command, const struct kp_opt_scan *scan, int id, const char *value)
{
    struct kp_page_start *const start = &((struct html_command *)command)->start;
    (void)id;
    return kp_opt_steps_or_all(scan->command, value, &start->first_step, &start->last_step, &start->all);
}

int kp_cmd_html(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "html", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct html_command h = {.start = {.first_step = -1, .last_step = -1}};
    const int i = kp_opt_flags(&scan, &h, step_take);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (h.is_json && kp_written_check("html", h.path)) return KP_EXIT_USAGE;
    const int count = kp_latest_take("html", &argv, scan.count, KP_LATEST_RANKS);
    if (!count) return KP_EXIT_USAGE;
    h.path = kp_outfile_drawing(h.path, argv[0], "page.html");
    return html_write(&h, argv, count);
}
