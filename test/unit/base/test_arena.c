// SPDX-License-Identifier: Apache-2.0
/* test_arena.c - pieces are zeroed, aligned, never overlap, and a short memory is reported */
#include "collector/base/sys/kp_arena.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "collector/base/sys/kp_io.h"
#include "test/support/support.h"

static void pieces_are_aligned_and_zeroed(void **state)
{
    (void)state;
    for (size_t n = 0; n < 5000; n += 37) {
        unsigned char *p = kp_arena_alloc(n);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++) assert_int_equal(p[i], 0);
        memset(p, 0xa5, n);
    }
}

static void a_big_piece_gets_its_own_mapping(void **state)
{
    (void)state;
    char *p = kp_arena_alloc((size_t)3 << 20);
    assert_non_null(p);
    p[((size_t)3 << 20) - 1] = 1;
}

enum { THREADS = 4, PIECES = 6000, PIECE = 300 };
static uint32_t *pieces[THREADS][PIECES];

static void *cut(void *arg)
{
    uintptr_t me = (uintptr_t)arg;
    for (uint32_t i = 0; i < PIECES; i++) {
        uint32_t *p = kp_arena_alloc(PIECE);
        if (p == NULL) break;
        for (size_t k = 0; k < PIECE / 4; k++) p[k] = (uint32_t)me << 16 | i;
        pieces[me][i] = p;
    }
    return NULL;
}

static void threads_never_get_the_same_piece(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, cut, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (uint32_t m = 0; m < THREADS; m++)
        for (uint32_t i = 0; i < PIECES; i++) {
            assert_non_null(pieces[m][i]);
            for (size_t k = 0; k < PIECE / 4; k++) assert_int_equal(pieces[m][i][k], m << 16 | i);
        }
}

static void a_map_keeps_its_contents_when_it_grows(void **state)
{
    (void)state;
    char *p = kp_map_alloc(5000);
    assert_non_null(p);
    memset(p, 7, 5000);
    p = kp_map_grow(p, 5000, (size_t)8 << 20);
    assert_non_null(p);
    for (int i = 0; i < 5000; i++) assert_int_equal(p[i], 7);
    assert_int_equal(p[((size_t)8 << 20) - 1], 0);
    kp_map_free(p, (size_t)8 << 20);
    kp_map_free(NULL, 1);
}

static void no_memory_gives_null(void **state)
{
    (void)state;
    errno = EXDEV;
    kp_fail_set("mmap:1+:12");
    assert_null(kp_map_alloc(4096));
    assert_null(kp_arena_alloc((size_t)2 << 20));
    void *small = kp_arena_alloc(16); /* from the block that is there */
    void *p = small;
    for (int i = 0; p && i < 10; i++) p = kp_arena_alloc(200000);
    assert_null(p);
    assert_int_equal(errno, EXDEV); /* a hook may be the one that asks */
    kp_fail_set(NULL);
    assert_non_null(small);
    assert_non_null(kp_arena_alloc(200000));
    assert_null(kp_map_alloc(SIZE_MAX));
}

static bool is_listed(const void *p, size_t bytes)
{
    uintptr_t from, to;
    for (uint32_t i = 0; i < KP_MAP_LARGE_MAX; i++)
        if (kp_map_large(i, &from, &to) && from <= (uintptr_t)p && (uintptr_t)p + bytes <= to) return true;
    return false;
}

static void large_ones_are_listed_as_long_as_they_are_there(void **state)
{
    enum { MB = 1 << 20, MANY = KP_MAP_LARGE_MAX + 20 };
    void *many[MANY];
    (void)state;
    char *p = kp_map_alloc(MB), *small = kp_map_alloc(4096);
    assert_true(is_listed(p, MB));
    assert_false(is_listed(small, 4096));
    p = kp_map_grow(p, MB, 3 * MB);
    assert_true(is_listed(p, 3 * MB));
    kp_map_free(p, 3 * MB);
    assert_false(is_listed(p, 3 * MB));
    kp_map_free(small, 4096);
    for (int i = 0; i < MANY; i++)
        assert_non_null(many[i] = kp_map_alloc(MB)); /* the list has an end, mappings have none */
    for (int i = 0; i < MANY; i++) kp_map_free(many[i], MB);
    assert_false(is_listed(many[0], MB));
    p = kp_map_alloc(MB);
    assert_true(is_listed(p, MB));
    kp_map_free(p, MB);
}

static void huge_pages_are_only_a_wish(void **state)
{
    const size_t bytes = (size_t)4 << 20;
    (void)state;
    for (int i = 0; i < 2; i++) {
        kp_fail_set(i ? "madvise:1+:22" : NULL); /* a kernel that is built without them */
        errno = 77;
        char *p = kp_map_alloc_huge(bytes);
        assert_non_null(p);
        assert_int_equal(errno, 77);
        assert_true(is_listed(p, bytes));
        p[0] = p[bytes - 1] = 1;
        kp_map_free(p, bytes);
    }
    kp_fail_set("mmap:1+:12");
    assert_null(kp_map_alloc_huge(bytes));
    kp_fail_set(NULL);
}

static void an_array_has_room_for_one_more_and_stays_where_there_is_no_memory(void **state)
{
    uint64_t *of = NULL;
    uint32_t n = 0, cap = 0;
    (void)state;
    for (; n < 1000; n++) {
        assert_true(kp_map_room(&of, n, &cap, sizeof *of, 512));
        of[n] = n;
    }
    assert_int_equal(cap, 1024);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(of[i], i);
    const uint64_t *const before = of;
    kp_fail_set("mremap:1+:12");
    assert_false(kp_map_room(&of, cap, &cap, sizeof *of, 512));
    kp_fail_set(NULL);
    assert_ptr_equal(of, before);
    assert_int_equal(cap, 1024);
    kp_map_free(of, cap * sizeof *of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_zeroed),
        cmocka_unit_test(a_big_piece_gets_its_own_mapping),
        cmocka_unit_test(threads_never_get_the_same_piece),
        cmocka_unit_test(a_map_keeps_its_contents_when_it_grows),
        cmocka_unit_test(no_memory_gives_null),
        cmocka_unit_test(an_array_has_room_for_one_more_and_stays_where_there_is_no_memory),
        cmocka_unit_test(large_ones_are_listed_as_long_as_they_are_there),
        cmocka_unit_test(huge_pages_are_only_a_wish),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
