// SPDX-License-Identifier: Apache-2.0
/* test_loadunpack.c - loading that decompresses an archive for each item, and loading that only computes */
#include "test/unit/advise/advised.h"

#define LOADER "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
#define NPZ "numpy/lib/_npyio_impl.py(239): __getitem__"
#define DECOMPRESS "<built-in method decompress of zlib.Decompress object at 0x7f00>"
#define STACK "\"Call stack\":\"data.py(21): __getitem__;train.py(9): main\""

enum { STEPS = 12, ITEMS = 4, ITEM_US = 10000 };

/* Each item takes 10 ms: for `call_us` of it data.py:21 calls `call`, which is in `inner` for nearly as long. */
static struct kp_advice items_advise(struct little *t, const char *call, const char *inner, int call_us)
{
    snprintf(t->head, sizeof t->head,
             "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\",\"cores\":\"4\"},");
    for (int i = 0; i < STEPS; i++) {
        const int at = 100000 * i;
        numbered_step(t, i, at, 100000);
        event(t, "user_annotation", LOADER, 1, at, ITEMS * ITEM_US, "");
        for (int k = 0; k < ITEMS; k++) {
            const int from = at + k * ITEM_US;
            event(t, "python_function", "data.py(18): __getitem__", 1, from + 1, ITEM_US - 2,
                  "\"Call stack\":\"train.py(9): main\"");
            event(t, "python_function", call, 1, from + 10, call_us, STACK);
            event(t, "python_function", inner, 1, from + 20, call_us - 20, STACK);
        }
        op(t, "aten::mm", at + ITEMS * ITEM_US, 59000);
    }
    return advise(t);
}

static const struct kp_finding *loading_of(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "data-loading") == 0) return &a->findings[i];
    fail_msg("no finding of data loading");
    return NULL;
}

static const char *change_of(const struct kp_advice *a) { return loading_of(a)->change; }

static void an_array_of_an_npz_that_is_read_for_each_item_is_told(void **state)
{
    const struct kp_advice a = items_advise(*state, NPZ, DECOMPRESS, 6000);
    assert_non_null(strstr(change_of(&a), "Items decompress what they read at data.py:21 __getitem__: "));
    assert_non_null(strstr(change_of(&a), "_npyio_impl.py(239): __getitem__, 4 times a step, is 60 % of loading. "));
    assert_non_null(strstr(change_of(&a), "take the arrays out once, in __init__"));
    assert_string_equal(loading_of(&a)->what, "the step waits for data, which its items decompress at data.py:21 "
                                              "__getitem__ (60 % of loading), and the DataLoader has no workers");
    assert_true(loading_of(&a)->is_at_most); /* each call of Python was recorded */
}

static void other_archives_are_told_without_arrays(void **state)
{
    const struct kp_advice a = items_advise(*state, "gzip.py(324): read", DECOMPRESS, 5000);
    assert_non_null(strstr(loading_of(&a)->what, "which its items decompress at data.py:21 __getitem__ (50 %"));
    assert_non_null(
        strstr(change_of(&a), "4 times a step, is 50 % of loading. Decompress once, before the first epoch"));
    assert_null(strstr(change_of(&a), "npz"));
}

/* Workers do more for such a step than another archive does. */
static void less_than_half_of_it_is_not_the_cause(void **state)
{
    const struct kp_advice a = items_advise(*state, NPZ, DECOMPRESS, 4000);
    assert_string_equal(loading_of(&a)->what, "the step waits for data, because the DataLoader has no workers");
    assert_non_null(strstr(change_of(&a), "is 40 % of loading"));
}

static void little_of_it_is_not(void **state)
{
    const struct kp_advice a = items_advise(*state, NPZ, DECOMPRESS, 2000);
    assert_null(strstr(change_of(&a), "ecompress"));
}

static void items_that_compute_do_not_decompress(void **state)
{
    const struct kp_advice a = items_advise(*state, "numpy/lib/_function_base_impl.py(80): flip",
                                            "<built-in method astype of numpy.ndarray object at 0x7f00>", 6000);
    assert_null(strstr(change_of(&a), "ecompress"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(an_array_of_an_npz_that_is_read_for_each_item_is_told),
        LITTLE(other_archives_are_told_without_arrays),
        LITTLE(less_than_half_of_it_is_not_the_cause),
        LITTLE(little_of_it_is_not),
        LITTLE(items_that_compute_do_not_decompress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
