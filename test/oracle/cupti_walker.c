// SPDX-License-Identifier: Apache-2.0
/*
 * cupti_walker.c - the real libcupti as an oracle: its record sizes, its walk over a buffer, its names of calls
 *
 * usage: cupti_walker LIBCUPTI RELEASE        e.g. .../libcupti.so.12 12.9; speaks TAP
 * Up to 13.1 these functions work without a driver. Nothing else of it is called.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/cupti/cupti_internal.h"
#include "test/support/layouts.h"
#include "test/support/support.h"

static int release = -1, failed;
static const char *const kinds[] = {"MEMCPY",
                                    "MEMSET",
                                    "KERNEL",
                                    "DRIVER",
                                    "RUNTIME",
                                    "DEVICE",
                                    "CONTEXT",
                                    "CONCURRENT_KERNEL",
                                    "OVERHEAD",
                                    "MEMCPY2",
                                    "CUDA_EVENT",
                                    "STREAM",
                                    "SYNCHRONIZATION",
                                    "EXTERNAL_CORRELATION",
                                    "GRAPH_TRACE",
                                    "MEMORY2",
                                    "NAME",
                                    "MARKER"};
enum { KINDS = sizeof kinds / sizeof *kinds, ROUNDS = 2000, BYTES = 16384 };

static void verdict(bool is_good, const char *what, const char *detail)
{
    printf("%sok - cupti_oracle_%s %s%s%s\n", is_good ? "" : "not ", kp_releases[release], what, detail[0] ? ": " : "",
           detail);
    failed += !is_good;
}

static void check_sizes(void)
{
    char detail[128] = "";
    const char *why = kp_probe_sizes();
    for (int i = 0; i < KINDS && !why; i++) {
        uint32_t said = kp_layout_bytes(kinds[i], release), real = kp_record_bytes(kp_layout_kind(kinds[i]));
        if (said != real) snprintf(detail, sizeof detail, "%s has %u bytes, the header says %u", kinds[i], real, said);
    }
    verdict(!why && !detail[0], "sizes are probed as the headers say", why ? why : detail);
}

static size_t random_buffer(uint8_t *buffer)
{
    size_t at = 0;
    for (;;) {
        uint32_t kind = kp_layout_kind(kinds[(unsigned)rand() % KINDS]), size = kp_record_bytes(kind);
        if (at + size > BYTES || rand() % 200 == 0) break;
        for (uint32_t i = 0; i < size; i++) buffer[at + i] = (uint8_t)rand();
        memcpy(buffer + at, &kind, sizeof kind);
        at += size;
    }
    if (rand() % 2 && at > 8) at -= 8 * (1 + (size_t)rand() % 4); /* a cut tail */
    return at;
}

/* Both walks over the same bytes: the same records; and behind the last one the same verdict. */
static bool walks_alike(const uint8_t *buffer, size_t valid)
{
    struct kp_walk walk = {.at = buffer, .end = buffer + valid, .sizes = kp_sizes};
    void *theirs = NULL;
    uint32_t bytes;
    for (;;) {
        const uint8_t *ours = kp_walk_next(&walk, &bytes);
        int code = kp_cupti.get_next_record((uint8_t *)(uintptr_t)buffer, valid, &theirs);
        if ((code == 0) != (ours != NULL)) return false;
        if (!ours) return true;
        if (theirs != (const void *)ours) return false;
    }
}

static void check_walks(void)
{
    static uint64_t room[BYTES / 8 + 64];
    uint8_t *buffer = (uint8_t *)room;
    int differ = 0;
    char detail[64] = "";
    srand(1);
    for (int i = 0; i < ROUNDS; i++) differ += !walks_alike(buffer, random_buffer(buffer));
    if (differ) snprintf(detail, sizeof detail, "%d of %d buffers", differ, ROUNDS);
    verdict(!differ, "2000 random buffers are walked alike", detail);
    size_t valid = 40;
    memset(buffer, 0, 256);
    buffer[0] = KP_CUPTI_RUNTIME;
    buffer[40] = 63; /* no kind of any release */
    verdict(walks_alike(buffer, valid + 88), "both walks end at an unknown kind", "");
}

static void check_names(void)
{
    static const struct {
        int is_driver;
        uint32_t cbid;
        const char *name;
        uint32_t what;
    } calls[] = {
        {0, 211, "cudaLaunchKernel", KP_CALL_LAUNCH},
        {0, 269, "cudaLaunchCooperativeKernel", KP_CALL_LAUNCH},
        {0, 41, "cudaMemcpyAsync", 0},
        {0, 51, "cudaMemsetAsync", 0},
        {0, 20, "cudaMalloc", 0},
        {0, 311, "cudaGraphLaunch", 0},
        {0, 165, "cudaDeviceSynchronize", 0},
        {1, 307, "cuLaunchKernel", KP_CALL_LAUNCH},
        {1, 277, "cuMemcpyHtoDAsync_v2", KP_CALL_NOISE},
        {1, 17, "cuCtxSynchronize", KP_CALL_NOISE},
    };
    char detail[128] = "";
    unsigned noise = 0;
    kp_calls_fill();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct kp_cupti_call *c = &kp_calls[calls[i].is_driver][calls[i].cbid];
        if (!c->name || c->len != strlen(calls[i].name) || strncmp(c->name, calls[i].name, c->len) ||
            c->what != calls[i].what)
            snprintf(detail, sizeof detail, "%u is %.*s", calls[i].cbid, c->name ? c->len : 4,
                     c->name ? c->name : "none");
    }
    for (int i = 0; i < KP_CALLS; i++) noise += kp_calls[0][i].what == KP_CALL_NOISE;
    if (noise != 6) snprintf(detail, sizeof detail, "%u runtime calls are left out, not 6", noise);
    verdict(!detail[0], "calls have the names and sorts expected", detail);
}

int main(int argc, char **argv)
{
    kp_layouts_load();
    for (int i = 0; argc > 2 && i < kp_release_count; i++)
        if (strcmp(argv[2], kp_releases[i]) == 0) release = i;
    if (release < 0 || !dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL)) {
        printf("not ok - cupti_oracle %s %s: %s\n", argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "", dlerror());
        return 1;
    }
    verdict(kp_cupti_find(false) == 0 && strcmp(kp_cupti.path, argv[1]) == 0, "the loaded libcupti is found", "");
    check_sizes();
    check_walks();
    check_names();
    return failed != 0;
}
