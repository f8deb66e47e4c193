// SPDX-License-Identifier: Apache-2.0
/* joblist.c - the jobs whose ranks share a folder, by their ids, and the one that the user means */
#include "export/answers/jobs/joblist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/show/say.h"
#include "export/show/units.h"
#include "export/read/kineto/kineto.h"

enum { TEXT_BYTES = 512 };

void kp_joblist_add(struct kp_joblist *list, const char *id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->rows[i].id, id) != 0) continue;
        list->rows[i].ranks++;
        return;
    }
    struct kp_joblist_row *const row = KP_KINETO_NEXT(list->rows, list->count, list->capacity);
    *row = (struct kp_joblist_row){.ranks = 1};
    snprintf(row->id, sizeof row->id, "%s", id);
}

static const char *name_of(const char *id) { return *id ? id : KP_JOBLIST_NONE; }

static bool is_meant(const char *id, const char *wish)
{
    return !wish || strncmp(name_of(id), wish, strlen(wish)) == 0;
}

/* "a (4 ranks), b (1 rank), ...": those that `wish` may mean */
static const char *list_write(const struct kp_joblist *list, const char *wish, char out[TEXT_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < list->count && used + KP_JOBLIST_ID + 40 < TEXT_BYTES; i++)
        if (is_meant(list->rows[i].id, wish))
            used += (size_t)snprintf(out + used, TEXT_BYTES - used, "%s%s (%u rank%s)", used ? ", " : "",
                                     name_of(list->rows[i].id), list->rows[i].ranks, kp_units_s(list->rows[i].ranks));
    return out;
}

const char *kp_joblist_pick(const struct kp_joblist *list, const char *folder, const char *wish)
{
    const struct kp_joblist_row *found = NULL;
    size_t meant = 0;
    char text[TEXT_BYTES] = "";
    for (const struct kp_joblist_row *row = list->rows; row < list->rows + list->count; row++) {
        if (wish && strcmp(name_of(row->id), wish) == 0) return row->id;
        if (!is_meant(row->id, wish)) continue;
        found = row;
        meant++;
    }
    if (meant == 1) return found->id;
    if (!list->count && !wish) return "";
    if (!list->count) kp_cli_fail("ctl", "%s: no job %s: no rank takes part there", folder, wish);
    else if (!meant) kp_cli_fail("ctl", "%s: no job %s: there are %s", folder, wish, list_write(list, NULL, text));
    else
        kp_cli_fail("ctl", "%s has ranks of %zu jobs: name one with --job, its first letters suffice: %s", folder,
                    meant, list_write(list, wish, text));
    return NULL;
}

void kp_joblist_free(struct kp_joblist *list)
{
    free(list->rows);
    *list = (struct kp_joblist){.count = 0};
}
