// SPDX-License-Identifier: Apache-2.0
/* test_hostwaits.c - which copies the host waits for */
#include "export/read/facts/hostwaits.h"

#include "test/unit/tree/little_trace.h"

static int calls;

/* A call of 100 us, and its copy of 20 us, which begins so many us behind the call's begin. */
static void copy(struct little *t, const char *call, const char *name, int begin)
{
    char args[64];
    const int at = 1000 * ++calls;
    snprintf(args, sizeof args, "\"correlation\":%d", calls);
    event(t, "cuda_runtime", call, 1, at, 100, args);
    event(t, "gpu_memcpy", name, 7, at + begin, 20, args);
}

static void are(struct little *t, const char *expected)
{
    char waits[16] = "";
    struct kp_hostwaits of;
    assert_int_equal(choose(t, &everything), 0);
    kp_hostwaits_find(&of, &t->tree);
    for (size_t i = 0; i < t->tree.count; i++)
        if (kp_tree_event(&t->tree, i)->kind == KP_KINETO_RUNTIME) strcat(waits, kp_hostwaits_is(&of, i) ? "w" : ".");
        else assert_false(kp_hostwaits_is(&of, i));
    assert_string_equal(waits, expected);
    kp_hostwaits_fini(&of);
}

static void a_copy_of_pageable_memory_waits_once_it_outlasts_its_begin(void **state)
{
    struct little *t = *state;
    copy(t, "cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", 78);
    copy(t, "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)", 78);
    copy(t, "cuMemcpyDtoHAsync_v2", "Memcpy DtoH (Device -> Pageable)", 78);
    copy(t, "hipMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", 78);
    copy(t, "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)", 102); /* put into a buffer */
    are(*state, "wwww.");
}

static void no_other_copy_does(void **state)
{
    struct little *t = *state;
    copy(t, "cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)", 50);
    copy(t, "cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)", 50);
    copy(t, "cudaGraphLaunch", "Memcpy DtoH (Device -> Pageable)", 50);
    copy(t, "cudaMemcpy", "Memcpy DtoH (Device -> Pageable)", 50); /* by its name */
    are(*state, "...w");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_copy_of_pageable_memory_waits_once_it_outlasts_its_begin),
        LITTLE(no_other_copy_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
