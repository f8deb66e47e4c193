// SPDX-License-Identifier: Apache-2.0
/* test_sort.c - items come out as qsort would put them, and a heap gives the first one each time */
#include "collector/base/kp_sort.h"

#include <stdlib.h>

#include "test/support/support.h"

struct item {
    uint64_t key, number;
    char more[40];
};

static bool is_before(const void *left, const void *right, const void *context)
{
    const struct item *a = left, *b = right;
    if (*(const bool *)context) return b->key != a->key ? b->key < a->key : b->number < a->number;
    return a->key != b->key ? a->key < b->key : a->number < b->number;
}

static int compare(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static void fill(struct item *items, size_t n, unsigned span)
{
    for (size_t i = 0; i < n; i++) {
        items[i] = (struct item){.key = (uint64_t)rand() % span, .number = i};
        memset(items[i].more, (int)i, sizeof items[i].more);
    }
}

static void items_come_out_as_qsort_puts_them(void **state)
{
    static struct item items[1500], same[1500];
    (void)state;
    srand(7);
    for (unsigned round = 0; round < 300; round++) {
        const size_t n = round < 40 ? round : (size_t)rand() % 1500;
        const bool is_down = round % 2;
        fill(items, n, round % 3 ? 20 : 1u << 30);
        memcpy(same, items, n * sizeof *items);
        kp_sort(items, sizeof *items, n, is_before, &is_down);
        qsort(same, n, sizeof *same, compare);
        for (size_t i = 0; i < n; i++) assert_memory_equal(&items[i], &same[is_down ? n - 1 - i : i], sizeof *items);
    }
}

static void a_heap_gives_the_first_each_time(void **state)
{
    struct item heap[300];
    const bool up = false;
    (void)state;
    srand(8);
    for (unsigned round = 0; round < 100; round++) {
        size_t n = (size_t)rand() % 300;
        uint64_t last = 0;
        fill(heap, n, 50);
        kp_heap_make(heap, sizeof *heap, n, false, is_before, &up);
        for (unsigned moves = 0; n; moves++) {
            assert_true(heap[0].key >= last);
            last = heap[0].key;
            if (moves < 200) heap[0].key += (uint64_t)rand() % 9;
            else heap[0] = heap[--n];
            if (n) kp_heap_sift(heap, sizeof *heap, 0, n, false, is_before, &up);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_out_as_qsort_puts_them),
        cmocka_unit_test(a_heap_gives_the_first_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
