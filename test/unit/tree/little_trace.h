// SPDX-License-Identifier: Apache-2.0
/* little_trace.h - a trace of a few events and its tree, for tests of the report */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/tree/chosen.h"
#include "test/support/kineto_text.h"
#include "test/support/support.h"
#include "test/support/trace_of.h"

struct little {
    char events[262144], head[12288]; /* head: members before traceEvents, each with its comma */
    size_t used;
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_chosen chosen;
};
static const struct kp_choice everything __attribute__((unused)) = {.first_step = -1, .last_step = -1};

/* One event of thread `tid`; start and length in microseconds. */
__attribute__((unused)) static void event(struct little *t, const char *cat, const char *name, int tid, int ts, int dur,
                                          const char *args)
{
    t->used += (size_t)snprintf(t->events + t->used, sizeof t->events - t->used,
                                "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%d,"
                                "\"dur\":%d,\"args\":{%s}}",
                                t->used ? "," : "", cat, name, tid, ts, dur, args);
    assert_true(t->used < sizeof t->events);
}

#define trace_of(t, text) TRACE_OF(event, t, text)

__attribute__((unused)) static void op(struct little *t, const char *name, int ts, int dur)
{
    event(t, "cpu_op", name, 1, ts, dur, "");
}

/* torch.profiler's range of a step; start and length in microseconds. */
__attribute__((unused)) static void numbered_step(struct little *t, int number, int ts, int dur)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    event(t, "user_annotation", name, 1, ts, dur, "");
}

__attribute__((unused)) static void tree_make(struct little *t)
{
    char text[sizeof t->events + sizeof t->head + 32], why[256];
    snprintf(text, sizeof text, "{%s\"traceEvents\":[%s]}", t->head, t->events);
    assert_int_equal(kineto_text_read(&t->trace, text, strlen(text), false, why, sizeof why), 0);
    assert_int_equal(kp_tree_build(&t->tree, t->trace), 0);
    kp_tree_set_forward_stacks(&t->tree);
}

/* Returns what kp_chosen_make() does. */
__attribute__((unused)) static int choose(struct little *t, const struct kp_choice *choice)
{
    static char why[256];
    tree_make(t);
    const int rc = kp_chosen_make(&t->chosen, &t->tree, choice, why, sizeof why);
    assert_true((rc == 0) == (why[0] == 0));
    why[0] = 0;
    return rc;
}

/* Frees what choose() made, so that it can be called again. */
__attribute__((unused)) static void little_forget(struct little *t)
{
    kp_chosen_fini(&t->chosen);
    kp_tree_fini(&t->tree);
    kp_kineto_close(t->trace);
}

__attribute__((unused)) static int little_setup(void **state)
{
    *state = calloc(1, sizeof(struct little));
    return *state ? 0 : -1;
}

__attribute__((unused)) static int little_teardown(void **state)
{
    struct little *t = *state;
    little_forget(t);
    free(t);
    return 0;
}

#define LITTLE(test) cmocka_unit_test_setup_teardown(test, little_setup, little_teardown)
