// SPDX-License-Identifier: Apache-2.0
/* test_cpu_blocks.c - the table of torch's CPU blocks: each is found once, with its size, from several threads */
#include "preload/torch/cpu_blocks.h"

#include <pthread.h>
#include <stdlib.h>

#include "test/support/support.h"

enum { THREADS = 4, BLOCKS = 20000, ROUNDS = 20 };

static uint64_t address_of(int thread, int block)
{
    return 0x7f0000000000u + ((uint64_t)block * THREADS + (uint64_t)thread) * 64;
}

static bool sum_up(void *context, uint64_t address, int64_t bytes, uint64_t mark)
{
    (void)address;
    if (mark != (uint64_t)bytes * 3) return false; /* each block has its own */
    *(int64_t *)context += bytes;
    return true;
}

static void block_put(uint64_t address, int64_t bytes) { kp_cpu_blocks_put(address, bytes, (uint64_t)bytes * 3); }

static int64_t sum(void)
{
    int64_t all = 0;
    assert_true(kp_cpu_blocks_each(sum_up, &all));
    return all;
}

static void *put_and_take(void *number)
{
    const int thread = (int)(intptr_t)number;
    int64_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++) block_put(address_of(thread, i), i + 1 + round);
        for (int i = 0; i < BLOCKS; i++) wrong += kp_cpu_blocks_take(address_of(thread, i)) != i + 1 + round;
    }
    return (void *)(intptr_t)wrong;
}

static void a_block_is_taken_once_with_its_size(void **state)
{
    (void)state;
    block_put(0x1000, 77);
    assert_int_equal(sum(), 77);
    assert_int_equal(kp_cpu_blocks_take(0x2000), 0);
    assert_int_equal(kp_cpu_blocks_take(0x1000), 77);
    assert_int_equal(kp_cpu_blocks_take(0x1000), 0);
    assert_int_equal(sum(), 0);
}

/* How blocks meet in a bucket is up to the scheduler: one that finds no slot on any level is left out, and counted. */
static void threads_do_not_mix_up_their_blocks(void **state)
{
    pthread_t threads[THREADS];
    uint64_t all = 0;
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_and_take, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        all += (uint64_t)(intptr_t)wrong;
    }
    assert_int_equal(sum(), 0);
    assert_int_equal(all, kp_cpu_blocks_unkept());
    assert_in_range(all, 0, 10);
}

static bool stop(void *context, uint64_t address, int64_t bytes, uint64_t mark)
{
    (void)address, (void)bytes, (void)mark;
    return ++*(int *)context < 3;
}

static void a_walk_stops_where_it_is_told_to(void **state)
{
    int seen = 0;
    (void)state;
    for (int i = 0; i < 10; i++) block_put(address_of(0, i), 1);
    assert_false(kp_cpu_blocks_each(stop, &seen));
    assert_int_equal(seen, 3);
    for (int i = 0; i < 10; i++) assert_int_equal(kp_cpu_blocks_take(address_of(0, i)), 1);
}

/* The table has room for 350,000 blocks. What finds none is counted. */
static void a_block_without_room_is_counted(void **state)
{
    enum { MANY = 500000 };
    const int64_t before = (int64_t)kp_cpu_blocks_unkept();
    int64_t found = 0;
    (void)state;
    for (int i = 0; i < MANY; i++) block_put(address_of(0, i), 1);
    assert_true((int64_t)kp_cpu_blocks_unkept() > before);
    assert_int_equal(sum() + (int64_t)kp_cpu_blocks_unkept() - before, MANY);
    for (int i = 0; i < MANY; i++) found += kp_cpu_blocks_take(address_of(0, i));
    assert_int_equal(found + (int64_t)kp_cpu_blocks_unkept() - before, MANY);
    assert_int_equal(sum(), 0);
}

static int setup(void **state)
{
    (void)state;
    return kp_cpu_blocks_setup(true) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_taken_once_with_its_size),
        cmocka_unit_test(threads_do_not_mix_up_their_blocks),
        cmocka_unit_test(a_walk_stops_where_it_is_told_to),
        cmocka_unit_test(a_block_without_room_is_counted),
    };
    return cmocka_run_group_tests_name("torch's blocks", tests, setup, NULL);
}
