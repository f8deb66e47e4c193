// SPDX-License-Identifier: Apache-2.0
/* pagetexts.c - the texts of the page: each string of the trace that it shows, once */
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "export/show/plain.h"

uint32_t kp_page_text(struct kp_page *page, uint32_t id)
{
    struct kp_page_texts *t = &page->texts;
    if (id >= t->known) { /* making rows adds strings to the trace */
        const size_t had = t->known;
        t->known = kp_strings_count(page->tree->trace->strings) + 1;
        t->of = kp_kineto_grow(t->of, &t->of_capacity, t->known, sizeof *t->of);
        memset(t->of + had, 0, (t->known - had) * sizeof *t->of);
    }
    if (!t->of[id]) {
        *KP_KINETO_NEXT(t->ids, t->count, t->capacity) = id;
        t->of[id] = (uint32_t)t->count;
    }
    return t->of[id] - 1;
}

void kp_page_texts_put(struct kp_page *page)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return;
    for (size_t i = 0; i < page->texts.count; i++) {
        char shown[KP_PAGE_TEXT_MAX];
        const char *whole = kp_kineto_text(page->tree->trace, page->texts.ids[i]);
        kp_plain_text(shown, sizeof shown, whole, strlen(whole));
        fwrite(shown, 1, strlen(shown) + 1, f);
    }
    if (fclose(f) == 0) kp_page_blob_put_bytes(&page->blob, "texts", text, bytes);
    free(text);
}
