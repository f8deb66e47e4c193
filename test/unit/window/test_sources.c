// SPDX-License-Identifier: Apache-2.0
/* test_sources.c - when a program counts as working, by sources of this test in place of the real ones */
#include "preload/window/sources.h"

#include <string.h>

#include "test/support/support.h"

static bool is_torch_loaded, has_torch_worked, has_worked_lately, has_cuda_worked;

static bool yes(void) { return true; }
static bool no(void) { return false; }
static bool torch_attach(void) { return is_torch_loaded; }
static bool torch_had(void) { return has_torch_worked; }
static bool torch_had_since(void) { return has_worked_lately; }
static bool cuda_had(void) { return has_cuda_worked; }

#define ABSENT(source) const struct kp_source source = {.name = #source, .attach = no}
const struct kp_source kp_torch_source = {
    .name = "torch", .attach = torch_attach, .had_activity = torch_had, .had_activity_since = torch_had_since};
const struct kp_source kp_cupti_source = {.name = "cuda", .attach = yes, .had_activity = cuda_had};
const struct kp_source kp_heap_source = {.name = "heap", .attach = yes, .had_activity = yes, .starts_active = true};
ABSENT(kp_python_source);
ABSENT(kp_markers_source);
ABSENT(kp_garbage_source);
ABSENT(kp_groups_source);
ABSENT(kp_distributed_source);
ABSENT(kp_nvtx_source);
ABSENT(kp_cuda_hooks_source);
ABSENT(kp_driver_source);
ABSENT(kp_calltrace_source);
ABSENT(kp_stepcalls_source);

/* The heap records from the start. While torch is imported that is no work, so no step by time begins. */
static void the_heap_is_no_work_once_torch_is_loaded(void **state)
{
    bool starts_active;
    (void)state;
    assert_true(kp_sources_attach(&starts_active));
    assert_true(kp_sources_had_activity_since()); /* a program without torch */
    is_torch_loaded = true;
    assert_true(kp_sources_attach(&starts_active));
    assert_true(kp_sources_had_activity());
    assert_false(kp_sources_had_activity_since());
    has_cuda_worked = true; /* CUDA without torch's ops is work */
    assert_true(kp_sources_had_activity_since());
    has_torch_worked = true;
    assert_false(kp_sources_had_activity_since()); /* torch knows best: nothing ran since */
    has_worked_lately = true;
    assert_true(kp_sources_had_activity_since());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_heap_is_no_work_once_torch_is_loaded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
