// SPDX-License-Identifier: Apache-2.0
/* test_hash.c - the hash is a part of the file format: fixed values, no cheap collisions */
#include "collector/base/kp_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

static int u64_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void values_never_change(void **state)
{
    (void)state;
    assert_int_equal(kp_hash64("", 0), 0x572292846b3a3969u);
    assert_int_equal(kp_hash64("a", 1), 0x6a1aa7e412029e99u);
    assert_int_equal(kp_hash64("aten::add", 9), 0xfe5bbedc21cc4bf4u);
    assert_int_equal(kp_hash64("aten::_convolution_double_backward", 34), 0x4a8f7fa1499facebu);
}

static void names_that_differ_a_little_do_not_collide(void **state)
{
    enum { N = 200000 };
    static uint64_t seen[N];
    char name[64];
    (void)state;
    for (int i = 0; i < N; i++) {
        size_t n = (size_t)snprintf(name, sizeof name,
                                    i % 2 ? "aten::op_%d" : "autograd::engine::evaluate_function: Op%dBackward0", i);
        seen[i] = kp_hash64(name, n);
    }
    qsort(seen, N, sizeof *seen, u64_order);
    for (int i = 1; i < N; i++) assert_true(seen[i] != seen[i - 1]);
    unsigned low[256] = {0};
    for (int i = 0; i < N; i++) low[seen[i] & 255]++;
    for (int i = 0; i < 256; i++) assert_in_range(low[i], N / 256 * 8 / 10, N / 256 * 12 / 10);
}

static void every_byte_and_the_length_count(void **state)
{
    char b[80] = {0};
    (void)state;
    for (size_t n = 1; n < sizeof b; n++) {
        uint64_t h = kp_hash64(b, n);
        assert_true(h != kp_hash64(b, n - 1));
        for (size_t i = 0; i < n; i++) {
            b[i] ^= 1;
            assert_true(kp_hash64(b, n) != h);
            b[i] ^= 1;
        }
    }
}

static void alignment_does_not_matter(void **state)
{
    char b[64];
    (void)state;
    for (size_t at = 0; at < 8; at++) {
        memcpy(b + at, "aten::native_layer_norm", 23);
        assert_true(kp_hash64(b + at, 23) == kp_hash64("aten::native_layer_norm", 23));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_never_change),
        cmocka_unit_test(names_that_differ_a_little_do_not_collide),
        cmocka_unit_test(every_byte_and_the_length_count),
        cmocka_unit_test(alignment_does_not_matter),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
