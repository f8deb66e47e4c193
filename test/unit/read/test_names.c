// SPDX-License-Identifier: Apache-2.0
/* test_names.c - strings are believed when their hash fits, and found by id */
#include "collector/read/reader.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/kp_hash.h"
#include "collector/format/kp_format.h"
#include "test/support/support.h"

static uint8_t chunk[KP_CHUNK_BYTES] __attribute__((aligned(64)));

static uint32_t put(uint32_t at, uint32_t id, const char *bytes, uint32_t len)
{
    struct kp_str *s = (void *)(chunk + at);
    s->id = id, s->len = len, s->hash = kp_hash64(bytes, len);
    memcpy(s->bytes, bytes, len);
    s->magic = KP_STR_MAGIC;
    return at + ((uint32_t)offsetof(struct kp_str, bytes) + len + KP_STR_CELL - 1) / KP_STR_CELL * KP_STR_CELL;
}

static struct kp_names start(void)
{
    memset(chunk, 0, sizeof chunk);
    return (struct kp_names){0};
}

static void name_and_overload_are_split(void **state)
{
    struct kp_names n = start();
    (void)state;
    put(put(64, 1, "aten::add\0Tensor", 16), 2, "aten::mm", 8);
    assert_int_equal(kp_names_add_chunk(&n, chunk, sizeof chunk, 100), 0);
    assert_string_equal(kp_names_get(&n, 1)->name, "aten::add");
    assert_string_equal(kp_names_get(&n, 1)->overload, "Tensor");
    assert_string_equal(kp_names_get(&n, 2)->name, "aten::mm");
    assert_string_equal(kp_names_get(&n, 2)->overload, "");
    assert_null(kp_names_get(&n, 0));
    assert_null(kp_names_get(&n, 3));
    assert_null(kp_names_get(&n, UINT32_MAX));
    kp_names_fini(&n);
}

/* A text that fills its cell has the next cell's magic where its NUL would be. */
static void a_text_without_a_nul_behind_it_is_copied(void **state)
{
    struct kp_names n = start();
    uint32_t room = KP_STR_CELL - (uint32_t)offsetof(struct kp_str, bytes);
    (void)state;
    put(put(64, 1, "abcdefghijklmnopqrst", room), 2, "next", 4);
    assert_int_equal(kp_names_add_chunk(&n, chunk, sizeof chunk, 100), 0);
    assert_int_equal(strlen(kp_names_get(&n, 1)->name), room);
    assert_string_equal(kp_names_get(&n, 2)->name, "next");
    kp_names_fini(&n);
}

/* Each cell claims all that follows it, and hashes to something else: no more than a few times the chunk is hashed for
 * that. */
static void cells_that_claim_the_whole_chunk_are_not_all_hashed(void **state)
{
    (void)state;
    for (uint32_t bad = 3; bad < 200; bad += 190) {
        struct kp_names n = start();
        for (uint32_t i = 0; i < bad; i++) {
            struct kp_str *s = (void *)(chunk + 64 + i * KP_STR_CELL);
            s->id = 1 + i, s->len = (uint32_t)(KP_CHUNK_BYTES - 64 - i * KP_STR_CELL - offsetof(struct kp_str, bytes)),
            s->hash = 7, s->magic = KP_STR_MAGIC;
        }
        put(KP_CHUNK_BYTES - KP_STR_CELL, 50, "good", 4);
        assert_int_equal(kp_names_add_chunk(&n, chunk, sizeof chunk, 500), 0);
        if (bad == 3) assert_string_equal(kp_names_get(&n, 50)->name, "good");
        else assert_null(kp_names_get(&n, 50));
        kp_names_fini(&n);
    }
}

/* The host goes on while its export thread reads: the next cell was empty when the chunk was read, and is written
 * then. */
static void a_name_does_not_run_on_into_a_cell_written_later(void **state)
{
    struct kp_names n = start();
    uint32_t next = put(64, 1, "aten::linear", KP_STR_CELL - (uint32_t)offsetof(struct kp_str, bytes));
    (void)state;
    assert_int_equal(next, 96);
    assert_int_equal(kp_names_add_chunk(&n, chunk, sizeof chunk, 100), 0);
    put(next, 2, "later", 5);
    assert_string_equal(kp_names_get(&n, 1)->name, "aten::linear");
    kp_names_fini(&n);
}

static void a_torn_cell_does_not_hide_the_next(void **state)
{
    struct kp_names n = start();
    uint32_t second = put(64, 1, "a rather long name that takes more than one cell of the chunk", 61),
             third = put(second, 2, "x", 1);
    (void)state;
    put(third, 3, "y", 1);
    chunk[64 + 30] ^= 1; /* the first one's bytes */
    ((struct kp_str *)(void *)(chunk + second))->len = 70000;
    assert_int_equal(kp_names_add_chunk(&n, chunk, sizeof chunk, 100), 0);
    assert_null(kp_names_get(&n, 1));
    assert_null(kp_names_get(&n, 2));
    assert_string_equal(kp_names_get(&n, 3)->name, "y");
    kp_names_fini(&n);
}

static void a_cut_chunk_gives_what_lies_before_the_cut(void **state)
{
    (void)state;
    for (uint32_t cut = 0; cut < 300; cut++) {
        struct kp_names n = start();
        put(put(64, 1, "first", 5), 2, "second", 6);
        assert_int_equal(kp_names_add_chunk(&n, chunk, cut, 100), 0);
        assert_int_equal(kp_names_get(&n, 1) != NULL, cut >= 96);
        assert_int_equal(kp_names_get(&n, 2) != NULL, cut >= 128);
        kp_names_fini(&n);
    }
}

static void ids_beyond_what_the_file_can_hold_are_not_believed(void **state)
{
    struct kp_names n = start();
    (void)state;
    put(put(64, 4000000000u, "far", 3), 9999, "near", 4);
    assert_int_equal(kp_names_add_chunk(&n, chunk, sizeof chunk, 10000), 0);
    assert_null(kp_names_get(&n, 4000000000u));
    assert_string_equal(kp_names_get(&n, 9999)->name, "near"); /* the table grew */
    kp_names_fini(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_and_overload_are_split),
        cmocka_unit_test(a_text_without_a_nul_behind_it_is_copied),
        cmocka_unit_test(cells_that_claim_the_whole_chunk_are_not_all_hashed),
        cmocka_unit_test(a_name_does_not_run_on_into_a_cell_written_later),
        cmocka_unit_test(a_torn_cell_does_not_hide_the_next),
        cmocka_unit_test(a_cut_chunk_gives_what_lies_before_the_cut),
        cmocka_unit_test(ids_beyond_what_the_file_can_hold_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
