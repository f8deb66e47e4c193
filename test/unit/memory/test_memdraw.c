// SPDX-License-Identifier: Apache-2.0
/* test_memdraw.c - what a file gives curve.js to draw */
#include "export/answers/memory/memblocks.h"

#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

static struct kp_mem_block blocks[] = {
    {.from_ns = 100, .to_ns = 500, .bytes = 10, .category = KP_MEM_GRADIENT},
    {.from_ns = 450, .to_ns = 451, .bytes = 1000, .category = KP_MEM_TEMPORARY}, /* between two slices' edges */
};
static struct kp_mem_device device = {.name = "CPU", .count = 2, .before_bytes = 7};
static struct kp_mem_step steps[] = {{90, 100, 1}, {100, 700, 2}, {700, 900, 3}};
static const struct kp_memview view = {.blocks = blocks,
                                       .block_count = 2,
                                       .devices = &device,
                                       .device_count = 1,
                                       .steps = steps,
                                       .step_count = 3,
                                       .begin_ns = 50,
                                       .zero_ns = 50,
                                       .end_ns = 900};

static char *data_of(int64_t from_ns, int64_t to_ns)
{
    const struct kp_mem_show show = {.from_ns = from_ns, .to_ns = to_ns};
    struct kp_mem_curve curve;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    kp_mem_curve_build(&curve, &view, 0, from_ns, to_ns);
    kp_memdraw_data(out, &view, &show, &curve);
    kp_mem_curve_fini(&curve);
    fclose(out);
    return text;
}

static size_t slices_of(const char *text)
{
    size_t n = 0;
    for (text = strstr(text, "\"slices\""); (text = strstr(text, "\n[")); text++) n++;
    return n;
}

static void a_peak_of_a_moment_is_the_peak_of_its_slice(void **state)
{
    (void)state;
    char *text = data_of(100, 899);
    assert_int_equal(strncmp(text, "{\"from\":50,\"span\":799,", 22), 0); /* from the profiler's start */
    assert_non_null(strstr(text, "\"peak\":{\"at\":400,\"total\":1017,\"of\":[0,0,0,1000,0,10,0,0,7]}"));
    assert_non_null(strstr(text, "\n[400,0,0,0,1000,0,10,0,0,7]"));
    assert_non_null(strstr(text, "\"steps\":[[2,50],[3,650]]")); /* step 1 is not shown */
    assert_int_equal(slices_of(text), 800);
    free(text);
}

static void a_time_of_no_length_divides_by_something(void **state)
{
    (void)state;
    char *text = data_of(600, 600);
    assert_non_null(strstr(text, "\"span\":1,"));
    assert_non_null(strstr(text, "\"total\":7,"));
    assert_int_equal(slices_of(text), 800);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peak_of_a_moment_is_the_peak_of_its_slice),
        cmocka_unit_test(a_time_of_no_length_divides_by_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
