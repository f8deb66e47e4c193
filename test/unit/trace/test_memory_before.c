// SPDX-License-Identifier: Apache-2.0
/* test_memory_before.c - the keys of a trace that tell of blocks allocated before its window */
#include "export/write/trace/memory_before.h"

#include <string.h>

#include "test/support/support.h"

static struct kp_trace trace;
static struct kp_before *before;
static char text[65536];
static size_t used;

static int keep(void *context, const void *data, size_t bytes)
{
    (void)context;
    assert_in_range(bytes, 0, sizeof text - used - 1);
    memcpy(text + used, data, bytes);
    used += bytes;
    return 0;
}

static int begin(void **state)
{
    (void)state;
    memset(&trace, 0, sizeof trace);
    memset(text, 0, sizeof text);
    used = 0;
    trace.base_ns = 1000000;
    before = kp_before_open();
    return before ? kp_json_init(&trace.json, keep, NULL) : -1;
}

static int end(void **state)
{
    (void)state;
    kp_before_close(before);
    kp_json_fini(&trace.json);
    return 0;
}

static void block(uint64_t address, int64_t bytes)
{
    assert_int_equal(kp_before_take(before, &(struct kp_event){.address = address, .bytes = bytes}), 0);
}

/* The record that ends the list. */
static void list_end(int64_t unkept) { block(0, unkept); }

static void freed(uint64_t address, int64_t bytes, uint64_t at_ns)
{
    assert_int_equal(kp_before_freed(before, &(struct kp_event){.address = address, .bytes = bytes, .start_ns = at_ns}),
                     0);
}

static const char *written(void)
{
    assert_int_equal(kp_before_write(before, &trace), 0);
    assert_int_equal(kp_json_flush(&trace.json), 0);
    return text;
}

static void blocks_stand_by_size_and_frees_by_time(void **state)
{
    (void)state;
    block(0x1000, 64);
    block(0x2000, 64);
    block(0x3000, 4096);
    list_end(0);
    freed(0x3000, 0, 1002500);
    assert_string_equal(written(),
                        "  \"kprof_memory_before\": \"64x2 \",\n  \"kprof_memory_freed\": \"2.500:4096 \",\n");
}

static void a_list_that_was_cut_off_is_not_written(void **state)
{
    (void)state;
    block(0x1000, 64);
    freed(0x1000, 0, 1002500);
    assert_string_equal(written(), "");
}

static void a_free_while_the_list_was_made_has_its_own_size(void **state)
{
    (void)state;
    list_end(0);
    freed(0x1000, -128, 1003000);
    freed(0x2000, 0, 1004000); /* nobody knows it */
    assert_string_equal(written(), "  \"kprof_memory_before\": \"\",\n  \"kprof_memory_freed\": \"3.000:128 \",\n");
}

static void an_address_that_is_allocated_again_was_free(void **state)
{
    (void)state;
    block(0x1000, 64);
    list_end(0);
    kp_before_reused(before, 0x1000);
    freed(0x1000, 0, 1005000); /* of the block that the window allocated, which is told elsewhere */
    assert_string_equal(written(), "  \"kprof_memory_before\": \"\",\n  \"kprof_memory_freed\": \"\",\n");
}

static void blocks_without_a_size_are_counted(void **state)
{
    (void)state;
    block(0x1000, 64);
    list_end(3);
    assert_non_null(strstr(written(), "\"64x1 \""));
    assert_non_null(strstr(text, "  \"kprof_memory_unkept\": 3,\n"));
}

static void many_frees_keep_their_order(void **state)
{
    enum { MANY = 3000 }; /* more than the list begins with */
    (void)state;
    list_end(0);
    for (unsigned i = 0; i < MANY; i++) freed(0x1000 + i * 64ull, -(int64_t)(i + 1), 1000000 + i);
    assert_non_null(strstr(written(), " 2.997:2998 2.998:2999 2.999:3000 \""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocks_stand_by_size_and_frees_by_time, begin, end),
        cmocka_unit_test_setup_teardown(a_list_that_was_cut_off_is_not_written, begin, end),
        cmocka_unit_test_setup_teardown(a_free_while_the_list_was_made_has_its_own_size, begin, end),
        cmocka_unit_test_setup_teardown(an_address_that_is_allocated_again_was_free, begin, end),
        cmocka_unit_test_setup_teardown(blocks_without_a_size_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(many_frees_keep_their_order, begin, end),
    };
    return cmocka_run_group_tests_name("memory_before", tests, NULL, NULL);
}
