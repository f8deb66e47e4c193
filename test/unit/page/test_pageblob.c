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
    kp_page_blob_put(&blob, "kind", kinds, 5, 1);
    kp_page_blob_put(&blob, "name", words, 3, 4);
    unsigned char *plain = read_back(&blob, "{\"a\":\"</script>\"}", &bytes);
    memcpy(&size, plain, 4);
    assert_int_equal(size % 8, 0);
    assert_int_equal(bytes, 8 + size + 8 + 12);
    assert_memory_equal(plain + 8, "{\"columns\":{\"kind\":[\"u8\",0,5],\"name\":[\"u32\",8,3]},\"head\":{\"a\":", 60);
    assert_memory_equal(plain + 8 + size, kinds, 5);
    assert_memory_equal(plain + 8 + size + 8, words, 12);
    free(plain);
    kp_page_blob_fini(&blob);
}

static void more_than_a_piece_comes_back(void **state)
{
    enum { COUNT = 300001 };
    uint32_t *words = malloc(COUNT * sizeof *words);
    struct kp_page_blob blob = {0};
    size_t bytes, size = 0;
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) words[i] = i * 2654435761u;
    kp_page_blob_put(&blob, "name", words, COUNT, 4);
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
        cmocka_unit_test(more_than_a_piece_comes_back),
        cmocka_unit_test(an_empty_trace_is_a_directory_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
