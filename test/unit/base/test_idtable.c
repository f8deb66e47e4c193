// SPDX-License-Identifier: Apache-2.0
/* test_idtable.c - an id finds its own item, however many there are; without memory the table stays as it was */
#include "collector/base/kp_idtable.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_fail.h"
#include "test/support/support.h"

struct item {
    uint64_t id;
    uint32_t value;
};
enum { IDS = 5000 };

static void ids_find_what_an_array_holds(void **state)
{
    static uint32_t known[IDS];
    struct kp_idtable t = {.item_bytes = sizeof(struct item)};
    (void)state;
    srand(10);
    memset(known, 0, sizeof known);
    for (uint32_t round = 1; round < 20000; round++) {
        const uint32_t i = 1 + (uint32_t)rand() % (IDS - 1);
        struct item *item = kp_idtable_add(&t, (uint64_t)i << 32 | i);
        assert_non_null(item);
        assert_int_equal(item->value, known[i]); /* 0 when it is new */
        item->value = known[i] = round;
    }
    for (uint32_t i = 1; i < IDS; i++) {
        const struct item *item = kp_idtable_find(&t, (uint64_t)i << 32 | i);
        assert_int_equal(item ? item->value : 0, known[i]);
        assert_null(kp_idtable_find(&t, i));
    }
    assert_null(kp_idtable_find(&t, 0));
    kp_idtable_fini(&t);
    assert_null(kp_idtable_find(&t, UINT64_C(1) << 32 | 1));
}

static void without_memory_what_was_there_stays(void **state)
{
    struct kp_idtable t = {.item_bytes = sizeof(struct item)};
    uint64_t id = 0;
    (void)state;
    do {
        kp_fail_set(t.cap ? "mmap:1+" : NULL);
        id++;
    } while (kp_idtable_add(&t, id));
    kp_fail_set(NULL);
    assert_int_equal(t.n, id - 1);
    assert_null(kp_idtable_find(&t, id));
    for (uint64_t i = 1; i < id; i++) assert_non_null(kp_idtable_find(&t, i));
    kp_idtable_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_find_what_an_array_holds),
        cmocka_unit_test(without_memory_what_was_there_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
