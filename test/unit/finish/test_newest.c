// SPDX-License-Identifier: Apache-2.0
/* test_newest.c - the newest traces stay, the others go with what was made of them */
#include "preload/finish/finish.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/support/support.h"

static char folder[64];

static const char *path_of(int n, const char *end)
{
    static char text[4][160];
    static unsigned turn;
    char *const to = text[turn++ % 4];
    snprintf(to, sizeof text[0], "%s/node.x_1.%d%s", folder, n, end);
    return to;
}

static void file_make(int n, const char *end)
{
    FILE *const out = fopen(path_of(n, end), "w");
    assert_non_null(out);
    fclose(out);
}

static int there(int n, const char *end) { return access(path_of(n, end), F_OK) == 0; }

static void the_newest_stay(void **state)
{
    static const char *const ends[] = {".pt.trace.json.gz", ".table.txt", ".stacks.txt",
                                       ".memory.html",      ".heap.zst",  ".other"};
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kprof-newest-XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (int n = 0; n < 8; n++) {
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) file_make(n, ends[i]);
        kp_newest_note(path_of(n, ends[0]), 3);
        for (int old = 0; old <= n; old++) {
            for (size_t i = 0; i < 5; i++) assert_int_equal(there(old, ends[i]), old > n - 3);
            assert_true(there(old, ".other"));
        }
    }
    kp_newest_forget();
    file_make(8, ends[0]);
    for (int i = 0; i < 4; i++) kp_newest_note(path_of(8, ends[0]), 0);
    assert_true(there(5, ends[0]) && there(8, ends[0]));
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_newest_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
