// SPDX-License-Identifier: Apache-2.0
/* reader_spool.h - writes a spool, opens it with a reader, and keeps what its events say */
#pragma once

#include "collector/read/kp_read.h"

#include <stdio.h>
#include <string.h>

#include "test/support/reader_open.h"
#include "test/support/spool.h"
#include "test/support/support.h"

struct seen {
    char names[200000]; /* "name name ..." */
    uint64_t n, last_start, steps;
    bool backwards;
    struct kp_event last;
};

static int see(void *context, const struct kp_event *e)
{
    struct seen *s = context;
    if (e->start_ns < s->last_start || e->end_ns < e->start_ns) s->backwards = true;
    s->last_start = e->start_ns;
    if (strlen(s->names) + strlen(e->name) + 2 < sizeof s->names) strcat(strcat(s->names, e->name), " ");
    s->n++;
    s->steps += e->kind == KP_KIND_STEP;
    s->last = *e;
    return 0;
}

static struct seen seen;
static struct kp_reader *r;
static char why[256];

static const char *path(void)
{
    static char p[512];
    snprintf(p, sizeof p, "%s/r.kprof", kp_test_tmpdir());
    return p;
}

static inline int reopen(const struct test_spool *s, size_t bytes)
{
    test_spool_save(s, path(), bytes);
    memset(&seen, 0, sizeof seen);
    return test_reader_open(&r, path(), why, sizeof why);
}
