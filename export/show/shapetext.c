// SPDX-License-Identifier: Apache-2.0
/* shapetext.c - shapes of an op's inputs, short enough to read: equal tensors of a list once, with their number */
#include "export/show/shapetext.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MOST = 200 };

struct short_text {
    char *out;
    size_t used, bytes;
};

static void put(struct short_text *s, const char *from, size_t n)
{
    for (size_t i = 0; i < n && s->used + 1 < s->bytes; i++) s->out[s->used++] = from[i];
}

/* Returns the end of the list that begins here, behind its bracket. NULL: nowhere. */
static const char *list_end(const char *at)
{
    size_t depth = 0;
    for (; *at; at++) {
        depth += *at == '[';
        if (*at == ']' && --depth == 0) return at + 1;
        if (!depth) return NULL;
    }
    return NULL;
}

static const char *next_item(const char *at) { return at + strspn(at, ", "); }

const char *kp_shapetext_input(const char *text, size_t number, size_t *bytes)
{
    const char *at = text + (*text == '['), *end = list_end(at);
    for (; end && number; number--) end = list_end(at = next_item(end));
    *bytes = end ? (size_t)(end - at) : 0;
    return end ? at : NULL;
}

size_t kp_shapetext_tensors(const char *text)
{
    const char *at = text + (*text == '[');
    char *end;
    size_t count = 0, times = strtoul(at, &end, 10);
    if (end != at) return strncmp(end, " x [", 4) == 0 || strncmp(end, " tensors", 8) == 0 ? times : 0;
    if (*at++ != '[') return 0;
    for (; *at && *at != ']'; at = next_item(at)) {
        times = strtoul(at, &end, 10);
        if (end == at) times = 1;
        else if (strncmp(end, " x [", 4) == 0) at = end + 3;
        if (!(at = list_end(at))) return 0; /* it is one tensor */
        count += times;
    }
    return count;
}

bool kp_shapetext_dims(struct kp_dims *out, const char *text, size_t number)
{
    size_t bytes;
    const char *at = kp_shapetext_input(text, number, &bytes);
    *out = (struct kp_dims){0};
    for (char *end; at && *at != ']' && out->count < KP_DIMS_MOST; at = end) {
        at += 1 + strspn(at + 1, " ");
        const double side = strtod(at, &end);
        if (end == at) break;
        out->of[out->count++] = side;
    }
    out->is_other = at && *at != ']';
    return at;
}

size_t kp_shapetext_elements(const char *text, size_t number, double *of, size_t most)
{
    size_t bytes, count = 0;
    const char *at = kp_shapetext_input(text, number, &bytes), *const end = at ? at + bytes : NULL;
    double product = 1;
    for (bool has = false; at && at < end && count < most; at++) {
        if (*at == '[') has = false, product = 1;
        if (*at == ']' && has) of[count++] = product, has = false;
        if (*at < '0' || *at > '9') continue;
        char *rest;
        product *= strtod(at, &rest);
        has = true;
        at = rest - 1;
    }
    return count;
}

/* How many tensors from here on are equal. *end: where the last of them ends. */
static size_t run_measure(const char *item, size_t n, const char **end)
{
    size_t count = 1;
    *end = item + n;
    for (const char *at; strncmp(at = next_item(*end), item, n) == 0; *end = at + n) count++;
    return count;
}

/* A list of tensors from `at` to `end`, both with its brackets. One of equal tensors alone needs none. */
static void list_put(struct short_text *s, const char *at, const char *end)
{
    const char *rest = at, *item_end;
    char times[32];
    bool is_one = false;
    const size_t from = s->used;
    size_t tensors = 0;
    for (const char *item = at + 1; item < end - 1; item = next_item(rest)) {
        if (!(item_end = list_end(item))) break; /* a list of something else: as it is */
        const bool is_first = rest == at;
        const size_t n = (size_t)(item_end - item), count = run_measure(item, n, &rest);
        tensors += count;
        is_one = is_first && rest == end - 1 && count > 1;
        if (!is_one) put(s, is_first ? "[" : ", ", is_first ? 1 : 2);
        if (count > 1) put(s, times, (size_t)snprintf(times, sizeof times, "%zu x ", count));
        put(s, item, n);
    }
    if (!is_one) put(s, rest, (size_t)(end - rest));
    if (rest != end - 1 || s->used - from <= LIST_MOST) return;
    s->used = from;
    put(s, times, (size_t)snprintf(times, sizeof times, "%zu tensors", tensors));
}

/* A list of a list, or of more. */
static void torch_put(struct short_text *s, const char *at, const char *end)
{
    const bool has_lists = memchr(at + 1, '[', (size_t)(end - at - 1)) != NULL;
    put(s, has_lists ? "[]" : at, has_lists ? 2 : (size_t)(end - at));
}

/* Each input that is a list goes to `list`; what is between them stays. */
static const char *inputs_put(char *out, size_t bytes, const char *text,
                              void (*list)(struct short_text *s, const char *at, const char *end))
{
    struct short_text s = {.out = out, .bytes = bytes};
    size_t depth = 0;
    while (*text) {
        const char *const end = depth == 1 && *text == '[' ? list_end(text) : NULL;
        if (end) {
            list(&s, text, end);
            text = end;
            continue;
        }
        depth += *text == '[';
        depth -= *text == ']' && depth;
        put(&s, text++, 1);
    }
    if (bytes) out[s.used] = 0;
    return out;
}

const char *kp_shapetext_short(char *out, size_t bytes, const char *text)
{
    return inputs_put(out, bytes, text, list_put);
}

const char *kp_shapetext_torch(char *out, size_t bytes, const char *text)
{
    return inputs_put(out, bytes, text, torch_put);
}

static const struct {
    const char *name, *shown;
    uint8_t bit;
} types_of[] = {{"float", "float", KP_TYPES_FLOAT},
                {"double", "double", KP_TYPES_DOUBLE},
                {"c10::Half", "half", KP_TYPES_HALF},
                {"c10::BFloat16", "bfloat16", KP_TYPES_BFLOAT16}};

uint8_t kp_shapetext_type(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof types_of / sizeof *types_of; i++)
        if (strlen(types_of[i].name) == bytes && memcmp(name, types_of[i].name, bytes) == 0) return types_of[i].bit;
    return 0;
}

const char *kp_shapetext_types(char *out, size_t bytes, uint8_t types)
{
    struct short_text s = {.out = out, .bytes = bytes};
    for (size_t i = 0; i < sizeof types_of / sizeof *types_of && types != KP_TYPES_FLOAT; i++) {
        if (!(types & types_of[i].bit)) continue;
        put(&s, s.used ? " and " : " ", s.used ? 5 : 1);
        put(&s, types_of[i].shown, strlen(types_of[i].shown));
    }
    if (bytes) out[s.used] = 0;
    return out;
}

void kp_shapetext_numbers(const char *text, double *all, double *largest)
{
    double one = 0, side = 0;
    bool has_side = false;
    *all = *largest = 0;
    for (const char *at = text; *at; at++) {
        if (*at >= '0' && *at <= '9') {
            side = (has_side ? 10 * side : 0) + (*at - '0');
            has_side = true;
            continue;
        }
        if (has_side) one = one > 0 ? one * side : side;
        has_side = false;
        if (*at == ']') *all += one;
        if (*at == ']' && one > *largest) *largest = one;
        if (*at == '[' || *at == ']') one = 0;
    }
}
