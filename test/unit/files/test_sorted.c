// SPDX-License-Identifier: Apache-2.0
/* test_sorted.c - lines come in order of time, whether they fit into memory or not */
#include "export/read/files/sorted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/support/support.h"

enum { LINES = 20000 };

struct line {
    int64_t start_ns, dur_ns;
    int number;
};
struct seen {
    const struct line *expected;
    int n;
};

static int order(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->dur_ns != y->dur_ns) return x->dur_ns > y->dur_ns ? -1 : 1;
    return x->number - y->number;
}

/* Some are longer than a piece. */
static size_t text_of(int number, char *text)
{
    const int n = sprintf(text, "line %d ", number);
    const size_t more = number % 5000 == 77 ? 90000 : (size_t)number % 50;
    memset(text + n, 'a' + number % 26, more);
    return (size_t)n + more;
}

static void line_check(void *context, int64_t start_ns, const char *line, size_t bytes)
{
    static char text[100000];
    struct seen *s = context;
    assert_int_equal(start_ns, s->expected[s->n].start_ns);
    assert_int_equal(bytes, text_of(s->expected[s->n].number, text));
    assert_memory_equal(line, text, bytes);
    s->n++;
}

static void lines_come_in_order(size_t piece)
{
    static struct line lines[LINES];
    static char text[100000];
    struct kp_sorted *s = kp_sorted_open(piece, 0);
    srand(3);
    for (int i = 0; i < LINES; i++) {
        lines[i] = (struct line){rand() % 3000 - 100, rand() % 3, i};
        kp_sorted_add(s, lines[i].start_ns, lines[i].dur_ns, text, text_of(i, text));
    }
    qsort(lines, LINES, sizeof *lines, order);
    struct seen seen = {lines, 0};
    assert_int_equal(kp_sorted_each(s, line_check, &seen), 0);
    assert_int_equal(seen.n, LINES);
    kp_sorted_close(s);
}

static void lines_that_fit_come_in_order(void **state)
{
    (void)state;
    lines_come_in_order(0);
}

static void lines_that_do_not_fit_come_in_order(void **state)
{
    (void)state;
    lines_come_in_order(40000);
    lines_come_in_order(1000); /* hundreds of runs */
}

static void nothing_is_nothing(void **state)
{
    struct kp_sorted *s = kp_sorted_open(0, 0);
    (void)state;
    assert_int_equal(kp_sorted_each(s, line_check, NULL), 0);
    kp_sorted_close(s);
}

static void a_folder_without_room_is_told(void **state)
{
    struct kp_sorted *s = kp_sorted_open(10, 0);
    char *before = getenv("TMPDIR");
    (void)state;
    before = before ? strdup(before) : NULL;
    setenv("TMPDIR", "/nowhere/at/all", 1);
    for (int i = 0; i < 10; i++) kp_sorted_add(s, i, 0, "0123456789", 10);
    assert_true(kp_sorted_each(s, line_check, NULL) < 0);
    kp_sorted_close(s);
    if (before) setenv("TMPDIR", before, 1);
    else unsetenv("TMPDIR");
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_fit_come_in_order),
        cmocka_unit_test(lines_that_do_not_fit_come_in_order),
        cmocka_unit_test(nothing_is_nothing),
        cmocka_unit_test(a_folder_without_room_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
