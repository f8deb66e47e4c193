// SPDX-License-Identifier: Apache-2.0
/* kineto_text.h - a trace out of a text in memory or of a file, for tests of what reads traces */
#pragma once

#include "export/read/kineto/kineto.h"
#include "export/read/parse/kineto_parse.h"

struct kineto_text {
    const char *text;
    size_t bytes;
};

static inline int kineto_text_each(const void *from, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    const struct kineto_text *t = from;
    (void)why, (void)why_bytes;
    return take(context, t->text, t->bytes);
}

static inline int kineto_text_read(struct kp_kineto **out, const char *text, size_t bytes, bool keep_args, char *why,
                                   size_t why_bytes)
{
    const struct kineto_text from = {text, bytes};
    const struct kp_kineto_wish wish = {.texts = {kineto_text_each, &from},
                                        .label = "text",
                                        .keep_args = keep_args,
                                        .keep_works = true,
                                        .lasting_names = true};
    return kp_kineto_read(out, &wish, why, why_bytes);
}

static inline int kineto_file_read(struct kp_kineto **out, const char *path, char *why, size_t why_bytes)
{
    const struct kp_kineto_wish wish = {.texts = {kp_text_file_each, path}, .label = path};
    return kp_kineto_read(out, &wish, why, why_bytes);
}
