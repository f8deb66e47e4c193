// SPDX-License-Identifier: Apache-2.0
/* input.c - finds the traces behind a path: a trace, a folder of them, or a spool, which is exported first */
#include "export/cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/read/kp_read.h"
#include "export/kineto.h"
#include "export/kp_export.h"

static void input_add(struct kp_input *input, char *path, char *label)
{
    input->paths = kp_kineto_grow(input->paths, &input->capacity, input->count + 1, sizeof *input->paths);
    input->labels = kp_kineto_grow(input->labels, &input->label_capacity, input->count + 1, sizeof *input->labels);
    input->paths[input->count] = path;
    input->labels[input->count++] = label;
}

static bool has_end(const char *text, const char *end)
{
    size_t bytes = strlen(text), wanted = strlen(end);
    return bytes >= wanted && strcmp(text + bytes - wanted, end) == 0;
}

static bool is_spool(const char *path)
{
    char magic[8] = "";
    FILE *file = fopen(path, "rbe");
    if (!file)
        return false;
    bool spool = fread(magic, 1, sizeof magic, file) == sizeof magic && memcmp(magic, KP_FORMAT_MAGIC, sizeof magic) == 0;
    fclose(file);
    return spool;
}

/* ---- spools ---- */

static int folder_make(struct kp_input *input)
{
    const char *parent = getenv("TMPDIR");
    if (input->folder)
        return 0;
    if (asprintf(&input->folder, "%s/kprof-XXXXXX", parent && *parent ? parent : "/tmp") < 0)
        input->folder = NULL;
    if (!input->folder)
        return -ENOMEM;
    if (mkdtemp(input->folder))
        return 0;
    int rc = -errno;
    kp_cli_say(stderr, "kprof: %s: no temporary folder: %s", input->folder, strerror(-rc));
    free(input->folder);
    input->folder = NULL;
    return rc;
}

static int cycle_add(struct kp_input *input, struct kp_reader *reader, const char *path, size_t index)
{
    struct kp_cycle cycle;
    struct kp_export_options options = {.dir = input->folder, .loads_cpp = true, .places = input->places};
    struct kp_export_result *result = calloc(1, sizeof *result);
    int rc = result ? kp_reader_cycle(reader, index, &cycle) : -ENOMEM;
    if (rc == 0)
        rc = kp_export_trace(reader, cycle.number, &options, result);
    if (rc == 0) {
        char *label = NULL;
        bool single = kp_reader_cycles(reader) == 1;
        if ((single ? asprintf(&label, "%s", path) : asprintf(&label, "%s cycle %u", path, cycle.number)) > 0)
            input_add(input, strdup(result->path), label);
    } else if (rc != -ENODATA) {
        kp_cli_say(stderr, "kprof: %s: cycle %zu cannot be exported: %s", path, index + 1, strerror(-rc));
    }
    free(result);
    return rc;
}

/* Each cycle of a spool becomes a trace in a folder of its own, which goes when the input is closed. */
static int spool_add(struct kp_input *input, const char *path)
{
    struct kp_reader *reader;
    char why[512] = "unreadable";
    int rc = folder_make(input);
    if (rc)
        return rc;
    rc = kp_reader_open(&reader, path, why, sizeof why);
    if (rc) {
        kp_cli_say(stderr, "kprof: %s%s%s", strstr(why, path) ? "" : path, strstr(why, path) ? "" : ": ", why);
        return rc;
    }
    size_t before = input->count;
    for (size_t i = 0; i < kp_reader_cycles(reader) && (rc == 0 || rc == -ENODATA); i++)
        rc = cycle_add(input, reader, path, i);
    kp_reader_close(reader);
    if (rc && rc != -ENODATA)
        return rc;
    if (input->count == before)
        kp_cli_say(stderr, "kprof: %s: the spool holds no event", path);
    return input->count == before ? -ENODATA : 0;
}

/* ---- folders ---- */

static int trace_filter(const struct dirent *entry)
{
    return has_end(entry->d_name, ".pt.trace.json") || has_end(entry->d_name, ".pt.trace.json.gz");
}

static int spool_filter(const struct dirent *entry)
{
    return has_end(entry->d_name, ".kprof");
}

/* Nobody named it: a pipe would be waited for, and opening a device may do something. */
static bool is_plain(const char *file)
{
    struct stat st;
    bool plain = stat(file, &st) == 0 && S_ISREG(st.st_mode);
    if (!plain)
        fprintf(stderr, "kprof: %s: is no file, skipped\n", file);
    return plain;
}

/* How many files of a kind were added, or -errno. */
static int folder_scan(struct kp_input *input, const char *path, int (*filter)(const struct dirent *))
{
    struct dirent **entries;
    int count = scandir(path, &entries, filter, alphasort), rc = 0;
    if (count < 0) {
        rc = -errno;
        kp_cli_say(stderr, "kprof: %s: %s", path, strerror(-rc));
        return rc;
    }
    int added = 0;
    for (int i = 0; i < count; i++) {
        char *file = NULL;
        if (asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
            file = NULL;
        free(entries[i]);
        if (!file || !is_plain(file)) {
            free(file);
            continue;
        }
        added++;
        if (filter == trace_filter) {
            input_add(input, file, strdup(file));
        } else {
            int failed = spool_add(input, file);
            rc = rc ? rc : failed;
            free(file);
        }
    }
    free(entries);
    return rc ? rc : added;
}

static int folder_add(struct kp_input *input, const char *path)
{
    int count = folder_scan(input, path, trace_filter);
    if (count == 0)
        count = folder_scan(input, path, spool_filter);
    if (count == 0)
        kp_cli_say(stderr, "kprof: %s: no *.pt.trace.json[.gz] and no *.kprof in this folder", path);
    return count > 0 ? 0 : count ? count : -ENOENT;
}

int kp_input_open(struct kp_input *input, const char *path, const struct kp_places *places)
{
    struct stat st;
    *input = (struct kp_input){.places = places};
    if (stat(path, &st) < 0) {
        int rc = -errno;
        kp_cli_say(stderr, "kprof: %s: %s", path, strerror(-rc));
        return rc;
    }
    if (S_ISDIR(st.st_mode))
        return folder_add(input, path);
    if (is_spool(path))
        return spool_add(input, path);
    input_add(input, strdup(path), strdup(path));
    return 0;
}

void kp_input_close(struct kp_input *input)
{
    for (size_t i = 0; i < input->count; i++) {
        if (input->folder && strncmp(input->paths[i], input->folder, strlen(input->folder)) == 0)
            unlink(input->paths[i]);
        free(input->paths[i]);
        free(input->labels[i]);
    }
    if (input->folder)
        rmdir(input->folder);
    free(input->folder);
    free(input->paths);
    free(input->labels);
    memset(input, 0, sizeof *input);
}

int kp_input_each(char **paths, int n, const struct kp_places *places, kp_input_fn fn, void *context)
{
    int worst = KP_EXIT_DONE, rc = KP_EXIT_DONE;
    bool several = n > 1;
    for (int i = 0; i < n; i++) {
        struct kp_input input;
        if (kp_input_open(&input, paths[i], places) < 0)
            worst = KP_EXIT_BAD_INPUT;
        several |= input.count > 1;
        if (places && places->lines && input.count && !input.folder)
            kp_cli_say(stderr, "kprof: %s: a trace has the frames it was written with; lines come from its spool (KPROF_EXPORT=none)", paths[i]);
        for (size_t file = 0; file < input.count; file++)
            if ((rc = fn(context, input.paths[file], input.labels[file], several)) == KP_EXIT_USAGE)
                break; /* no other file mends that */
            else if (rc != KP_EXIT_DONE)
                worst = KP_EXIT_BAD_INPUT;
        kp_input_close(&input);
        if (rc == KP_EXIT_USAGE)
            return rc;
    }
    return worst;
}
