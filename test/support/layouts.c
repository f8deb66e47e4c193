// SPDX-License-Identifier: Apache-2.0
/* layouts.c - reads test/data/cupti_layouts.json, one line a kind; no reader of JSON at large */
#include "test/support/layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

char kp_releases[KP_RELEASES_MAX][8];
int kp_release_count;
static char *text;

static int release_index(const char *quoted)
{
    for (int i = 0; i < kp_release_count; i++) {
        size_t n = strlen(kp_releases[i]);
        if (strncmp(quoted, kp_releases[i], n) == 0 && quoted[n] == '"') return i;
    }
    fail_msg("no such release: %.10s", quoted);
    return -1;
}

void kp_layouts_load(void)
{
    if (text) return;
    FILE *f = fopen("test/data/cupti_layouts.json", "r");
    assert_non_null(f);
    text = calloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 10000);
    fclose(f);
    char *end = strchr(text, ']');
    for (char *p = strchr(text, '[') + 1; p && p < end && kp_release_count < KP_RELEASES_MAX; kp_release_count++) {
        assert_int_equal(sscanf(p, " \"%7[0-9.]\"", kp_releases[kp_release_count]), 1);
        p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL;
    }
    assert_true(kp_release_count >= 17);
}

static const char *line_of(const char *kind)
{
    char key[64];
    snprintf(key, sizeof key, "\n\"%s\": {\"kind\":", kind);
    const char *line = strstr(text, key);
    if (!line) fail_msg("no kind %s", kind);
    return line + strlen(key);
}

uint32_t kp_layout_kind(const char *kind) { return (uint32_t)atoi(line_of(kind)); }

uint32_t kp_layout_bytes(const char *kind, int release)
{
    const char *p = strstr(line_of(kind), "\"structs\":[") + 11;
    uint32_t bytes = 0;
    for (; *p == '[' || *p == ','; p = strchr(p, ']') + 1) {
        p += *p == ',';
        if (release_index(p + 2) > release) break;
        const char *end = strchr(p, ']');
        while (end[-1] != ',') end--;
        bytes = (uint32_t)atoi(end);
    }
    return bytes;
}

bool kp_layout_field(const char *kind, const char *field, int release, uint32_t *offset, uint32_t *bytes)
{
    char key[80];
    bool found = false;
    const char *line = line_of(kind), *end = strchr(line, '\n');
    snprintf(key, sizeof key, "\"%s\":[[", field);
    const char *p = strstr(line, key);
    if (!p || (end && p > end)) return false;
    for (p += strlen(key) - 1; *p == '[' || *p == ','; p = strchr(p, ']') + 1) {
        p += *p == ',';
        if (release_index(p + 2) > release) break;
        assert_int_equal(sscanf(strchr(p, ','), ",%u,%u", offset, bytes), 2);
        found = true;
    }
    return found;
}
