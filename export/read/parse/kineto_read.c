// SPDX-License-Identifier: Apache-2.0
/* kineto_read.c - reads a whole trace, as a wish says (the command only) */
#include "export/read/kineto/kineto.h"

#include <errno.h>

#include "export/read/parse/kineto_blocks.h"
#include "export/read/parse/kineto_parse.h"

struct reading {
    struct kp_kineto_blocks *blocks;
    const int *stop;
};

static int text_take(void *context, const char *text, size_t bytes)
{
    const struct reading *r = context;
    const int rc = kp_kineto_blocks_feed(r->blocks, text, bytes);
    return rc || !r->stop ? rc : *r->stop;
}

int kp_kineto_read(struct kp_kineto **out, const struct kp_kineto_wish *wish, char *why, size_t why_bytes)
{
    *out = NULL;
    why[0] = 0;
    struct kp_kineto *trace = kp_kineto_new();
    if (!trace) return -ENOMEM;
    trace->keep = wish->keep;
    trace->keep_context = wish->context;
    trace->keep_works = wish->keep_works;
    struct kp_kineto_parser *parser = kp_kineto_parser_open(trace, wish->keep_args);
    struct reading reading = {kp_kineto_blocks_open(trace, parser, wish->keep_args, wish->pieces), wish->stop};
    int rc = wish->texts.each(wish->texts.from, text_take, &reading, why, why_bytes);
    if (rc == 0) rc = kp_kineto_blocks_end(reading.blocks);
    if (rc == 0 && wish->stop) rc = *wish->stop;
    kp_kineto_blocks_close(reading.blocks);
    return kp_kineto_finish(out, trace, parser, rc, wish->label, why, why_bytes);
}
