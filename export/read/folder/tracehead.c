// SPDX-License-Identifier: Apache-2.0
/* tracehead.c - reads how a trace begins, and tells traces of other names from other JSON by that */
#include "export/read/folder/tracehead.h"

#include <string.h>

#include "export/read/folder/trace_source.h"
#include "export/read/parse/kineto_parse.h"

static int head_take(void *context, const char *text, size_t bytes)
{
    struct kp_tracehead *head = context;
    const size_t room = sizeof head->bytes - 1 - head->used, n = bytes < room ? bytes : room;
    memcpy(head->bytes + head->used, text, n);
    head->used += n;
    head->bytes[head->used] = 0;
    return head->used == sizeof head->bytes - 1; /* enough */
}

void kp_tracehead_read(struct kp_tracehead *head, const char *path)
{
    char why[256];
    head->used = 0;
    head->bytes[0] = 0;
    (void)kp_text_file_each(path, head_take, head, why, sizeof why);
}

bool kp_tracehead_may_be(const char *name)
{
    return *name != '.' && (kp_input_has_end(name, ".json") || kp_input_has_end(name, ".json.gz"));
}

bool kp_tracehead_is_trace(const char *path)
{
    static const char *const keys[] = {"\"traceEvents\"", "\"deviceProperties\"", "\"distributedInfo\""};
    struct kp_tracehead head;
    kp_tracehead_read(&head, path);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strstr(head.bytes, keys[i])) return true;
    return false;
}
