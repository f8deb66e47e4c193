// SPDX-License-Identifier: Apache-2.0
/* test_pageblob.c - unit tests of export/answers/page/pageblob.c: what a browser reads back is what was put in */
#include "test/unit/page/little_page.h"

/* Writes the blob and inflates what was written. */
static unsigned char *read_back(const struct kp_page_blob *blob, const char *head, size_t *bytes)
{
    char *text = NULL;
    size_t letters = 0;
    FILE *f = open_memstream(&text, &letters);
    assert_int_equal(kp_page_blob_write(blob, head, strlen(head), f), 0);
    fclose(f);
    unsigned char *plain = inflated(text, letters, bytes);
    free(text);
    return plain;
}

static void columns_come_back_where_the_directory_says(void **state)
{
    const uint32_t words[] = {1, 0xffffffffu, 3};
    const uint8_t kinds[] = {7, 8, 9, 10, 11};
    struct kp_page_blob blob = {0};
    size_t bytes, size = 0;
    (void)state;
    kp_page_blob_put_bytes(&blob, "kind", kinds, 5);
    kp_page_blob_put(&blob, "name", words, 3);
    unsigned char *plain = read_back(&blob, "{\"a\":\"</script>\"}", &bytes);
    memcpy(&size, plain, 4);
    assert_int_equal(size % 8, 0);
    assert_int_equal(bytes, 8 + size + 8 + 12);
    assert_memory_equal(plain + 8, "{\"columns\":{\"kind\":[8,0,5],\"name\":[32,8,3]},\"head\":{\"a\":", 53);
    assert_memory_equal(plain + 8 + size, kinds, 5);
    assert_memory_equal(plain + 8 + size + 8, words, 12);
    free(plain);
    kp_page_blob_fini(&blob);
}

static void a_column_has_the_bits_that_its_numbers_need(void **state)
{
    const uint32_t zeros[] = {0, 0}, bytes[] = {0, 255, 1}, halves[] = {256, 65535}, words[] = {65536};
    struct kp_page_blob blob = {0};
    (void)state;
    kp_page_blob_put(&blob, "zeros", zeros, 2);
    kp_page_blob_put(&blob, "bytes", bytes, 3);
    kp_page_blob_put(&blob, "halves", halves, 2);
    kp_page_blob_put(&blob, "words", words, 1);
    const unsigned bits[] = {0, 8, 16, 32}, at[] = {0, 0, 8, 16}, count[] = {2, 3, 2, 1};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(blob.columns[i].bits, bits[i]);
        assert_int_equal(blob.columns[i].at, at[i]);
        assert_int_equal(blob.columns[i].count, count[i]);
    }
    unsigned char *const plain = columns_of(&blob);
    assert_memory_equal(plain, ((uint8_t[]){0, 255, 1}), 3);
    assert_memory_equal(plain + 8, ((uint16_t[]){256, 65535}), 4);
    free(plain);
    kp_page_blob_fini(&blob);
}

static void a_column_is_deflated_as_it_is_put(void **state)
{
    enum { COUNT = 300001 };
    uint32_t *words = malloc(COUNT * sizeof *words);
    struct kp_page_blob blob = {0};
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) words[i] = 1u << 31 | i % 8;
    kp_page_blob_put(&blob, "name", words, COUNT);
    assert_int_equal(blob.count, COUNT * 4);
    assert_true(blob.capacity < COUNT);
    kp_page_blob_fini(&blob);
    free(words);
}

static void more_than_a_piece_comes_back(void **state)
{
    enum { COUNT = 300001 };
    uint32_t *words = malloc(COUNT * sizeof *words);
    struct kp_page_blob blob = {0};
    size_t bytes, size = 0;
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) words[i] = i * 2654435761u;
    kp_page_blob_put(&blob, "name", words, COUNT);
    unsigned char *plain = read_back(&blob, "{}", &bytes);
    memcpy(&size, plain, 4);
    assert_int_equal(bytes, 8 + size + COUNT * 4);
    assert_memory_equal(plain + 8 + size, words, COUNT * 4);
    free(plain);
    free(words);
    kp_page_blob_fini(&blob);
}

static void an_empty_trace_is_a_directory_alone(void **state)
{
    struct kp_page_blob blob = {0};
    size_t bytes;
    (void)state;
    unsigned char *plain = read_back(&blob, "{}", &bytes);
    assert_int_equal(bytes % 8, 0);
    assert_memory_equal(plain + 8, "{\"columns\":{},\"head\":{}}", 24);
    free(plain);
    kp_page_blob_fini(&blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_come_back_where_the_directory_says),
        cmocka_unit_test(a_column_has_the_bits_that_its_numbers_need),
        cmocka_unit_test(a_column_is_deflated_as_it_is_put),
        cmocka_unit_test(more_than_a_piece_comes_back),
        cmocka_unit_test(an_empty_trace_is_a_directory_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
