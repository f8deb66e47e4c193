// SPDX-License-Identifier: Apache-2.0
/* test_pagerank.c - what a page compares between ranks: parts of a step, collectives */
#include "test/unit/page/little_page.h"

/* What the browser reads of the block: the JSON behind the directory's beginning. The caller frees it. */
static char *rank_of(struct little *t, struct kp_page *page)
{
    static const char begin[] = "<script type=\"text/plain\" class=\"rank\">", end[] = "</script>\n";
    char *text = NULL;
    size_t letters = 0, bytes;
    FILE *f = open_memstream(&text, &letters);
    page->chosen = t->chosen;
    assert_int_equal(kp_page_rank_put(page, "a <b>.json", f), 0);
    fclose(f);
    assert_memory_equal(text, begin, sizeof begin - 1);
    assert_string_equal(text + letters - (sizeof end - 1), end);
    unsigned char *plain = inflated(text + sizeof begin - 1, letters - (sizeof begin - 1) - (sizeof end - 1), &bytes);
    memmove(plain, plain + 8, bytes - 7);
    free(text);
    return (char *)plain;
}

static void a_rank_has_its_head_steps_and_collectives_of_the_host(void **state)
{
    struct little *t = *state;
    snprintf(t->head, sizeof t->head, "\"host_name\":\"node7\",\"distributedInfo\":{\"rank\":3,\"world_size\":4},");
    event(t, "user_annotation", "ProfilerStep#2", 1, 0, 100, "");
    op(t, "aten::mul", 10, 20);
    event(t, "user_annotation", "gloo:all_reduce", 1, 40, 30, "");
    event(t, "user_annotation", "gloosy", 1, 80, 5, "");
    event(t, "user_annotation", "gloo:broadcast", 1, 120, 30, ""); /* in no step */
    struct kp_page page = page_make(t);
    char *rank = rank_of(t, &page);
    assert_non_null(strstr(rank, "\"label\":\"a <b>.json\",\"rank\":\"3\",\"host\":\"node7\""));
    assert_non_null(strstr(rank, "\"gpu\":false,\"steps\":1,\"step\":100000,\"parts\":["));
    assert_non_null(strstr(rank, "\"collectives\":[[\"2 gloo:all_reduce  0\","));
    assert_non_null(strstr(rank, ",40000,30000,0]],\"cut\":false")); /* no other */
    free(rank);
    page_fini(&page);
}

/* Where a GPU has the kernels, the host's ranges are not counted once more. */
static void collectives_of_a_gpu_are_its_kernels(void **state)
{
    struct little *t = *state;
    event(t, "user_annotation", "nccl:all_reduce", 1, 0, 30, "");
    event(t, "kernel", "ncclDevKernel_AllReduce", 7, 40, 25, "");
    event(t, "kernel", "gemm", 7, 70, 5, "");
    struct kp_page page = page_make(t);
    char *rank = rank_of(t, &page);
    assert_non_null(strstr(rank, " ncclDevKernel_AllReduce  0\",40000,"));
    assert_non_null(strstr(rank, ",40000,25000,0]],\"cut\":false")); /* no other */
    assert_non_null(strstr(rank, "\"gpu\":true,\"steps\":0,\"step\":0"));
    free(rank);
    page_fini(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_rank_has_its_head_steps_and_collectives_of_the_host, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(collectives_of_a_gpu_are_its_kernels, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
