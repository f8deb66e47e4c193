// SPDX-License-Identifier: Apache-2.0
/*
 * version.c - finds torch's version without Python and without touching a device
 *
 * Called by: torch_source.c at attach. Cold.
 * On fail:   0 if no source below knows it
 *
 * Three sources are asked in this order. First the stable ABI's version number (from 2.7). Then torch's build options,
 * a std::map that is read as plain memory. Last the newest known symbol that is present: a lower bound.
 */
#include <string.h>

#include "collector/base/kp_log.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

/* A node of libstdc++'s red-black tree: colour, three links, then key and value. */
struct map_node {
    uint64_t colour;
    const struct map_node *parent, *left, *right;
};

static const struct {
    uint32_t version;
    const char *symbol;
} first_seen[] = {
    {214, "_ZN5torch8profiler4impl17ProfilerStateBase6getTLSEv"},
    {213, "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE"},
    {210, "aoti_torch_int64_to_ivalue"},
    {209, "aoti_record_function_start"},
    {207, "aoti_torch_abi_version"},
    {206, "_ZN5torch8profiler4impl31get_record_tensor_addrs_enabledEv"},
    {204, "_ZN5torch8profiler4impl28pushPRIVATEUSE1CallbacksStubE"},
    {203, "aoti_torch_get_dim"},
    {202, "aoti_torch_get_sizes"},
    {201, "_ZN3c1020GetStorageImplCreateENS_10DeviceTypeE"},
    {200, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"},
    {113, "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"},
};

/* The text of a std::string in either ABI starts with a pointer to its characters. */
static bool read_text(const void *string, char *out, size_t bytes)
{
    const char *text = NULL;
    if (!kp_torch_peek(string, &text, sizeof text)) return false;
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (!kp_torch_peek(text + i, out + i, 1)) return false;
        if (!out[i]) return true;
    }
    out[bytes - 1] = 0;
    return true;
}

static bool option_read(const void *map, uint32_t string_bytes, const char *key, char *out, size_t bytes)
{
    const struct map_node *at = NULL;
    struct map_node node;
    char name[64];
    if (!map || !kp_torch_peek((const uint8_t *)map + 16, &at, sizeof at)) return false;
    for (int depth = 0; at && depth < 32; depth++) {
        const uint8_t *pair = (const uint8_t *)(at + 1);
        if (!kp_torch_peek(at, &node, sizeof node) || !read_text(pair, name, sizeof name)) return false;
        int order = strcmp(key, name);
        if (order == 0) return read_text(pair + string_bytes, out, bytes);
        at = order < 0 ? node.left : node.right;
    }
    return false;
}

/* "2.15.0a0+git" -> 215; 0 for a text that is no version */
static uint32_t parse_version(const char *text)
{
    uint32_t part[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        if (*text < '0' || *text > '9') return 0;
        while (*text >= '0' && *text <= '9' && part[i] < 1000) part[i] = part[i] * 10 + (uint32_t)(*text++ - '0');
        if (i == 0 && *text++ != '.') return 0;
    }
    return part[0] * 100 + part[1];
}

uint32_t kp_torch_version(const struct kp_torch_api *api, uint32_t string_bytes, char *text, size_t text_bytes)
{
    uint32_t from_options = 0, from_abi = 0;
    if (api->build_options && option_read(api->build_options(), string_bytes, "TORCH_VERSION", text, text_bytes))
        from_options = parse_version(text);
    if (api->abi_version) {
        uint64_t v = api->abi_version();
        from_abi = (uint32_t)(v >> 56) * 100 + (uint32_t)(v >> 48 & 0xff);
    }
    if (from_abi) {
        if (from_options != from_abi) kp_fmt(text, text_bytes, "%u.%u", from_abi / 100, from_abi % 100);
        return from_abi;
    }
    if (from_options) return from_options;
    for (size_t i = 0; i < sizeof first_seen / sizeof *first_seen; i++) {
        if (!kp_torch_has(first_seen[i].symbol)) continue;
        uint32_t v = first_seen[i].version;
        kp_fmt(text, text_bytes, "%u.%u", v / 100, v % 100);
        return v;
    }
    kp_fmt(text, text_bytes, "unknown");
    return 0;
}
