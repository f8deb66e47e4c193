// SPDX-License-Identifier: Apache-2.0
/* nofolder.c - what to say of a folder that is not there: which folders with traces lie beside it */
#include "export/read/folder/nofolder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "export/show/say.h"

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

void kp_nofolder_say(const char *path, kp_nofolder_fn is_trace)
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
            "kprof: %s: No such file or directory%s%s%s. A run makes its folder when it begins to record; one that "
            "recorded nothing says why " KP_NOFOLDER_WHY,
            path, b.count ? "; beside it have traces: " : "", b.listed, more);
}
