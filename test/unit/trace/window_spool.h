// SPDX-License-Identifier: Apache-2.0
/* window_spool.h - a spool with a window of ops in it, and the trace that is made of it */
#pragma once

#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/text/kp_jsonread.h"
#include "export/kp_export.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"
#include "test/support/support.h"

/* Ticks are ns of the Unix epoch; the window is [BEGIN, BEGIN + 1000000). A trace counts from BASE. */
#define BEGIN 1790857026000000000u
#define BASE ((BEGIN / 1000000000u) / 7889238u * 7889238u * 1000000000u)
#define AT(ns) (BEGIN + (uint64_t)(ns))

static struct test_spool spool;
static uint32_t meta, main_chunk;
static char text[1 << 21];
static struct kp_export_result result;
static const char *fails; /* which calls fail while a trace is made (kp_fail.h) */

static void window_begin(void)
{
    test_spool_init(&spool);
    test_spool_head(&spool)->clock_kind = KP_CLOCK_MONO;
    test_spool_head(&spool)->start_real_ns = BEGIN;
    meta = test_spool_chunk(&spool, KP_CHUNK_META, 0, 4242, 1, "python");
    test_spool_clock(&spool, meta, AT(0) - 1000, AT(0) - 1000, AT(0) - 1000);
    test_spool_cycle(&spool, meta, 1, AT(0), AT(1000000), 0);
    main_chunk = test_spool_chunk(&spool, KP_CHUNK_DATA, 1, 4242, 1, "python");
}

static uint32_t name(const char *s) { return s ? test_spool_name(&spool, s, (uint32_t)strlen(s)) : 0; }

static void op(const char *s, uint64_t from, uint64_t to, uint8_t scope)
{
    test_spool_op(&spool, main_chunk,
                  &(struct test_op){
                      .name = name(s), .start = AT(from), .ticks = to - from, .scope = scope, .rt_tid = 1, .seq = -1});
}

static int export_now(void)
{
    static char path[512], dir[512];
    struct kp_reader *r;
    char why[256] = "";
    snprintf(path, sizeof path, "%s/t.kprof", kp_test_tmpdir());
    snprintf(dir, sizeof dir, "%s/out", kp_test_tmpdir());
    test_spool_save(&spool, path, 0);
    test_spool_free(&spool);
    if (test_reader_open(&r, path, why, sizeof why)) fail_msg("%s", why);
    kp_fail_set(fails);
    int rc = kp_export_trace(r, 1, &(struct kp_export_options){.dir = dir, .loads_cpp = true}, &result);
    kp_fail_set(NULL);
    kp_reader_close(r);
    if (rc) return rc;
    FILE *f = fopen(result.path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f), offset = 0;
    fclose(f);
    text[n] = 0;
    const char *bad = "";
    if (kp_jsonread_check_object(text, n, &offset, &bad)) fail_msg("%s at %zu: %.60s", bad, offset, text + offset);
    return 0;
}

/* The line of the trace with this in it. */
static const char *line_of(const char *part)
{
    static char line[4096];
    const char *at = strstr(text, part);
    if (!at) fail_msg("not in the trace: %s\n%.6000s", part, text);
    const char *from = at;
    while (from > text && from[-1] != '\n') from--;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(from, "\n"), from);
    return line;
}

static void assert_has(const char *line, const char *part)
{
    if (!strstr(line, part)) fail_msg("%s\nis not in: %s", part, line);
}

static int count(const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) n++;
    return n;
}
