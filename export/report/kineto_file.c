// SPDX-License-Identifier: Apache-2.0
/* kineto_file.c - reads the text of a trace file, gzip or plain, piece by piece (the command only) */
#include "export/report/kineto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define READ_BYTES (256u << 10)

/* Returns -errno if gzread() failed, 0 at the end and where a gzip file is cut. */
static int end_of(gzFile file, int got, const char *path, uint64_t total, char *why, size_t why_bytes)
{
    int code = Z_OK, rc = 0;
    const char *text = gzerror(file, &code);
    if (code == Z_ERRNO) rc = errno ? -errno : -EIO;
    else if (got < 0 && code != Z_BUF_ERROR) rc = -EIO;
    if (rc)
        snprintf(why, why_bytes, "%s: byte %llu of the unpacked text: %s", path, (unsigned long long)total,
                 code == Z_ERRNO ? strerror(-rc) : text);
    return rc;
}

/* Gives `take` all text. A gzip file that is cut gives what it has; then the parser finds the JSON cut, too. */
static int take_all(gzFile file, const char *path, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    char *buffer = malloc(READ_BYTES);
    uint64_t total = 0;
    int rc = buffer ? 0 : -ENOMEM;
    while (rc == 0) {
        int got = gzread(file, buffer, READ_BYTES);
        if (got <= 0) {
            rc = end_of(file, got, path, total, why, why_bytes);
            break;
        }
        total += (uint64_t)got;
        rc = take(context, buffer, (size_t)got);
    }
    free(buffer);
    return rc;
}

int kp_text_file_each(const void *path, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    gzFile file = gzopen(path, "rbe");
    if (!file) {
        int rc = errno ? -errno : -ENOMEM;
        snprintf(why, why_bytes, "%s: %s", (const char *)path, strerror(-rc));
        return rc;
    }
    gzbuffer(file, READ_BYTES / 4); /* a plain file is read into our buffer then, without another copy */
    const int rc = take_all(file, path, take, context, why, why_bytes);
    gzclose(file);
    return rc;
}

int kp_kineto_open(struct kp_kineto **out, const char *path, bool keep_args, char *why, size_t why_bytes)
{
    return kp_kineto_read(
        out, &(struct kp_kineto_wish){.texts = {kp_text_file_each, path}, .label = path, .keep_args = keep_args}, why,
        why_bytes);
}
