// SPDX-License-Identifier: Apache-2.0
/* fuzz_oom.c - any bytes as a file of KPROF_ON_OOM: refused with a reason, or printed as text and as valid JSON */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/text/kp_jsonread.h"
#include "export/answers/memory/oomtext.h"

static size_t printed(const struct kp_oom *oom, void (*print)(FILE *out, const struct kp_oom *oom), char **text)
{
    size_t bytes = 0;
    FILE *const out = open_memstream(text, &bytes);
    if (!out) abort();
    print(out, oom);
    fclose(out);
    return bytes;
}

static void table_print(FILE *out, const struct kp_oom *oom) { kp_oom_print(out, oom, 0); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_oom oom;
    const char *why = NULL;
    char *text;
    size_t offset;
    if (!kp_oom_read(&oom, (const char *)data, size, &why)) {
        if (!why || !*why || oom.sites) abort();
        return 0;
    }
    printed(&oom, table_print, &text);
    if (strpbrk(text, "\033\r")) abort(); /* nothing that steers a terminal */
    free(text);
    const size_t bytes = printed(&oom, kp_oom_json, &text);
    if (kp_jsonread_check_object(text, bytes, &offset, &why) != 0) abort();
    free(text);
    kp_oom_fini(&oom);
    return 0;
}
