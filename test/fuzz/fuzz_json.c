// SPDX-License-Identifier: Apache-2.0
/* fuzz_json.c - any bytes become a valid JSON string, and only the bytes that are no UTF-8 are replaced */
#include <stdlib.h>
#include <string.h>

#include "collector/base/text/kp_jsonread.h"
#include "export/write/out/json.h"

static char out[1 << 20];
static size_t used;

static int take(void *context, const void *data, size_t bytes)
{
    (void)context;
    if (used + bytes > sizeof out) abort();
    memcpy(out + used, data, bytes);
    used += bytes;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_json j;
    size_t offset;
    const char *why;
    used = 0;
    if (kp_json_init(&j, take, NULL)) return 0;
    kp_json_string(&j, (const char *)data, size);
    if (kp_json_flush(&j)) abort();
    if (kp_jsonread_check(out, used, &offset, &why)) abort();
    /* what needs no escape comes out as it is */
    if (!memchr(data, '"', size) && !memchr(data, '\\', size)) {
        size_t plain = 0;
        while (plain < size && data[plain] >= ' ' && data[plain] < 127) plain++;
        if (memcmp(out + 1, data, plain) != 0) abort();
    }
    kp_json_fini(&j);
    return 0;
}
