// SPDX-License-Identifier: Apache-2.0
/*
 * cuptirule.c - finds the rule of cuptirule.def for a version of CUPTI
 *
 * Called by: preload/cupti (before arming), kprof doctor
 * Memory:    none
 * Safe in:   everywhere: pure
 */
#include "collector/base/elf/kp_cuptirule.h"

#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

static const struct kp_cuptirule_row rows[] = {
#define KP_CUPTI_RULE(row_low, row_high, row_rule, row_text) \
    {.low = (row_low), .high = (row_high), .rule = KP_CUPTI_##row_rule, .text = (row_text)},
#include "collector/base/elf/cuptirule.def"
#undef KP_CUPTI_RULE
};
enum { ROWS = sizeof rows / sizeof *rows };

const struct kp_cuptirule_row *kp_cuptirule_next(uint32_t version, const struct kp_cuptirule_row *after)
{
    for (const struct kp_cuptirule_row *row = after ? after + 1 : rows; row < rows + ROWS; row++)
        if (version >= row->low && version <= row->high) return row;
    return NULL;
}

uint32_t kp_cuptirule_all(uint32_t version)
{
    uint32_t rules = 0;
    for (const struct kp_cuptirule_row *row = NULL; (row = kp_cuptirule_next(version, row));) rules |= row->rule;
    return rules;
}

/* Before 13.0 the number is a counter, and several releases share a number. From 13.0 on it names the release. */
size_t kp_cuptirule_name(uint32_t version, char *out, size_t bytes)
{
    static const char *const counted[] = {
        [17] = "11.7", [18] = "11.8 to 12.1", [20] = "12.2", [21] = "12.3", [22] = "12.4",         [23] = "12.5",
        [24] = "12.6", [25] = "12.6",         [26] = "12.8", [27] = "12.9", [28] = "12.9 Update 1"};
    const char *release = version < sizeof counted / sizeof *counted ? counted[version] : NULL;
    const uint32_t major = version / 10000, minor = version / 100 % 100, update = version % 100;
    if (release) return kp_fmt(out, bytes, "CUPTI %u (CUDA %s)", version, release);
    if (version < 130000) return kp_fmt(out, bytes, "CUPTI %u", version);
    if (!update) return kp_fmt(out, bytes, "CUPTI %u (CUDA %u.%u)", version, major, minor);
    return kp_fmt(out, bytes, "CUPTI %u (CUDA %u.%u Update %u)", version, major, minor, update);
}

size_t kp_cuptirule_why(uint32_t version, uint32_t rules, char *out, size_t bytes)
{
    char name[48];
    out[0] = 0;
    (void)kp_cuptirule_name(version, name, sizeof name);
    for (const struct kp_cuptirule_row *row = NULL; (row = kp_cuptirule_next(version, row));)
        if (row->rule & rules) return kp_fmt(out, bytes, "%s: %s", name, row->text);
    return 0;
}

const char *kp_cuptirule_consequence(uint32_t rule)
{
    switch (rule) {
    case KP_CUPTI_REFUSE: return "not used";
    case KP_CUPTI_ONE_WINDOW: return "one window a process where CUDA graphs are used";
    case KP_CUPTI_EARLY: return "begun when the program begins to use the GPU, and not after its first CUDA graph";
    case KP_CUPTI_ONCE: return "not used after that where there are such";
    case KP_CUPTI_FEW: return "without a schedule off again after fewer records";
    case KP_CUPTI_SHORT: return "without a schedule off again sooner";
    default: return "read with care";
    }
}
