// SPDX-License-Identifier: Apache-2.0
/* test_heapview.c - what is said of the host's heap in a trace: as text, as JSON, of a hostile one */
#include "export/answers/heapview/heapview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/parse/kineto_parse.h"
#include "test/support/support.h"

/* What heapview says of a trace with this behind its events; NULL: nothing. To be freed. */
static char *heap_said(const char *before, const char *object, bool as_json)
{
    char path[512], *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/heap.json", kp_test_tmpdir());
    FILE *file = fopen(path, "we"), *out = open_memstream(&text, &bytes);
    assert_non_null(file);
    fprintf(file, "{\"traceEvents\":[\n  ],\n%s  \"kprof_heap\": %s,\n  \"traceName\": \"a\"\n}\n", before, object);
    fclose(file);
    bool is_there =
        kp_heapview_write(out, &(struct kp_texts){kp_text_file_each, path}, 1, as_json, NULL, NULL, "leaky");
    fclose(out);
    if (is_there) return text;
    assert_int_equal(bytes, 0);
    free(text);
    return NULL;
}

static void the_heap_of_the_host_is_found_and_told(void **state)
{
    static const char object[] =
        "{\"mode\":\"trace\",\"allocations\":3,\"frees\":1,\"bytes\":30,\"unknown_frees\":0,\"live_blocks\":2,\"live_"
        "bytes\":20,"
        "\"peak_bytes\":30,\"peak_ts\":1.000,\"sites\":[\n{\"allocations\":1,\"bytes\":5,\"peak_blocks\":1,\"peak_"
        "bytes\":5,"
        "\"live_blocks\":1,\"live_bytes\":5,\"stack\":[]},\n{\"allocations\":2,\"bytes\":25,\"peak_blocks\":2,"
        "\"peak_bytes\":25,\"live_blocks\":1,\"live_bytes\":15,\"stack\":[\"/a[{{+0x1\",\"/b+0x2\"]}]}";
    static const char unkept[] = "{\"mode\":\"trace\",\"allocations\":8,\"unkept_blocks\":7,\"sites\":[]}";
    enum { PIECE = 1 << 18 };
    char *padding = calloc(1, PIECE + 2), *text = heap_said("", object, false);
    (void)state;
    assert_non_null(strstr(text, "host heap: 3 allocations of 30 B in all, 1 free\n"));
    assert_non_null(strstr(
        text, "most bytes first:\n    15 B in 1 block\n        /a[{{+0x1\n        /b+0x2\n    and 1 more call stack: "
              "-n 0 shows all\n"));
    assert_null(strstr(text, "could not be followed"));
    free(text);
    text = heap_said("", unkept, false);
    assert_non_null(strstr(text, "7 blocks could not be followed: "));
    free(text);
    for (size_t shift = 0; shift < 48; shift++) { /* the key lies across two pieces of what is read */
        memset(padding, ' ', PIECE);
        padding[PIECE - 48 + shift] = '\n';
        padding[PIECE - 47 + shift] = 0;
        text = heap_said(padding, object, true);
        assert_non_null(text);
        assert_true(strncmp(text, "\"kprof_heap\":{\"mode\"", 20) == 0 && strlen(text) == sizeof object - 1 + 13);
        free(text);
    }
    free(padding);
}

/* A hundred kilobytes of gzip hold a million brackets. */
static void a_heap_of_brackets_is_refused(void **state)
{
    const size_t deep = 1000000;
    char *object = malloc(2 * deep + 1);
    (void)state;
    memset(object, '[', deep);
    memset(object + deep, ']', deep);
    object[2 * deep] = 0;
    assert_null(heap_said("", object, false));
    free(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heap_of_the_host_is_found_and_told),
        cmocka_unit_test(a_heap_of_brackets_is_refused),
    };
    return cmocka_run_group_tests_name("heap of a trace as text", tests, NULL, NULL);
}
