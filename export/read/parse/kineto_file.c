// SPDX-License-Identifier: Apache-2.0
/* kineto_file.c - reads the text of a file, gzip, zstd or plain, piece by piece (the command only) */
#include "export/read/parse/kineto_parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "export/show/say.h"

#define READ_BYTES (64u << 10) /* stays in the cache of a core beside the block that it is copied to */
enum { WINDOW_LOG_MAX = 24 };  /* a zstd file may ask for 2^24 bytes of memory */

/* ---- gzip and plain ---- */

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

static int zlib_each(int fd, const char *path, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    gzFile file = gzdopen(fd, "rb");
    if (!file) {
        close(fd);
        snprintf(why, why_bytes, "%s: %s", path, strerror(ENOMEM));
        return -ENOMEM;
    }
    gzbuffer(file, READ_BYTES / 4); /* a plain file is read into our buffer then, without another copy */
    const int rc = take_all(file, path, take, context, why, why_bytes);
    gzclose(file);
    return rc;
}

/* ---- zstd ---- */

struct unzst {
    ZSTD_DStream *zstd;
    char *packed, *text;
    uint64_t total;
};

/* Gives `take` what these packed bytes hold. */
static int piece_take(struct unzst *z, size_t bytes, kp_text_fn take, void *context, const char **damage)
{
    ZSTD_inBuffer in = {z->packed, bytes, 0};
    ZSTD_outBuffer out;
    int rc = 0;
    do {
        out = (ZSTD_outBuffer){z->text, READ_BYTES, 0};
        const size_t left = ZSTD_decompressStream(z->zstd, &out, &in);
        if (ZSTD_isError(left)) {
            *damage = ZSTD_getErrorName(left);
            return -EIO;
        }
        z->total += out.pos;
        if (out.pos) rc = take(context, z->text, out.pos);
    } while (rc == 0 && (in.pos < in.size || out.pos == out.size));
    return rc;
}

/* As take_all, of a zstd file: one that is cut gives what it has, too. */
static int zstd_take_all(struct unzst *z, int fd, const char *path, kp_text_fn take, void *context, char *why,
                         size_t why_bytes)
{
    const char *damage = NULL;
    int rc = 0;
    while (rc == 0) {
        const ssize_t got = read(fd, z->packed, READ_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) return 0;
        if (got < 0) rc = -errno, damage = strerror(-rc);
        else rc = piece_take(z, (size_t)got, take, context, &damage);
    }
    if (damage)
        snprintf(why, why_bytes, "%s: byte %llu of the unpacked text: %s", path, (unsigned long long)z->total, damage);
    return rc;
}

static int zstd_each(int fd, const char *path, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    struct unzst z = {ZSTD_createDStream(), malloc(READ_BYTES), malloc(READ_BYTES), 0};
    int rc = -ENOMEM;
    if (z.zstd && z.packed && z.text &&
        !ZSTD_isError(ZSTD_DCtx_setParameter(z.zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        rc = zstd_take_all(&z, fd, path, take, context, why, why_bytes);
    else snprintf(why, why_bytes, "%s: %s", path, strerror(ENOMEM));
    ZSTD_freeDStream(z.zstd);
    free(z.packed);
    free(z.text);
    close(fd);
    return rc;
}

/* ---- either ---- */

/* A pipe cannot be looked into first: it is gzip or plain. */
static bool is_zstd(int fd)
{
    static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    unsigned char head[sizeof magic];
    return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, magic, sizeof magic) == 0;
}

int kp_text_file_each(const void *path, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        const int rc = -errno;
        snprintf(why, why_bytes, "%s: %s", (const char *)path, kp_cli_read_why(-rc));
        return rc;
    }
    return (is_zstd(fd) ? zstd_each : zlib_each)(fd, path, take, context, why, why_bytes);
}
