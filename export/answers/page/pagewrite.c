// SPDX-License-Identifier: Apache-2.0
/* pagewrite.c - the page: its head, a block of data for each trace, its style and its script */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/page.h"
#include "export/answers/page/pageparts.h"
#include "export/answers/stacks/flamepage.h"
#include "export/show/html.h"
#include "export/answers/memory/memblocks.h"

static void part_put(FILE *out, const char *from, const char *to) { fwrite(from, 1, (size_t)(to - from), out); }

void kp_page_begin(FILE *out, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
          "style-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
          out);
    kp_html_text(out, title);
    fputs(" - kprof</title>\n<style>\n", out);
    fputs(kp_html_look_css, out);
    kp_flamepage_colours(out);
    part_put(out, kp_page_css, kp_page_css_end);
    fputs("</style>\n</head>\n<body>\n", out);
    part_put(out, kp_page_body, kp_page_body_end);
}

void kp_page_end(FILE *out, struct kp_rankwaits *ranks, const struct kp_stuck_told *stands)
{
    kp_rankwaits_settle(ranks);
    (void)kp_page_verdict_put(ranks, stands, out);
    fputs("<script>\n\"use strict\";\n(() => {\n", out);
    fputs(kp_html_scheme_js, out);
    part_put(out, kp_flame_script, kp_flame_script_end);
    part_put(out, kp_memcurve_script, kp_memcurve_script_end);
    part_put(out, kp_page_script, kp_page_script_end);
    fputs("})();\n</script>\n</body>\n</html>\n", out);
}

/* The part that the page shows at once is a block of its own, which the columns do not hold up. */
static int page_put(struct kp_page *page, struct kp_tree *tree, const char *label, struct kp_rankwaits *ranks,
                    FILE *out)
{
    char *head = NULL;
    size_t bytes = 0;
    FILE *const f = open_memstream(&head, &bytes);
    struct kp_jsonout *const j = KP_JSONOUT(f);
    if (!f) return -ENOMEM;
    kp_page_events_put(page);
    kp_page_flame_put(page);
    kp_jsonout_open(j, NULL, '{');
    kp_page_head_put(page, label, j);
    kp_page_memory_put(page, tree, j);
    kp_jsonout_close(j, '}');
    if (fclose(f) != 0) {
        free(head);
        return -ENOMEM;
    }
    kp_page_texts_put(page);
    int rc = kp_page_block_put("trace", &(struct kp_page_blob){0}, head, bytes, out);
    if (rc == 0) rc = kp_page_block_put("columns", &page->blob, "null", 4, out);
    free(head);
    if (rc) return rc;
    kp_rankwaits_add(ranks, tree, &page->chosen);
    for (size_t i = 0; i < page->advice->count && kp_rankwaits_rank(tree->trace) >= 0; i++)
        kp_rankwaits_ask(ranks, &page->advice->findings[i].longer);
    return kp_page_rank_put(page, label, ranks, out);
}

/* False: the trace has none of the steps that the page is to begin with. */
static bool start_find(struct kp_page *page, const struct kp_page_start *start)
{
    const struct kp_chosen *chosen = &page->chosen;
    const bool asked = start->first_step >= 0;
    if (!asked && (start->all || !kp_chosen_is_of_steps(chosen))) return true;
    for (size_t i = 0; i < chosen->step_count; i++) {
        const long number = chosen->steps[i].number;
        if (asked && (number < start->first_step || number > start->last_step)) continue;
        if (!page->starts_with_steps) page->low = i;
        page->high = i;
        page->starts_with_steps = true;
    }
    return page->starts_with_steps;
}

int kp_page_add(FILE *out, struct kp_tree *tree, const char *label, const struct kp_page_start *start,
                struct kp_rankwaits *ranks, const struct kp_advice *advice, char *why, size_t why_bytes)
{
    const struct kp_choice all = {.first_step = -1, .last_step = -1};
    struct kp_page page = {.tree = tree, .advice = advice, .base_ns = tree->count ? tree->nodes[0].start_ns : 0};
    page.has_gpu = tree->has_device;
    int rc = kp_chosen_make(&page.chosen, tree, &all, why, why_bytes);
    if (rc == 0 && !start_find(&page, start)) {
        rc = -ENOENT;
        snprintf(why, why_bytes, "no step of %ld-%ld in it", start->first_step, start->last_step);
    }
    if (rc == 0 && (rc = page_put(&page, tree, label, ranks, out)) != 0) snprintf(why, why_bytes, "%s", strerror(-rc));
    kp_chosen_fini(&page.chosen);
    kp_page_blob_fini(&page.blob);
    free(page.texts.of);
    free(page.texts.ids);
    free(page.lanes);
    return rc;
}
