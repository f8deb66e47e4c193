// SPDX-License-Identifier: Apache-2.0
/* input.c - finds the traces behind a path: a trace, a folder of them, or the cycles of a spool */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_filecheck.h"
#include "collector/read/kp_read.h"
#include "export/kp_export.h"
#include "export/read/files/budget.h"
#include "export/read/files/spoolfile.h"
#include "export/read/folder/spool_export.h"
#include "export/read/folder/trace_source.h"
#include "export/read/folder/tracehead.h"
#include "export/show/say.h"
#include "export/show/units.h"

/* ---- what to say of a folder that is not there: which folders with traces lie beside it ---- */

/* Is a file of this name a trace, or a spool? */
typedef bool (*kp_nofolder_fn)(const char *name);

enum { TRIED_MOST = 300, NAMED_MOST = 5, NEAR_MOST = 3, PATH_BYTES = 4400 };

struct beside {
    kp_nofolder_fn is_trace;
    char folder[PATH_BYTES];                  /* up to its last '/', or "" */
    const char *name;                         /* the one that is not there */
    char near[256], listed[NAMED_MOST * 260]; /* listed: "c8, r2" */
    unsigned letters, count;                  /* letters: in which `near` differs; count: folders with traces */
};

static bool holds_traces(const char *path, kp_nofolder_fn is_trace)
{
    DIR *const names = opendir(path);
    const struct dirent *entry;
    bool is_found = false;
    while (names && !is_found && (entry = readdir(names)) != NULL) is_found = is_trace(entry->d_name);
    if (names) closedir(names);
    return is_found;
}

static int may_be_folder(const struct dirent *entry)
{
    return entry->d_name[0] != '.' &&
           (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN);
}

static void folder_consider(struct beside *b, const char *name)
{
    char path[PATH_BYTES + 300];
    snprintf(path, sizeof path, "%s%s", b->folder, name);
    if (!holds_traces(path, b->is_trace)) return;
    if (kp_config_is_nearer(b->name, name, &b->letters)) snprintf(b->near, sizeof b->near, "%s", name);
    const size_t used = strlen(b->listed);
    if (b->count++ < NAMED_MOST) snprintf(b->listed + used, sizeof b->listed - used, "%s%s", used ? ", " : "", name);
}

/* Names what lies in `folder`; one without end is not read to its end. */
static void beside_find(struct beside *b, const char *path, kp_nofolder_fn is_trace)
{
    struct dirent **entries;
    const char *const slash = strrchr(path, '/');
    *b = (struct beside){.name = slash ? slash + 1 : path, .letters = NEAR_MOST + 1, .is_trace = is_trace};
    if (slash) snprintf(b->folder, sizeof b->folder, "%.*s", (int)(slash + 1 - path), path);
    const int count = scandir(slash ? b->folder : ".", &entries, may_be_folder, alphasort);
    for (int i = 0; i < count; i++) {
        if (i < TRIED_MOST) folder_consider(b, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

/* Says it on stderr, with the folder beside it that may be meant, or with those that have traces. */
static void nofolder_say(const char *path, kp_nofolder_fn is_trace)
{
    char plain[PATH_BYTES], more[40] = "";
    struct beside b;
    size_t bytes = (size_t)snprintf(plain, sizeof plain, "%s", path);
    if (bytes >= sizeof plain) bytes = 0;
    while (bytes > 1 && plain[bytes - 1] == '/') plain[--bytes] = 0;
    beside_find(&b, plain, is_trace);
    if (b.count > NAMED_MOST) snprintf(more, sizeof more, " and %u more", b.count - NAMED_MOST);
    if (*b.near)
        kp_cli_say(stderr, "kprof: %s: No such file or directory (did you mean %s%s?)", path, b.folder, b.near);
    else
        kp_cli_say(
            stderr,
            "kprof: %s: No such file or directory%s%s%s. A run that recorded nothing made no folder, and its last line "
            "says why",
            path, b.count ? "; folders there with traces: " : "", b.listed, more);
}

/* The input owns path and label from here on. */
static void input_add(struct kp_input *input, char *path, char *label)
{
    *KP_KINETO_NEXT(input->of, input->count, input->capacity) =
        (struct kp_trace_source){.input = input, .path = path, .label = label};
}

static bool is_spool(const char *path)
{
    char magic[8] = "";
    FILE *file = fopen(path, "rbe");
    if (!file) return false;
    bool spool =
        fread(magic, 1, sizeof magic, file) == sizeof magic && memcmp(magic, KP_FORMAT_MAGIC, sizeof magic) == 0;
    fclose(file);
    return spool;
}

/* By its name, and by a first byte that no JSON has. */
static bool is_python(const char *path)
{
    FILE *const file = kp_input_has_end(path, ".py") ? fopen(path, "rbe") : NULL;
    const int first = file ? fgetc(file) : '{';
    if (file) fclose(file);
    return first != '{' && first != '[' && first != 0x1f;
}

/* ---- spools ---- */

bool kp_input_is_running(const char *path)
{
    struct kp_file_head head;
    const int fd = kp_filecheck_open_plain(path); /* a pipe would block */
    const bool is_read = fd >= 0 && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head;
    if (fd >= 0) close(fd);
    return is_read && memcmp(head.magic, KP_FORMAT_MAGIC, sizeof head.magic) == 0 &&
           kp_spool_state(&head, path) == KP_SPOOL_RUNNING;
}

static bool running_is_told; /* once for a command */

void kp_input_running_told(void) { running_is_told = true; }

static void running_say(const char *path, bool several)
{
    if (!running_is_told)
        kp_cli_say(stderr, "kprof: %s: %s: what %s recorded so far", path,
                   several ? "programs of it still run" : "its program still runs", several ? "they have" : "it has");
    running_is_told = true;
}

/* A cycle without an event has no trace. */
static int cycle_add(struct kp_input *input, struct kp_reader *reader, const char *path, size_t index)
{
    struct kp_cycle cycle;
    int rc = kp_reader_cycle(reader, index, &cycle);
    if (rc == 0) rc = kp_export_has(reader, cycle.number);
    if (rc < 0)
        kp_cli_say(stderr, "kprof: %s: cycle %zu cannot be exported: %s", path, index + 1, kp_budget_explain(rc));
    if (rc <= 0) return rc;
    const bool single = kp_reader_cycles(reader) == 1;
    char *const label = single ? kp_kineto_copy(path) : kp_kineto_print("%s cycle %u", path, cycle.number);
    input_add(input, kp_kineto_copy(path), label);
    input->of[input->count - 1].is_spool = true;
    input->of[input->count - 1].cycle = index;
    return 0;
}

static int spool_add(struct kp_input *input, const char *path)
{
    struct kp_reader *reader;
    char why[512] = "unreadable";
    int rc = kp_spoolfile_open(&reader, path, NULL, why, sizeof why);
    if (rc) {
        kp_cli_say(stderr, "kprof: %s%s%s", strstr(why, path) ? "" : path, strstr(why, path) ? "" : ": ", why);
        return rc;
    }
    size_t before = input->count;
    for (size_t i = 0; i < kp_reader_cycles(reader) && rc == 0; i++) rc = cycle_add(input, reader, path, i);
    const bool is_wanted = rc == 0 && input->count > before;
    if (is_wanted) { /* read the open file that was checked; if it needs a copy, make it once */
        kp_reader_close(input->reader);
        input->reader = reader;
        input->reader_path = input->of[input->count - 1].path;
    } else {
        kp_reader_close(reader);
    }
    if (rc == 0 && !is_wanted)
        kp_cli_say(stderr, "kprof: %s: %s", path,
                   kp_input_is_running(path) ? "its program still runs, and has recorded nothing yet"
                                             : "the spool holds no event");
    return is_wanted ? 0 : rc ? rc : -ENODATA;
}

/* ---- folders ---- */

bool kp_input_is_trace(const char *name)
{
    return kp_input_has_end(name, ".pt.trace.json") || kp_input_has_end(name, ".pt.trace.json.gz");
}

bool kp_input_is_spool(const char *name) { return kp_input_has_end(name, ".kprof"); }

static bool is_trace_or_spool(const char *name) { return kp_input_is_trace(name) || kp_input_is_spool(name); }

static int trace_filter(const struct dirent *entry) { return kp_input_is_trace(entry->d_name); }

static int spool_filter(const struct dirent *entry) { return kp_input_is_spool(entry->d_name); }

/* The user did not name the file: opening a pipe may block, and opening a device may have effects. */
static bool is_plain(const char *file)
{
    struct stat st;
    bool plain = stat(file, &st) == 0 && S_ISREG(st.st_mode);
    if (!plain) kp_cli_say(stderr, "kprof: %s: is no file, skipped", file);
    return plain;
}

static int other_filter(const struct dirent *entry)
{
    return kp_tracehead_may_be(entry->d_name) && !kp_input_is_trace(entry->d_name);
}

/* How many traces were added, or -errno. With `running` spools are: it counts those of programs that run. */
static int folder_scan(struct kp_input *input, const char *path, int (*filter)(const struct dirent *), int *running)
{
    struct dirent **entries;
    int count = scandir(path, &entries, filter, alphasort), rc = 0;
    if (count < 0) {
        rc = -errno;
        kp_cli_say(stderr, "kprof: %s: %s", path, kp_cli_read_why(-rc));
        return rc;
    }
    int added = 0;
    for (int i = 0; i < count; i++) {
        char *const file = kp_kineto_print("%s/%s", path, entries[i]->d_name);
        free(entries[i]);
        if (!is_plain(file) || (filter == other_filter && !kp_tracehead_is_trace(file))) {
            free(file);
            continue;
        }
        added++;
        if (!running) {
            input_add(input, file, kp_kineto_copy(file));
        } else {
            int failed = spool_add(input, file);
            rc = rc ? rc : failed;
            *running += kp_input_is_running(file);
            free(file);
        }
    }
    free(entries);
    return rc ? rc : added;
}

/* How many spools a folder has, and how many of them are of programs that run. */
static int spools_count(const char *path, int *running)
{
    struct dirent **entries;
    const int count = scandir(path, &entries, spool_filter, NULL);
    *running = 0;
    for (int i = 0; i < count; i++) {
        char *const file = kp_kineto_print("%s/%s", path, entries[i]->d_name);
        *running += kp_input_is_running(file);
        free(file);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return count;
}

/* The spools of a folder with traces are not read: those of programs that run, or were killed. */
void kp_input_mention_spools(const char *path)
{
    int running;
    const int count = spools_count(path, &running);
    if (count <= 0) return;
    if (running == count)
        kp_cli_say(stderr,
                   "kprof: %s: this is of its traces alone. %d program%s still run%s: name the file (*.kprof) to see "
                   "what %s recorded",
                   path, count, kp_units_s(count), count == 1 ? "s" : "", count == 1 ? "it has" : "they have");
    else
        kp_cli_say(stderr,
                   "kprof: %s: this is of its traces alone. %d program%s more %s no trace yet (*.kprof): name the "
                   "file, or run: "
                   "kprof recover %s",
                   path, count, kp_units_s(count), count == 1 ? "has" : "have", path);
}

static int oom_filter(const struct dirent *entry) { return fnmatch("oom-*.json", entry->d_name, 0) == 0; }

static int hang_filter(const struct dirent *entry) { return fnmatch("hang-*.json", entry->d_name, 0) == 0; }

static bool has_files(const char *path, int (*filter)(const struct dirent *))
{
    struct dirent **entries;
    const int count = scandir(path, &entries, filter, NULL);
    for (int i = 0; i < count; i++) free(entries[i]);
    if (count >= 0) free(entries);
    return count > 0;
}

static void nothing_say(const char *path)
{
    if (has_files(path, hang_filter)) {
        kp_cli_say(stderr, "kprof: %s: no traces in this folder, but files of a job that was stuck: kprof hang %s",
                   path, path);
        return;
    }
    if (has_files(path, oom_filter)) {
        kp_cli_say(stderr, "kprof: %s: no traces in this folder, but notes of memory that ran out: kprof memory %s",
                   path, path);
        return;
    }
    kp_cli_say(stderr,
               "kprof: %s: no traces in this folder; record one: kprof run -o %s -- python train.py. A run that "
               "recorded nothing says why in its last line",
               path, path);
}

static int folder_add(struct kp_input *input, const char *path)
{
    int running = 0, count = folder_scan(input, path, trace_filter, NULL);
    if (count > 0) kp_input_mention_spools(path);
    else if (count == 0) count = folder_scan(input, path, spool_filter, &running);
    if (count == 0) count = folder_scan(input, path, other_filter, NULL);
    if (count > 0 && running) running_say(path, count > 1);
    if (count == 0) nothing_say(path);
    return count > 0 ? 0 : count ? count : -ENOENT;
}

int kp_input_open(struct kp_input *input, const char *path, const struct kp_places *places)
{
    struct stat st;
    *input = (struct kp_input){.places = places};
    if (stat(path, &st) < 0) {
        int rc = -errno;
        const bool may_be_folder = rc == -ENOENT && !kp_input_is_spool(path) && !strstr(path, ".json");
        if (may_be_folder) nofolder_say(path, is_trace_or_spool);
        else kp_cli_say(stderr, "kprof: %s: %s", path, kp_cli_read_why(-rc));
        return rc;
    }
    if (S_ISDIR(st.st_mode)) return folder_add(input, path);
    if (is_python(path)) {
        kp_cli_say(stderr, "kprof: %s: a Python program, no trace; this records one: kprof run -- python %s", path,
                   path);
        return -EINVAL;
    }
    if (is_spool(path)) {
        const int rc = spool_add(input, path);
        if (rc == 0 && kp_input_is_running(path)) running_say(path, false);
        return rc;
    }
    input_add(input, kp_kineto_copy(path), kp_kineto_copy(path));
    return 0;
}

void kp_input_close(struct kp_input *input)
{
    kp_reader_close(input->reader);
    for (size_t i = 0; i < input->count; i++) {
        free(input->of[i].path);
        free(input->of[i].label);
    }
    free(input->of);
    memset(input, 0, sizeof *input);
}

/* All cycles of one spool share a budget. */
static int source_give(const char *command, const struct kp_trace_source *source, bool several, kp_input_fn fn,
                       void *context)
{
    if (source == source->input->of || strcmp(source->path, source[-1].path) != 0)
        kp_budget_begin(command, source->path);
    return fn(context, source, several);
}

int kp_input_each(const char *command, char **paths, int n, const struct kp_places *places, kp_input_fn fn,
                  void *context)
{
    int worst = KP_EXIT_DONE, rc = KP_EXIT_DONE;
    bool several = n > 1;
    for (int i = 0; i < n; i++) {
        struct kp_input input;
        kp_budget_begin(command, paths[i]);
        if (kp_input_open(&input, paths[i], places) < 0) worst = KP_EXIT_BAD_INPUT;
        several |= input.count > 1;
        if (places && places->lines && input.count && !input.of[0].is_spool)
            kp_cli_say(
                stderr,
                "kprof: %s: a trace has the frames it was written with; lines come from its spool (KPROF_EXPORT=none)",
                paths[i]);
        for (size_t file = 0; file < input.count; file++)
            if ((rc = source_give(command, &input.of[file], several, fn, context)) == KP_EXIT_USAGE)
                break; /* the next file would fail, too */
            else if (rc != KP_EXIT_DONE) worst = KP_EXIT_BAD_INPUT;
        kp_input_close(&input);
        if (rc == KP_EXIT_USAGE) return rc;
    }
    if (several) kp_budget_begin_all();
    return worst;
}
