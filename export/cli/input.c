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

#include "export/kineto.h"

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

static int trace_filter(const struct dirent *entry)
{
    return has_end(entry->d_name, ".pt.trace.json") || has_end(entry->d_name, ".pt.trace.json.gz");
}

static int folder_add(struct kp_input *input, const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, trace_filter, alphasort);
    if (count < 0) {
        fprintf(stderr, "kprof: %s: %s\n", path, strerror(errno));
        return -errno;
    }
    for (int i = 0; i < count; i++) {
        char *file = NULL;
        if (asprintf(&file, "%s/%s", path, entries[i]->d_name) > 0)
            input_add(input, file, strdup(file));
        free(entries[i]);
    }
    free(entries);
    if (count == 0)
        fprintf(stderr, "kprof: %s: no *.pt.trace.json or *.pt.trace.json.gz in this folder\n", path);
    return count ? 0 : -ENOENT;
}

int kp_input_open(struct kp_input *input, const char *path)
{
    struct stat st;
    memset(input, 0, sizeof *input);
    if (stat(path, &st) < 0) {
        int rc = -errno;
        fprintf(stderr, "kprof: %s: %s\n", path, strerror(-rc));
        return rc;
    }
    if (S_ISDIR(st.st_mode))
        return folder_add(input, path);
    input_add(input, strdup(path), strdup(path));
    return 0;
}

void kp_input_close(struct kp_input *input)
{
    for (size_t i = 0; i < input->count; i++) {
        if (input->folder)
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
