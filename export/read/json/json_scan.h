// SPDX-License-Identifier: Apache-2.0
/*
 * json_scan.h - reads plain JSON that lies whole in memory, fast (the command only)
 *
 * It knows no error: where a value is not plain, it stops before it, and the reader of json_push.h takes over. Not
 * plain are strings with \u, levels deeper than SCAN_DEEPEST, and what is no JSON.
 */
#pragma once

#include "export/read/json/json_push.h"

struct kp_json_scan {
    const struct kp_json_calls *calls;
    void *context;
    char *buffer; /* of a string with escapes; freed by the caller */
    size_t buffer_room;
};
/* So many zeros stand behind the text: it is read by words, and a zero is part of no JSON. */
enum { KP_JSON_SCAN_ZEROS = 8 };
/*
 * Reads values that stand behind commas: `, {..}, {..}`. Returns the bytes of those it has read; the callbacks of a
 * value that it then gave up may have been called.
 */
size_t kp_json_scan_list(struct kp_json_scan *scan, const char *text, size_t bytes);
