// SPDX-License-Identifier: Apache-2.0
/* test_occupancy.c - occupancy by CUDA's public rules, with values that real traces have (see
 * test/e2e/test_gputraces.py) or CUDA's own calculator gives */
#include "export/write/gpu/gpu.h"

#include <math.h>
#include <string.h>

#include "test/support/support.h"

static struct kp_rec_device a100(void)
{
    return (struct kp_rec_device){.major = 8,
                                  .warp_size = 32,
                                  .max_threads_per_block = 1024,
                                  .max_threads_per_sm = 2048,
                                  .regs_per_block = 65536,
                                  .regs_per_sm = 65536,
                                  .smem_per_block = 49152,
                                  .smem_per_sm = 167936,
                                  .sms = 108};
}

static struct kp_occupancy of(const struct kp_rec_device *d, uint32_t blocks, uint32_t threads, uint32_t registers,
                              uint32_t smem)
{
    struct kp_rec_kernel k = {
        .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .registers = registers, .static_smem = smem};
    struct kp_occupancy o;
    kp_occupancy_make(&o, d, &k);
    return o;
}

static void the_least_limit_counts_and_is_named(void **state)
{
    struct kp_rec_device d = a100();
    (void)state;
    struct kp_occupancy o = of(&d, 100000, 256, 32, 0);
    assert_int_equal(o.active, 8);
    assert_int_equal(o.limits, KP_LIMIT_WARPS | KP_LIMIT_REGS);
    assert_int_equal(o.percent, 100);
    o = of(&d, 100000, 256, 80, 0); /* 80 * 32 = 2560 a warp: 6 warps a part, 24 in all, 3 blocks */
    assert_int_equal(o.by_regs, 3);
    assert_int_equal(o.limits, KP_LIMIT_REGS);
    assert_int_equal(o.percent, 38);   /* 37.5: half away from zero */
    o = of(&d, 100000, 32, 16, 20000); /* 20000 + 1024 in steps of 128 */
    assert_int_equal(o.smem, 21120);
    assert_int_equal(o.by_smem, 7);
    assert_int_equal(o.limits, KP_LIMIT_SMEM);
    o = of(&d, 100000, 32, 0, 0);
    assert_int_equal(o.by_regs, INT32_MAX);
    assert_int_equal(o.limits, KP_LIMIT_BLOCKS);
}

static void more_than_the_default_shared_memory_is_no_occupancy(void **state)
{
    struct kp_rec_device d = a100();
    (void)state;
    assert_int_equal(of(&d, 100000, 256, 32, 49152).by_smem, 3);
    assert_int_equal(of(&d, 100000, 256, 32, 49153).percent, 0);
}

static void few_blocks_achieve_little(void **state)
{
    struct kp_rec_device d = a100();
    (void)state;
    struct kp_occupancy o = of(&d, 54, 128, 32, 0);
    assert_true(o.blocks_per_sm == 0.5f && o.warps_per_sm == 2.0f);
    assert_int_equal(o.percent, 3);
}

static void compute_capabilities_differ(void **state)
{
    struct kp_rec_device d = a100();
    static const struct {
        uint32_t major, minor;
        int32_t blocks;
    } rows[] = {{6, 0, 32}, {7, 0, 32},  {7, 5, 16},  {8, 0, 32},  {8, 6, 16}, {8, 9, 24},
                {9, 0, 32}, {10, 0, 32}, {10, 1, 24}, {11, 0, 24}, {12, 0, 24}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        d.major = rows[i].major, d.minor = rows[i].minor;
        assert_int_equal(of(&d, 1, 32, 1, 0).by_blocks, rows[i].blocks);
        assert_int_equal(of(&d, 1, 32, 1, 1000).smem, d.major >= 8 ? 2048 : 1024);
    }
    d.major = 6, d.minor = 0; /* two parts, and a check for four */
    assert_int_equal(of(&d, 1, 96, 32, 0).by_regs, 21);
    d.major = 7;
    assert_int_equal(of(&d, 1, 32, 256, 0).by_regs, 8);
    d.major = 6;
    assert_int_equal(of(&d, 1, 32, 256, 0).by_regs, 0);
}

static void nothing_is_said_of_an_unknown_device(void **state)
{
    struct kp_rec_device d = a100();
    (void)state;
    struct kp_occupancy o = of(NULL, 10, 32, 32, 0);
    assert_true(isinf(o.blocks_per_sm) && isinf(o.warps_per_sm));
    assert_int_equal(o.percent, 0);
    d.smem_per_sm = 0;
    assert_int_equal(of(&d, 10, 32, 32, 0).percent, 0);
    d = a100();
    assert_int_equal(of(&d, 10, 0, 32, 0).percent, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_limit_counts_and_is_named),
        cmocka_unit_test(more_than_the_default_shared_memory_is_no_occupancy),
        cmocka_unit_test(few_blocks_achieve_little),
        cmocka_unit_test(compute_capabilities_differ),
        cmocka_unit_test(nothing_is_said_of_an_unknown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
