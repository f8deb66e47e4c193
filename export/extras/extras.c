// SPDX-License-Identifier: Apache-2.0
/*
 * extras.c - writes the files of KPROF_EXPORT beside a trace: NAME.table.txt, NAME.stacks.txt, NAME.memory.html
 *
 * Called by: export.c, on the export thread inside the host and in the command
 * Owns:      the events of the trace: inside the host in export/inhost's heap, in the command in its own heap
 * On fail:   the file does not exist, and no part of it; the trace exists
 */
#include "export/extras/extras.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_path.h"
#include "export/kp_export.h"
#include "export/report/folded.h"
#include "export/report/memory/memblocks.h"
#include "export/report/libc.h"
#include "export/report/table.h"

struct kp_extras {
    unsigned which, written;
    const struct kp_export_owner *owner;
    struct kp_kineto *trace;
    struct kp_kineto_parser *parser;
    struct kp_tree tree;
    const char *text, *path;
    size_t bytes;
    char temporary[4096];
    uint64_t most; /* the most bytes of folded stacks, or 0 */
    int error;
};

static int make(void *context)
{
    struct kp_extras **out = context;
    struct kp_extras *x = calloc(1, sizeof *x);
    if (!x) return -ENOMEM;
    x->trace = kp_kineto_new();
    if (!x->trace) return -ENOMEM;
    x->parser = kp_kineto_parser_open(x->trace, false);
    *out = x;
    return 0;
}

struct kp_extras *kp_extras_open(unsigned which, const char *dir, const struct kp_export_owner *owner, uint64_t most)
{
    struct kp_extras *x = NULL;
    if (!(which & KP_EXTRAS) || kp_io_mkdirs(dir, KP_IO_FOLDER_MODE) || kp_rt_begin(dir)) return NULL;
    if (kp_rt_run(make, &x) || !x) {
        kp_rt_end();
        return NULL;
    }
    x->which = which;
    x->owner = owner;
    x->most = most;
    return x;
}

static int feed(void *context)
{
    struct kp_extras *x = context;
    return kp_kineto_parser_feed(x->parser, x->text, x->bytes);
}

void kp_extras_text(struct kp_extras *x, const char *text, size_t bytes)
{
    x->text = text;
    x->bytes = bytes;
    if (!x->error) x->error = kp_rt_run(feed, x);
}

/* ---- the files ---- */

static bool table_write(struct kp_extras *x, FILE *out)
{
    static const struct kp_keyavg_options plain;
    const struct kp_table_options options = KP_TABLE_DEFAULTS;
    struct kp_keyavg averages;
    kp_keyavg_build(&averages, &x->tree, &plain);
    bool any = averages.count != 0;
    kp_table_print(out, &averages, &options);
    kp_keyavg_fini(&averages);
    return any;
}

struct lines {
    FILE *out;
    bool any;
    uint64_t bytes, most; /* most: a limit, or 0 */
};

static void line_put(void *context, const char *stack, int64_t us)
{
    struct lines *lines = context;
    lines->bytes += strlen(stack);
    if (lines->most && lines->bytes > lines->most) return;
    fprintf(lines->out, "%s %lld\n", stack, (long long)us);
    lines->any = true;
}

static bool stacks_write(struct kp_extras *x, FILE *out)
{
    struct lines lines = {.out = out, .most = x->most};
    kp_folded_walk(&x->tree, false, line_put, &lines);
    if (x->most && lines.bytes > x->most) x->error = -EFBIG;
    return lines.any;
}

static bool memory_write(struct kp_extras *x, FILE *out)
{
    struct kp_memview view;
    bool any = kp_memview_build(&view, &x->tree) == 0;
    struct kp_mem_show show = {.device = -1, .row_limit = 10, .label = kp_path_base(x->path)};
    if (any) (void)kp_memview_steps(&view, &show, -1, -1);
    if (any) kp_mempage_write(out, &view, &show, NULL);
    kp_memview_fini(&view);
    return any;
}

static const struct extra {
    unsigned which;
    const char *end;
    bool (*write)(struct kp_extras *x, FILE *out);
} extras[] = {
    /* the table first: the others fill in call stacks */
    {KP_EXTRA_TABLE, ".table.txt", table_write},
    {KP_EXTRA_STACKS, ".stacks.txt", stacks_write},
    {KP_EXTRA_MEMORY, ".memory.html", memory_write},
};

/* Makes DIR/NAME.end of DIR/NAME.pt.trace.json[.gz], or DIR/.NAME.end.part until it is whole. False: too long. */
static bool path_make(char *out, size_t size, const char *trace_path, const char *end, bool is_whole)
{
    const char *const name = kp_path_base(trace_path), *const json = strstr(name, ".pt.trace.json");
    const int dir = (int)(name - trace_path), bytes = json ? (int)(json - name) : (int)strlen(name);
    return snprintf(out, size, "%.*s%s%.*s%s%s", dir, trace_path, is_whole ? "" : ".", bytes, name, end,
                    is_whole ? "" : ".part") < (int)size;
}

bool kp_extras_exist(unsigned which, const char *trace_path)
{
    char path[4096];
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++)
        if ((which & extras[i].which) && path_make(path, sizeof path, trace_path, extras[i].end, true) &&
            kp_io_exists(path))
            return true;
    return false;
}

static int extra_write(struct kp_extras *x, const struct extra *extra)
{
    char path[4096];
    if (!path_make(path, sizeof path, x->path, extra->end, true) ||
        !path_make(x->temporary, sizeof x->temporary, x->path, extra->end, false)) {
        x->temporary[0] = 0;
        return -ENAMETOOLONG;
    }
    FILE *out = kp_rt_fopen(x->temporary, x->owner);
    if (!out) {
        x->temporary[0] = 0; /* a file of that name is not this one */
        return errno ? -errno : -EIO;
    }
    bool any = extra->write(x, out);
    int rc = kp_rt_give(out, x->owner);
    if (fclose(out)) rc = -EIO;
    if (!rc) rc = x->error;
    if (!rc && any) rc = kp_io_rename_new(x->temporary, path);
    if (rc || !any) kp_io_unlink(x->temporary);
    x->temporary[0] = 0;
    x->written |= !rc && any ? extra->which : 0;
    return rc;
}

static int write_all(void *context)
{
    struct kp_extras *x = context;
    char why[256];
    struct kp_kineto_parser *parser = x->parser;
    x->parser = NULL; /* closed by what follows */
    int rc = kp_kineto_finish(&x->trace, x->trace, parser, 0, "trace", why, sizeof why), first = 0;
    if (rc) return rc;
    if (kp_tree_build(&x->tree, x->trace) < 0) return -E2BIG;
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        if (!(x->which & extras[i].which)) continue;
        if (i == 1 || (i == 2 && !(x->which & KP_EXTRA_STACKS))) kp_tree_fill_stacks(&x->tree, true);
        if (i == 1) kp_tree_set_stacks(&x->tree);
        if (i == 2) kp_tree_set_forward_stacks(&x->tree); /* as in kprof memory */
        rc = extra_write(x, &extras[i]);
        first = first ? first : rc;
    }
    return first;
}

int kp_extras_write(struct kp_extras *x, const char *trace_path, unsigned *written)
{
    x->path = trace_path;
    if (!x->error) x->error = kp_rt_run(write_all, x);
    if (x->temporary[0]) /* memory ran out while it was written */
        kp_io_unlink(x->temporary);
    *written = x->written;
    return x->error;
}

void kp_extras_close(struct kp_extras *x)
{
    if (!x || kp_rt_end()) return;
    if (x->parser) kp_kineto_parser_close(x->parser);
    kp_tree_fini(&x->tree);
    kp_kineto_close(x->trace);
    free(x);
}
