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

enum { ALIGN = 8, PIECE = 48 * 1024, ITEMS = 4096, LEVEL = 6 };

/* ---- columns, which are deflated as they come: the page's memory is that of its file ---- */

/* The stream has no head of its own: that of the directory stands before it. */
static bool packer_open(struct kp_page_blob *blob)
{
    if (blob->packer) return true;
    blob->packer = kp_kineto_zeros(1, sizeof *blob->packer);
    if (deflateInit2(blob->packer, LEVEL, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK) {
        blob->check = adler32(0, NULL, 0);
        return true;
    }
    free(blob->packer);
    blob->packer = NULL;
    return false;
}

/* flush: Z_SYNC_FLUSH at the end of a column, so that what follows begins at a byte. */
static void bytes_add(struct kp_page_blob *blob, const void *bytes, size_t count, int flush)
{
    z_stream *const z = blob->packer;
    blob->check = adler32_z(blob->check, bytes, count);
    blob->count += count;
    z->next_in = (Bytef *)(uintptr_t)bytes;
    z->avail_in = (uInt)count;
    do {
        blob->bytes = kp_kineto_grow(blob->bytes, &blob->capacity, blob->packed + PIECE, 1);
        z->next_out = blob->bytes + blob->packed;
        z->avail_out = PIECE;
        (void)deflate(z, flush);
        blob->packed += PIECE - z->avail_out;
    } while (z->avail_out == 0);
}

/* False: no column more is taken. */
static bool column_begin(struct kp_page_blob *blob, const char *name, unsigned bits, size_t count)
{
    static const char zeros[ALIGN];
    if (blob->column_count == KP_PAGE_COLUMNS_MAX || !packer_open(blob)) {
        blob->is_lost = true;
        return false;
    }
    bytes_add(blob, zeros, (ALIGN - blob->count % ALIGN) % ALIGN, Z_NO_FLUSH);
    blob->columns[blob->column_count++] = (struct kp_page_column){name, bits, blob->count, count};
    return true;
}

void kp_page_blob_put_bytes(struct kp_page_blob *blob, const char *name, const void *items, size_t count)
{
    const char *const bytes = items;
    if (!column_begin(blob, name, 8, count)) return;
    for (size_t i = 0; i < count; i += PIECE)
        bytes_add(blob, bytes + i, count - i < PIECE ? count - i : PIECE, Z_NO_FLUSH);
    bytes_add(blob, "", 0, Z_SYNC_FLUSH);
}

/* As few bits as the largest item has. */
void kp_page_blob_put(struct kp_page_blob *blob, const char *name, const uint32_t *items, size_t count)
{
    uint32_t all = 0;
    uint8_t bytes[ITEMS];
    uint16_t halves[ITEMS];
    for (size_t i = 0; i < count; i++) all |= items[i];
    const unsigned bits = !all ? 0 : all <= UINT8_MAX ? 8 : all <= UINT16_MAX ? 16 : 32;
    if (!column_begin(blob, name, bits, count)) return;
    for (size_t from = 0; bits && from < count; from += ITEMS) {
        const size_t n = count - from < ITEMS ? count - from : ITEMS;
        for (size_t i = 0; bits == 8 && i < n; i++) bytes[i] = (uint8_t)items[from + i];
        for (size_t i = 0; bits == 16 && i < n; i++) halves[i] = (uint16_t)items[from + i];
        const void *const narrow[] = {bytes, halves, items + from};
        bytes_add(blob, narrow[bits / 16], n * bits / 8, Z_NO_FLUSH);
    }
    bytes_add(blob, "", 0, Z_SYNC_FLUSH);
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

/* ---- the whole ---- */

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

/* Deflates the directory's length and the directory, up to a whole byte. */
static int directory_put(z_stream *z, struct base64 *to, const char *directory, size_t bytes)
{
    const uint32_t size[2] = {(uint32_t)bytes, 0};
    unsigned char room[PIECE];
    const void *const parts[] = {size, directory};
    const size_t lengths[] = {sizeof size, bytes};
    if (deflateInit(z, LEVEL) != Z_OK) return -ENOMEM;
    for (int i = 0; i < 2; i++) {
        z->next_in = (Bytef *)(uintptr_t)parts[i];
        z->avail_in = (uInt)lengths[i];
        do {
            z->next_out = room;
            z->avail_out = sizeof room;
            (void)deflate(z, i ? Z_SYNC_FLUSH : Z_NO_FLUSH);
            base64_put(to, room, sizeof room - z->avail_out);
        } while (z->avail_out == 0);
    }
    return 0;
}

/* An empty last block, and the check of all that was deflated. */
static void end_put(struct base64 *to, unsigned long check)
{
    const unsigned char end[] = {3,
                                 0,
                                 (unsigned char)(check >> 24),
                                 (unsigned char)(check >> 16),
                                 (unsigned char)(check >> 8),
                                 (unsigned char)check};
    base64_put(to, end, sizeof end);
    base64_end(to);
}

int kp_page_blob_write(const struct kp_page_blob *blob, const char *head, size_t head_bytes, FILE *out)
{
    struct base64 to = {.out = out};
    z_stream z = {0};
    size_t bytes = 0;
    if (blob->is_lost) return -ENOMEM;
    char *directory = directory_make(blob, head, head_bytes, &bytes);
    if (!directory) return -ENOMEM;
    const int rc = directory_put(&z, &to, directory, bytes);
    if (rc == 0) {
        base64_put(&to, blob->bytes, blob->packed);
        end_put(&to, blob->packer ? adler32_combine(z.adler, blob->check, (z_off_t)blob->count) : z.adler);
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
    if (blob->packer) deflateEnd(blob->packer);
    free(blob->packer);
    free(blob->bytes);
    *blob = (struct kp_page_blob){0};
}
