// SPDX-License-Identifier: Apache-2.0
/* pageparts.h - what the files of this room share: a trace's data, as columns in one block of bytes */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "export/answers/advise/parts/finding.h"
#include "export/answers/ranks/stuck.h"
#include "export/show/jsonout.h"

/* ---- pageblob.c ---- */

enum { KP_PAGE_COLUMNS_MAX = 64 };
struct kp_page_column {
    const char *name;
    unsigned bits;    /* of an item: 8, 16 or 32; 0: all items are 0, and no byte is there */
    size_t at, count; /* at: bytes after the directory */
};
struct kp_page_blob {
    struct z_stream_s *packer; /* NULL: no column has come yet */
    unsigned char *bytes;      /* of the columns, deflated */
    size_t packed, capacity;
    size_t count;        /* bytes of the columns as they were put */
    unsigned long check; /* adler32 of these */
    bool is_lost;        /* a column was not taken */
    struct kp_page_column columns[KP_PAGE_COLUMNS_MAX];
    size_t column_count;
};
/* Adds a column, which it deflates, in as few bits as the items need. Columns begin at a multiple of 8. */
void kp_page_blob_put(struct kp_page_blob *blob, const char *name, const uint32_t *items, size_t count);
void kp_page_blob_put_bytes(struct kp_page_blob *blob, const char *name, const void *items, size_t count);
/* Writes the directory's length, the directory (`head`: JSON) and the columns, deflated, in base64. 0 or -errno, also
 * where a column found no memory. */
int kp_page_blob_write(const struct kp_page_blob *blob, const char *head, size_t head_bytes, FILE *out);
/* The same as an element of the page of this class. */
int kp_page_block_put(const char *name, const struct kp_page_blob *blob, const char *head, size_t bytes, FILE *out);
void kp_page_blob_fini(struct kp_page_blob *blob);
static inline void kp_page_two_put(uint32_t *low, uint32_t *high, uint64_t value)
{
    *low = (uint32_t)value;
    *high = (uint32_t)(value >> 32);
}

/* ---- pageevents.c: the nodes of a tree by lane and by time ---- */

enum { KP_PAGE_TEXT_MAX = 600 }; /* bytes of a text in the page; the rest is cut */
enum kp_page_kind {              /* as the page's script numbers them */
                    KP_PAGE_OP,
                    KP_PAGE_RANGE,
                    KP_PAGE_PYTHON,
                    KP_PAGE_RUNTIME,
                    KP_PAGE_KERNEL,
                    KP_PAGE_COPY,
                    KP_PAGE_COMM,
                    KP_PAGE_REST
};
struct kp_page_lane {
    int64_t pid, tid;
    bool on_device, is_async, is_main;
    size_t first, count;
};
struct kp_page_texts { /* the texts of the page; each string of the trace that it shows has a number here */
    uint32_t *of;      /* by string id: number + 1, or 0 */
    uint32_t *ids;     /* by number */
    size_t count, capacity, known, of_capacity;
};
struct kp_page {
    const struct kp_tree *tree;
    struct kp_chosen chosen;
    const struct kp_advice *advice;
    struct kp_page_blob blob;
    struct kp_page_texts texts;
    struct kp_page_lane *lanes;
    size_t lane_count, lane_capacity;
    int64_t base_ns, last_ns; /* times in the page count from base_ns; last_ns: the last end of an event */
    bool has_gpu, has_frames; /* has_frames: Python calls or call stacks */
    bool starts_with_steps;   /* with those from index low to high */
    size_t low, high;
};
void kp_page_events_put(struct kp_page *page);

/* ---- pagetexts.c ---- */

uint32_t kp_page_text(struct kp_page *page, uint32_t id);
void kp_page_texts_put(struct kp_page *page); /* all texts, as a column with a NUL after each */

/* ---- pagelinks.c ---- */

/* `positions`: of each node its number in the page, UINT32_MAX: none. `order`: the node of each number. */
void kp_page_links_put(struct kp_page *page, const uint32_t *positions);
void kp_page_modules_put(struct kp_page *page, const uint32_t *order, size_t count);

/* ---- pageworks.c ---- */

void kp_page_works_put(struct kp_page *page, const uint32_t *positions, const uint32_t *order, size_t count);

/* ---- pageflame.c ---- */

void kp_page_flame_put(struct kp_page *page);

/* ---- pagememory.c ---- */

void kp_page_memory_put(struct kp_page *page, struct kp_tree *tree, struct kp_jsonout *head);

/* ---- pagehead.c ---- */

const char *kp_page_longer_text(char *out, size_t bytes, const struct kp_longer_steps *longer);
void kp_page_finding_put(struct kp_jsonout *j, const struct kp_finding *finding); /* its members */
void kp_page_head_put(struct kp_page *page, const char *label, struct kp_jsonout *head);

/* ---- pagerows.c ---- */

void kp_page_rows_put(struct kp_page *page, struct kp_jsonout *head);

/* ---- pagerank.c ---- */

/* Writes what is compared between ranks, as a small block of its own. `ranks`: with the trace. 0 or -errno. */
int kp_page_rank_put(const struct kp_page *page, const char *label, const struct kp_rankwaits *ranks, FILE *out);
int kp_page_verdict_put(const struct kp_rankwaits *ranks, const struct kp_stuck_told *stands, FILE *out);

/* ---- assets.S: begin and end of the files of PAGE_ASSETS ---- */

extern const char kp_page_css[], kp_page_css_end[], kp_page_body[], kp_page_body_end[], kp_page_script[],
    kp_page_script_end[], kp_page_findings[], kp_page_findings_end[];
