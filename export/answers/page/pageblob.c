// SPDX-License-Identifier: Apache-2.0
/*
 * pageblob.c - a trace's data for the page: columns of numbers, deflated, in base64
 *
 * Base64 has no letter that HTML knows. So no text of a trace can end the element that holds it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export/answers/page/pageparts.h"

enum { ALIGN = 8, PIECE = 48 * 1024, LEVEL = 6 };

static void bytes_add(struct kp_page_blob *blob, const void *bytes, size_t count)
{
    if (!count) return;
    blob->bytes = kp_kineto_grow(blob->bytes, &blob->capacity, blob->count + count, 1);
    memcpy(blob->bytes + blob->count, bytes, count);
    blob->count += count;
}

static void column_begin(struct kp_page_blob *blob, const char *name, unsigned bits, size_t count)
{
    static const char zeros[ALIGN];
    bytes_add(blob, zeros, (ALIGN - blob->count % ALIGN) % ALIGN);
    blob->columns[blob->column_count++] = (struct kp_page_column){name, bits, blob->count, count};
}

void kp_page_blob_put_bytes(struct kp_page_blob *blob, const char *name, const void *items, size_t count)
{
    if (blob->column_count == KP_PAGE_COLUMNS_MAX) return;
    column_begin(blob, name, 8, count);
    bytes_add(blob, items, count);
}

/* As few bits as the largest item has. */
void kp_page_blob_put(struct kp_page_blob *blob, const char *name, const uint32_t *items, size_t count)
{
    uint32_t all = 0;
    if (blob->column_count == KP_PAGE_COLUMNS_MAX) return;
    for (size_t i = 0; i < count; i++) all |= items[i];
    const unsigned bits = !all ? 0 : all <= UINT8_MAX ? 8 : all <= UINT16_MAX ? 16 : 32;
    column_begin(blob, name, bits, count);
    if (bits == 32) bytes_add(blob, items, count * sizeof *items);
    for (size_t i = 0; bits == 8 && i < count; i++) bytes_add(blob, &(uint8_t){(uint8_t)items[i]}, 1);
    for (size_t i = 0; bits == 16 && i < count; i++) bytes_add(blob, &(uint16_t){(uint16_t)items[i]}, 2);
}

/* ---- base64 ---- */

struct base64 {
    FILE *out;
    unsigned char left[3];
    unsigned count;
};

static void three_put(FILE *out, const unsigned char *b, unsigned count)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned word = (unsigned)b[0] << 16 | (unsigned)b[1] << 8 | b[2];
    char four[4] = {letters[word >> 18], letters[word >> 12 & 63], letters[word >> 6 & 63], letters[word & 63]};
    for (unsigned i = count + 1; i < 4; i++) four[i] = '=';
    fwrite(four, 1, sizeof four, out);
}

static void base64_put(struct base64 *b, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        b->left[b->count++] = bytes[i];
        if (b->count < 3) continue;
        three_put(b->out, b->left, 3);
        b->count = 0;
    }
}

static void base64_end(struct base64 *b)
{
    if (!b->count) return;
    memset(b->left + b->count, 0, 3 - b->count);
    three_put(b->out, b->left, b->count);
}

/* ---- deflate ---- */

static int part_put(z_stream *z, struct base64 *to, const void *bytes, size_t count, int flush)
{
    static unsigned char room[PIECE];
    const unsigned char *at = bytes;
    do {
        const uInt take = count > PIECE ? PIECE : (uInt)count;
        z->next_in = (Bytef *)(uintptr_t)at;
        z->avail_in = take;
        if (take) at += take; /* an empty blob has no bytes */
        count -= take;
        do {
            z->next_out = room;
            z->avail_out = sizeof room;
            if (deflate(z, count ? Z_NO_FLUSH : flush) == Z_STREAM_ERROR) return -EINVAL;
            base64_put(to, room, sizeof room - z->avail_out);
        } while (z->avail_out == 0);
    } while (count);
    return 0;
}

static char *directory_make(const struct kp_page_blob *blob, const char *head, size_t head_bytes, size_t *bytes)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, bytes);
    if (!f) return NULL;
    struct kp_jsonout *const j = KP_JSONOUT(f);
    kp_jsonout_open(j, NULL, '{');
    kp_jsonout_open(j, "columns", '{');
    for (size_t i = 0; i < blob->column_count; i++) {
        const struct kp_page_column *c = &blob->columns[i];
        kp_jsonout_open(j, c->name, '[');
        kp_jsonout_items(j, KP_JSONOUT_NUMBERS(c->bits, (int64_t)c->at, (int64_t)c->count));
        kp_jsonout_close(j, ']');
    }
    kp_jsonout_close(j, '}');
    kp_jsonout_key(j, "head");
    fwrite(head, 1, head_bytes, f);
    kp_jsonout_close(j, '}');
    while (ftell(f) % ALIGN) fputc(' ', f);
    if (fclose(f) == 0) return text;
    free(text);
    return NULL;
}

int kp_page_blob_write(const struct kp_page_blob *blob, const char *head, size_t head_bytes, FILE *out)
{
    struct base64 to = {.out = out};
    z_stream z = {0};
    size_t bytes = 0;
    char *directory = directory_make(blob, head, head_bytes, &bytes);
    const uint32_t size[2] = {(uint32_t)bytes, 0};
    if (!directory) return -ENOMEM;
    int rc = deflateInit(&z, LEVEL) == Z_OK ? 0 : -ENOMEM;
    if (rc == 0) {
        rc = part_put(&z, &to, size, sizeof size, Z_NO_FLUSH);
        if (rc == 0) rc = part_put(&z, &to, directory, bytes, Z_NO_FLUSH);
        if (rc == 0) rc = part_put(&z, &to, blob->bytes, blob->count, Z_FINISH);
        base64_end(&to);
        deflateEnd(&z);
    }
    free(directory);
    return rc;
}

int kp_page_block_put(const char *name, const struct kp_page_blob *blob, const char *head, size_t bytes, FILE *out)
{
    fprintf(out, "<script type=\"text/plain\" class=\"%s\">", name);
    const int rc = kp_page_blob_write(blob, head, bytes, out);
    fputs("</script>\n", out);
    return rc;
}

void kp_page_blob_fini(struct kp_page_blob *blob)
{
    free(blob->bytes);
    *blob = (struct kp_page_blob){0};
}
