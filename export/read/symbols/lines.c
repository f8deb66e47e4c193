// SPDX-License-Identifier: Apache-2.0
/*
 * lines.c - finds functions, inlined functions and source lines of machine-code frames, for every command that shows
 * them
 *
 * A file is read only if it has the recorded build id. Otherwise a debug file with that build id serves. Each address
 * is looked up once.
 */
#include "export/read/symbols/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_filecheck.h"
#include "export/read/files/budget.h"
#include "export/read/symbols/debugfile.h"
#include "export/read/symbols/elfhead.h"
#include "export/show/plainname.h"
#include "export/show/say.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/stringtable.h"

enum { PLACES_MOST = 64 };

struct line_module {
    char *path, *build_id;
    struct kp_debugfile *file;  /* NULL: no file to read */
    struct kp_keyindex answers; /* rows: struct answer, by address */
};
struct answer {
    uint32_t first, n; /* first: index in `told` */
};
struct kp_lines {
    const char *command;
    struct kp_lines_options wish;
    struct kp_places places;
    struct line_module *modules;
    size_t modules_n, modules_capacity, last; /* last: the module found last */
    struct kp_place *told;
    size_t told_n, told_capacity;
    bool is_told; /* the user was told that libdw is missing */
};

/* ---- modules ---- */

/* Returns 0, or -errno without a readable ELF file. A spool's path may name a pipe, which is not opened. */
static int build_id_read(const char *path, char out[KP_BUILD_ID_TEXT])
{
    const int fd = kp_filecheck_open_plain(path), rc = fd < 0 ? fd : kp_elfhead_build_id(fd, out);
    if (fd >= 0) close(fd);
    return rc;
}

static bool has_build_id(const char *path, const char *build_id)
{
    char id[KP_BUILD_ID_TEXT];
    return build_id_read(path, id) == 0 && strcmp(id, build_id) == 0;
}

/* Raises the command's limits by what this file of debug information may cost. */
static void allow_for(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0) kp_budget_more((uint64_t)st.st_size);
}

/* Tries DIR/.build-id/ab/cdef.debug for each absolute DIR of the debug path. */
static struct kp_debugfile *by_build_id(const struct kp_lines *l, const char *build_id)
{
    const char *dirs = l->wish.debug_path ? l->wish.debug_path : "/usr/lib/debug";
    struct kp_debugfile *found = NULL;
    while (strlen(build_id) > 2 && *dirs && !found) {
        const size_t bytes = strcspn(dirs, ":");
        char file[4096];
        snprintf(file, sizeof file, "%.*s/.build-id/%.2s/%s.debug", (int)bytes, dirs, build_id, build_id + 2);
        if (*dirs == '/' && has_build_id(file, build_id)) {
            allow_for(file);
            found = kp_debugfile_open(file, l->wish.debug_path);
        }
        dirs += bytes + (dirs[bytes] == ':');
    }
    return found;
}

/* Names of kernel pages and of libraries without a file do not begin with a slash. */
static bool is_file(const char *path) { return path[0] == '/'; }

static struct kp_debugfile *file_open(struct kp_lines *l, const char *path, const char *build_id)
{
    char id[KP_BUILD_ID_TEXT];
    if (!is_file(path)) return NULL;
    if (!kp_debugfile_can()) {
        if (l->wish.lines && !l->is_told)
            kp_cli_say(stderr, "kprof %s: built without libdw, so there are no source lines", l->command);
        l->is_told = true;
        return NULL;
    }
    if (has_build_id(path, build_id)) {
        allow_for(path);
        return kp_debugfile_open(path, l->wish.debug_path);
    }
    struct kp_debugfile *other = by_build_id(l, build_id);
    if (other) return other;
    if (l->wish.lines)
        kp_cli_say(stderr, "kprof %s: %s%s: no source lines of it", l->command, path,
                   build_id_read(path, id) == 0 ? " (changed file)" : " (file cannot be read)");
    return NULL;
}

static size_t module_find(struct kp_lines *l, const char *path, const char *build_id)
{
    const struct line_module *last = l->modules_n ? &l->modules[l->last] : NULL;
    if (last && strcmp(last->path, path) == 0 && strcmp(last->build_id, build_id) == 0) return l->last;
    for (size_t i = 0; i < l->modules_n; i++)
        if (strcmp(l->modules[i].path, path) == 0 && strcmp(l->modules[i].build_id, build_id) == 0) return l->last = i;
    l->modules = kp_kineto_grow(l->modules, &l->modules_capacity, l->modules_n + 1, sizeof *l->modules);
    l->modules[l->modules_n] = (struct line_module){
        .path = kp_kineto_copy(path), .build_id = kp_kineto_copy(build_id), .file = file_open(l, path, build_id)};
    return l->last = l->modules_n++;
}

/* ---- answers ---- */

static const char *plain_of(void *context, const char *mangled)
{
    (void)context;
    const char *plain = kp_plainname(mangled);
    return plain ? plain : mangled;
}

/* Looks an address up and keeps the places found. */
static void answer_make(struct kp_lines *l, struct kp_debugfile *file, uint64_t at, struct answer *answer)
{
    struct kp_debugplace found[PLACES_MOST];
    const int n = file ? kp_debugfile_find(file, at, l->wish.lines, found, PLACES_MOST) : 0;
    *answer = (struct answer){(uint32_t)l->told_n, (uint32_t)n};
    l->told = kp_kineto_grow(l->told, &l->told_capacity, l->told_n + (size_t)n + 1, sizeof *l->told);
    for (int i = 0; i < n; i++)
        l->told[l->told_n++] = (struct kp_place){found[i].function, found[i].file, found[i].line, i + 1 < n};
}

int kp_lines_find(struct kp_lines *l, const char *path, const char *build_id, uint64_t at, struct kp_place *out,
                  int most)
{
    const size_t number = module_find(l, path, build_id); /* may move the modules */
    struct line_module *const module = &l->modules[number];
    const size_t known = module->answers.count;
    struct answer *const answer = kp_keyindex_row(&module->answers, at, &(struct answer){0}, sizeof *answer);
    if (module->answers.count > known) answer_make(l, module->file, at, answer);
    const int n = (int)answer->n < most ? (int)answer->n : most;
    memcpy(out, l->told + answer->first + (answer->n - (uint32_t)n),
           (size_t)n * sizeof *out); /* leaves out the innermost first */
    return n;
}

static int find(void *context, const struct kp_frame *frame, uint64_t at, struct kp_place *out, int most)
{
    return kp_lines_find(context, frame->path, frame->build_id, at, out, most);
}

/* ---- open, close ---- */

struct kp_lines *kp_lines_open(const char *command, const struct kp_lines_options *wish)
{
    struct kp_lines *l = kp_kineto_room(1, sizeof *l);
    *l = (struct kp_lines){.command = command, .wish = *wish};
    l->places = (struct kp_places){l, find, kp_plainname_can() ? plain_of : NULL, wish->lines, kp_debugfile_can()};
    return l;
}

void kp_lines_close(struct kp_lines *l)
{
    if (!l) return;
    for (size_t i = 0; i < l->modules_n; i++) {
        kp_debugfile_close(l->modules[i].file);
        kp_keyindex_fini(&l->modules[i].answers);
        free(l->modules[i].path);
        free(l->modules[i].build_id);
    }
    free(l->modules);
    free(l->told);
    free(l);
}

const struct kp_places *kp_lines_places(struct kp_lines *l) { return &l->places; }
