// SPDX-License-Identifier: Apache-2.0
/* export_bridge.c - the text of a spool's cycle, for who reads traces */
#include "test/fuzz/export_bridge.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/kp_export.h"
#include "test/support/reader_open.h"

enum { TEXT_MOST = 4 << 20 };

int fuzz_export_each(const void *from, int (*take)(void *context, const char *text, size_t bytes), void *context)
{
    struct fuzz_export *f = (struct fuzz_export *)(uintptr_t)from;
    static struct kp_export_result result;
    const struct kp_export_options options = {
        .dir = "/dev/shm", .text = take, .text_context = context, .text_most = TEXT_MOST, .scratch_most = 32 << 20};
    struct kp_reader *reader;
    struct kp_cycle cycle;
    char path[64], why[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
    int rc = test_reader_open(&reader, path, why, sizeof why);
    f->refused = rc != 0;
    if (rc) return rc;
    rc = kp_reader_cycle(reader, f->cycle, &cycle);
    f->refused = rc != 0;
    const int has = rc ? 0 : kp_export_has(reader, cycle.number);
    if (!rc) rc = kp_export_trace(reader, cycle.number, &options, &result);
    if (!f->refused && (has == 0) != (rc == -ENODATA)) abort(); /* both say whether there is a trace */
    kp_reader_close(reader);
    return rc;
}
