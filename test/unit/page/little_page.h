// SPDX-License-Identifier: Apache-2.0
/* little_page.h - the page of a little trace: its columns, its texts, and what a browser reads of it */
#pragma once

#include <zlib.h>

#include "export/answers/page/pageparts.h"
#include "test/unit/tree/little_trace.h"

__attribute__((unused)) static struct kp_page page_make(struct little *t)
{
    assert_int_equal(choose(t, &everything), 0);
    return (struct kp_page){.tree = &t->tree, .base_ns = t->tree.nodes[0].start_ns, .has_gpu = t->tree.has_device};
}

__attribute__((unused)) static void page_fini(struct kp_page *page)
{
    kp_page_blob_fini(&page->blob);
    free(page->texts.of);
    free(page->texts.ids);
}

static inline const struct kp_page_column *column_find(const struct kp_page *page, const char *name)
{
    for (size_t i = 0; i < page->blob.column_count; i++)
        if (strcmp(page->blob.columns[i].name, name) == 0) return &page->blob.columns[i];
    return NULL;
}

__attribute__((unused)) static size_t column_count(const struct kp_page *page, const char *name)
{
    const struct kp_page_column *c = column_find(page, name);
    assert_non_null(c);
    return c->count;
}

/* The bytes of all columns, as they were put. The caller frees them. */
__attribute__((unused)) static unsigned char *columns_of(const struct kp_page_blob *blob)
{
    unsigned char *plain = malloc(blob->count + 1);
    z_stream z = {.next_in = blob->bytes, .avail_in = (uInt)blob->packed};
    z.next_out = plain;
    z.avail_out = (uInt)blob->count + 1;
    assert_int_equal(inflateInit2(&z, -MAX_WBITS), Z_OK);
    assert_true(inflate(&z, Z_SYNC_FLUSH) != Z_DATA_ERROR);
    assert_int_equal(z.total_out, blob->count);
    inflateEnd(&z);
    return plain;
}

/* Number `i` of a column. */
__attribute__((unused)) static uint32_t column_at(const struct kp_page *page, const char *name, size_t i)
{
    const struct kp_page_column *c = column_find(page, name);
    uint32_t word = 0;
    assert_non_null(c);
    assert_true(i < c->count);
    unsigned char *const plain = columns_of(&page->blob);
    if (c->bits) memcpy(&word, plain + c->at + c->bits / 8 * i, c->bits / 8);
    free(plain);
    return word;
}

/* Two columns, low and high, as one number. */
__attribute__((unused)) static uint64_t wide_at(const struct kp_page *page, const char *name, size_t i)
{
    char low[40], high[40];
    snprintf(low, sizeof low, "%sLow", name);
    snprintf(high, sizeof high, "%sHigh", name);
    return (uint64_t)column_at(page, high, i) << 32 | column_at(page, low, i);
}

__attribute__((unused)) static const char *page_text(const struct kp_page *page, uint32_t number)
{
    assert_true(number < page->texts.count);
    return kp_kineto_text(page->tree->trace, page->texts.ids[number]);
}

__attribute__((unused)) static size_t base64_read(const char *text, size_t letters_most, unsigned char *out)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t count = 0;
    unsigned word = 0, bits = 0;
    for (; letters_most-- && *text && *text != '='; text++) {
        const char *letter = strchr(letters, *text);
        assert_non_null(letter);
        word = word << 6 | (unsigned)(letter - letters);
        bits += 6;
        if (bits >= 8) out[count++] = (unsigned char)(word >> (bits -= 8));
    }
    return count;
}

/* Inflates base64 of at most so many letters. The caller frees it; it ends with a NUL. */
__attribute__((unused)) static unsigned char *inflated(const char *text, size_t letters, size_t *bytes)
{
    enum { ROOM = 4 << 20 };
    unsigned char *packed = malloc(letters + 1), *plain = malloc(ROOM);
    uLongf plain_bytes = ROOM - 1;
    assert_int_equal(uncompress(plain, &plain_bytes, packed, base64_read(text, letters, packed)), Z_OK);
    plain[plain_bytes] = 0;
    *bytes = plain_bytes;
    free(packed);
    return plain;
}
