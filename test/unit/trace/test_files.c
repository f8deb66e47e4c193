// SPDX-License-Identifier: Apache-2.0
/* test_files.c - names of trace files, and that a file is there whole or not at all (filename.c, sink.c, gz.c) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "collector/base/sys/kp_io.h"
#include "export/kp_export.h"
#include "export/write/out/sink.h"
#include "export/write/trace/filename.h"
#include "test/support/support.h"

static char out[512], final[600];
static struct kp_sink sink;

static void names_are_what_the_viewers_look_for(void **state)
{
    (void)state;
    assert_int_equal(kp_filename_make(out, sizeof out, NULL, "node7.lab", 4242, NULL, 1790857026000000123u, true), 0);
    assert_string_equal(out, "node7.lab_4242.1790857026000000123.pt.trace.json.gz");
    assert_int_equal(kp_filename_make(out, sizeof out, "rank 0/x", "h", 1, NULL, 5, false), 0);
    assert_string_equal(out, "rank_0_x.5.pt.trace.json");
    assert_int_equal(kp_filename_make(out, sizeof out, "", "", 1, NULL, 5, false), 0);
    assert_string_equal(out, "host_1.5.pt.trace.json");
}

static void a_name_that_is_too_long_is_refused(void **state)
{
    char worker[300];
    (void)state;
    memset(worker, 'w', sizeof worker - 1);
    worker[299] = 0;
    assert_int_equal(kp_filename_make(out, sizeof out, worker, "h", 1, NULL, 5, false), -ENAMETOOLONG);
    assert_int_equal(kp_filename_make(out, 10, "w", "h", 1, NULL, 5, false), -ENAMETOOLONG);
}

static void open_sink(const char *name)
{
    snprintf(final, sizeof final, "%s/deep/er/%s", kp_test_tmpdir(), name);
    snprintf(out, sizeof out, "%s/deep/er", kp_test_tmpdir());
    assert_int_equal(kp_sink_open(&sink, out, name, NULL), 0);
}

static void the_final_name_shows_only_a_whole_file(void **state)
{
    (void)state;
    open_sink("a.json");
    assert_int_equal(kp_sink_write(&sink, "hello", 5), 0);
    assert_int_equal(access(final, F_OK), -1);
    assert_null(strstr(sink.temporary + strlen(sink.temporary) - 5, ".json"));
    assert_int_equal(kp_sink_commit(&sink, final), 0);
    assert_int_equal(access(final, F_OK), 0);
    kp_sink_drop(&sink);
    assert_int_equal(access(final, F_OK), 0);
}

static void a_file_that_is_there_is_not_replaced(void **state)
{
    (void)state;
    open_sink("b.json");
    assert_int_equal(kp_sink_commit(&sink, final), 0);
    open_sink("b.json");
    assert_int_equal(kp_sink_commit(&sink, final), -EEXIST);
    strcat(final, "2");
    assert_int_equal(kp_sink_commit(&sink, final), 0); /* the next name is free */
}

static mode_t mode_of(const char *file)
{
    struct stat st;
    assert_int_equal(lstat(file, &st), 0);
    return st.st_mode & 07777;
}

static void nothing_we_make_is_everybodys_to_write(void **state)
{
    (void)state;
    snprintf(out, sizeof out, "%s/open/house", kp_test_tmpdir());
    snprintf(final, sizeof final, "%s/a.json", out);
    const mode_t before = umask(0);
    assert_int_equal(kp_sink_open(&sink, out, "a.json", NULL), 0);
    umask(before);
    assert_int_equal(kp_sink_commit(&sink, final), 0);
    assert_int_equal(mode_of(final), 0664);
    assert_int_equal(mode_of(out), 0775);
    *strrchr(out, '/') = 0;
    assert_int_equal(mode_of(out), 0775);
}

/* Secret until it is another's, then as he wants it. */
static void what_is_given_away_was_nobody_elses_before(void **state)
{
    const struct kp_export_owner owner = {
        .uid = kp_test_has_other_users() ? 4242 : geteuid(), .gid = getegid(), .mode = 0640};
    struct stat st;
    (void)state;
    snprintf(out, sizeof out, "%s/given", kp_test_tmpdir());
    snprintf(final, sizeof final, "%s/a.json", out);
    const mode_t before = umask(0);
    assert_int_equal(kp_sink_open(&sink, out, "a.json", &owner), 0);
    umask(before);
    assert_int_equal(mode_of(sink.temporary), 0600);
    assert_int_equal(kp_sink_commit(&sink, final), 0);
    assert_int_equal(mode_of(final), 0640);
    assert_int_equal(stat(final, &st), 0);
    assert_int_equal(st.st_uid, owner.uid);
    kp_fail_set("give:1:1");
    assert_int_equal(kp_sink_open(&sink, out, "b.json", &owner), 0);
    snprintf(final, sizeof final, "%s/b.json", out);
    assert_int_equal(kp_sink_commit(&sink, final), -EPERM);
    kp_fail_set(NULL);
    kp_sink_drop(&sink);
    assert_int_equal(access(final, F_OK), -1); /* where it cannot be given, there is none */
}

static void a_full_disk_leaves_nothing(void **state)
{
    char temporary[sizeof sink.temporary];
    (void)state;
    open_sink("c.json");
    strcpy(temporary, sink.temporary);
    kp_fail_set("write:1:28");
    assert_int_equal(kp_sink_write(&sink, "hello", 5), -ENOSPC);
    kp_fail_set(NULL);
    kp_sink_drop(&sink);
    assert_int_equal(access(temporary, F_OK), -1);
    assert_int_equal(access(final, F_OK), -1);
}

static char in[3000000], back[sizeof in + 1];

static void text_make(void)
{
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof in; i++) in[i] = (char)((x = x * 1664525u + 1013904223u) >> (i % 3 ? 24 : 31));
}

static size_t piece_at(size_t at) { return at % 70001 < sizeof in - at ? 1 + at % 70001 : sizeof in - at; }

static void gzip_gives_back_every_byte(void **state)
{
    struct kp_gz *gz;
    gzFile f;
    (void)state;
    text_make();
    open_sink("d.json.gz");
    gz = kp_gz_open(&sink);
    assert_non_null(gz);
    for (size_t at = 0; at < sizeof in; at += piece_at(at)) assert_int_equal(kp_gz_write(gz, in + at, piece_at(at)), 0);
    assert_int_equal(kp_gz_finish(gz), 0);
    kp_gz_close(gz);
    assert_int_equal(kp_sink_commit(&sink, final), 0);
    f = gzopen(final, "rb");
    assert_int_equal(gzread(f, back, sizeof back), sizeof in);
    assert_memory_equal(in, back, sizeof in);
    gzclose(f);
}

static void zstd_gives_back_every_byte(void **state)
{
    static char packed[sizeof in];
    (void)state;
    text_make();
    open_sink("e.heap.zst");
    struct kp_zst *zst = kp_zst_open(&sink);
    assert_non_null(zst);
    for (size_t at = 0; at < sizeof in; at += piece_at(at))
        assert_int_equal(kp_zst_write(zst, in + at, piece_at(at)), 0);
    assert_int_equal(kp_zst_finish(zst), 0);
    kp_zst_close(zst);
    assert_int_equal(kp_sink_commit(&sink, final), 0);
    FILE *f = fopen(final, "r");
    assert_non_null(f);
    const size_t bytes = fread(packed, 1, sizeof packed, f);
    fclose(f);
    assert_true(bytes > 0 && bytes < sizeof packed);
    memset(back, 0, sizeof back);
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer from = {packed, bytes, 0};
    ZSTD_outBuffer to = {back, sizeof back, 0};
    assert_int_equal(ZSTD_decompressStream(stream, &to, &from), 0); /* the frame is whole */
    assert_int_equal(from.pos, bytes);
    assert_int_equal(to.pos, sizeof in);
    assert_memory_equal(in, back, sizeof in);
    ZSTD_freeDStream(stream);
}

static void zstd_says_what_failed(void **state)
{
    struct kp_zst *zst;
    char what[32];
    int failed = 0;
    (void)state;
    text_make();
    open_sink("f.heap.zst");
    for (int n = 1; n <= 2; n++) { /* our block, zstd's own */
        snprintf(what, sizeof what, "mmap:%d:12", n);
        kp_fail_set(what);
        zst = kp_zst_open(&sink);
        kp_fail_set(NULL);
        failed += zst == NULL;
        kp_zst_close(zst);
    }
    assert_int_equal(failed, 2);
    zst = kp_zst_open(&sink);
    assert_non_null(zst);
    kp_fail_set("mmap:1:12");
    assert_int_equal(kp_zst_write(zst, in, 1000), -ENOMEM); /* its tables come with the first bytes */
    kp_fail_set("write:1:28");
    assert_int_equal(kp_zst_write(zst, in, sizeof in), -ENOSPC);
    kp_fail_set(NULL);
    kp_zst_close(zst);
    kp_sink_drop(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_what_the_viewers_look_for),
        cmocka_unit_test(a_name_that_is_too_long_is_refused),
        cmocka_unit_test(the_final_name_shows_only_a_whole_file),
        cmocka_unit_test(a_file_that_is_there_is_not_replaced),
        cmocka_unit_test(nothing_we_make_is_everybodys_to_write),
        cmocka_unit_test(what_is_given_away_was_nobody_elses_before),
        cmocka_unit_test(a_full_disk_leaves_nothing),
        cmocka_unit_test(gzip_gives_back_every_byte),
        cmocka_unit_test(zstd_gives_back_every_byte),
        cmocka_unit_test(zstd_says_what_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
