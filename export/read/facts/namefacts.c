// SPDX-License-Identifier: Apache-2.0
/* namefacts.c - finds what an event is by its name, and keeps it beside the string */
#include "export/read/facts/namefacts.h"

#include <string.h>

#include "export/read/facts/vendor.h"
#include "export/read/frames/framename.h"

enum how { IS, BEGINS, PART, FUNCTION };

static const struct name_row {
    uint32_t fact;
    enum how how;
    const char *text;
} rows[] = {
#define KP_NAME(fact, how, text) {KP_NAME_##fact, how, text},
#include "export/read/facts/names.def"
#undef KP_NAME
};

/* "file.py(12): function", or such a frame of a stack that is a text. */
static bool has_function(const char *name, const char *function)
{
    const size_t bytes = strlen(function);
    for (const char *at = name; (at = strstr(at, "): "));) {
        at = kp_framename_bare(at + 3);
        if (strncmp(at, function, bytes) == 0 && (!at[bytes] || at[bytes] == ';')) return true;
    }
    return false;
}

static bool is_met(const struct name_row *row, const char *name)
{
    switch (row->how) {
    case IS: return strcmp(name, row->text) == 0;
    case BEGINS: return kp_name_begins(name, row->text);
    case PART: return strstr(name, row->text) != NULL;
    case FUNCTION: return has_function(name, row->text);
    }
    return false;
}

/* No vendor has the name of a call of Python, of which there are most. */
static bool is_python(const char *name) { return *name == '<' || strstr(name, "): "); }

static uint32_t facts_of(const char *name)
{
    uint32_t facts = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_met(&rows[i], name)) facts |= rows[i].fact;
    if (is_python(name)) {
        if (kp_kineto_is_loader_start(name)) facts |= KP_NAME_LOADER | KP_NAME_LOADER_START;
        if (kp_pywait_is_idle(name)) facts |= KP_NAME_IDLE;
        facts |= (uint32_t)kp_workerframe_of(name, strlen(name)) * KP_NAME_WORKERFRAME;
        return facts | (uint32_t)kp_pywait_of(name) * KP_NAME_PYWAIT;
    }
    if (kp_vendor_is_wait(name)) facts |= KP_NAME_WAIT;
    if (kp_vendor_is_comm(name)) facts |= KP_NAME_COMM;
    if (kp_vendor_is_comm_op(name)) facts |= KP_NAME_COMM_OP;
    if (kp_vendor_is_collective(name)) facts |= KP_NAME_COLLECTIVE;
    if (kp_vendor_is_matrix(name)) facts |= KP_NAME_MATRIX;
    return facts;
}

/* A stack has what its frames make, and is else no name. */
static uint32_t stack_facts(const struct kp_kineto *trace, uint32_t id)
{
    uint32_t head, tail, facts = 0;
    for (; kp_strings_is_chain(trace->strings, id, &head, &tail); id = tail) facts |= kp_namefacts(trace, head);
    return (facts | (id ? kp_namefacts(trace, id) : 0)) & KP_NAME_OF_STACKS;
}

uint32_t kp_namefacts_find(const struct kp_kineto *trace, uint32_t id)
{
    uint32_t head, tail;
    const bool is_stack = kp_strings_is_chain(trace->strings, id, &head, &tail);
    const uint32_t facts = is_stack ? stack_facts(trace, id) : facts_of(kp_kineto_text(trace, id));
    return *kp_strings_mark(trace->strings, KP_STRINGS_FACTS, id) = facts | KP_NAME_KNOWN;
}

bool kp_namefacts_has_workers(const struct kp_kineto *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        const uint32_t name = trace->events[i].name;
        if (kp_namefacts(trace, name) & KP_NAME_LOADER && kp_kineto_is_of_workers(kp_kineto_text(trace, name)))
            return true;
    }
    return false;
}
