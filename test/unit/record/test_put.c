// SPDX-License-Identifier: Apache-2.0
/* test_put.c - records of one thread: kept in order, separated by cycle, bounded in size */
#include "test/unit/record/walk.h"

static void nothing_is_kept_while_the_gate_is_shut(void **state)
{
    (void)state;
    assert_int_equal(hook_put(0, 10), 0);
}

static void records_are_in_the_file_in_order(void **state)
{
    (void)state;
    gate_record(1);
    for (uint64_t i = 0; i < 20000; i += 10) assert_int_equal(hook_put(i, 10), 10);
    assert_int_equal(spool_check(kp_record_path(), 1), 20000);
    assert_int_equal(kp_record_events(1), 20000);
    assert_int_equal(kp_record_events(2), 0);
}

static void a_warm_gate_and_its_window_share_a_cycle(void **state)
{
    (void)state;
    kp_gate_set(kp_gate_make(2, KP_GATE_ON | KP_GATE_WARM));
    assert_int_equal(hook_put(0, 10), 0); /* hooks keep nothing while it warms up */
    assert_int_equal(kp_record_events(2), 0);
    gate_record(2);
    assert_int_equal(hook_put(0, 10000), 10000);
    assert_int_equal(kp_record_events(2), 10000);
    assert_int_equal(spool_check(kp_record_path(), 2), 10000);
}

static void recycled_chunks_are_used_again(void **state)
{
    uint64_t before = kp_loss_total();
    (void)state;
    kp_gate_set(kp_gate_make(3, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(1, 1000), 0);
    kp_record_recycle(1);
    kp_record_recycle(2);
    assert_int_equal(kp_record_events(1), 0);
    assert_int_equal(kp_record_events(2), 0);
    for (uint32_t cycle = 3; cycle < 60; cycle++) { /* 57 cycles of 4 MB: 3 times what the cap allows */
        gate_record(cycle);
        for (uint64_t i = 0; i < 100000; i += 100) assert_int_equal(hook_put(i, 100), 100);
        kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
        assert_int_equal(kp_record_quiesce(cycle, 1000), 0);
        assert_int_equal(kp_record_events(cycle), 100000);
        kp_record_recycle(cycle);
    }
    assert_int_equal(kp_loss_total(), before);
}

static void a_record_too_big_is_counted(void **state)
{
    uint64_t before = kp_loss_total();
    struct kp_thread *t = kp_thread_get();
    (void)state;
    gate_record(60);
    assert_null(kp_put_reserve(t, kp_gate_get(), KP_MAX_RECORD + 8, KP_KIND_OP));
    assert_non_null(kp_put_reserve(t, kp_gate_get(), KP_MAX_RECORD, KP_KIND_OP));
    assert_int_equal(kp_loss_total(), before + 1);
    struct walk w;
    walk_open(&w, kp_record_path());
    assert_int_equal(w.head->loss[KP_KIND_OP][KP_LOSS_TOO_BIG], 1);
    walk_close(&w);
}

static void records_of_many_sizes_fill_a_chunk_to_its_end(void **state)
{
    struct walk w;
    struct kp_thread *t = kp_thread_get();
    uint64_t sum = 0;
    (void)state;
    gate_record(61);
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t bytes = 16 + i * 8 % 3000;
        struct kp_rec *r = kp_put_reserve(t, kp_gate_get(), bytes, KP_KIND_OP);
        assert_non_null(r);
        assert_true((uintptr_t)r % 8 == 0);
        memset(r, 0xff, bytes);
        *r = (struct kp_rec){.kind = KP_KIND_OP, .size = (uint16_t)bytes};
        kp_put_commit(t, bytes);
        sum++;
    }
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_int_equal(w.records[KP_KIND_OP], sum);
    walk_close(&w);
}

static int setup(void **state)
{
    (void)state;
    open_spool(64, NULL);
    stock_wait(100);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kp_gate_set(0);
    (void)kp_record_close(true, 10000);
    assert_int_equal(access(kp_record_path(), F_OK), -1);
    return hook_put(0, 1) == 0 ? 0 : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_while_the_gate_is_shut),
        cmocka_unit_test(records_are_in_the_file_in_order),
        cmocka_unit_test(a_warm_gate_and_its_window_share_a_cycle),
        cmocka_unit_test(recycled_chunks_are_used_again),
        cmocka_unit_test(a_record_too_big_is_counted),
        cmocka_unit_test(records_of_many_sizes_fill_a_chunk_to_its_end),
    };
    return cmocka_run_group_tests_name("put", tests, setup, teardown);
}
