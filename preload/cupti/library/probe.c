// SPDX-License-Identifier: Apache-2.0
/*
 * probe.c - measures the record sizes of the loaded libcupti by its own walker
 *
 * Called by: control.c, once, after cuInit
 * Owns:      kp_sizes, constant afterwards
 * Memory:    8 KB, static
 * On fail:   returns the reason; GPU recording is then refused
 *
 * The probe fills a buffer with a kind's number in every 8 bytes. To CUPTI's walker that is a list of records, and
 * the distance of the first two is a record's length. The version does not tell it: 11.8, 12.0 and 12.1 all report 18,
 * and their kernel records differ.
 */

#include "collector/base/kp_log.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { PROBE_BYTES = 8192, API_BYTES = 40, KERNEL_LEAST = 176 };

uint16_t kp_sizes[KP_CUPTI_KINDS];

uint32_t kp_record_bytes(uint32_t kind) { return kind < KP_CUPTI_KINDS ? kp_sizes[kind] : 0; }

static uint16_t probe_kind(uint32_t kind)
{
    static uint64_t buffer[PROBE_BYTES / 8];
    void *record = NULL;
    for (size_t i = 0; i < PROBE_BYTES / 8; i++) buffer[i] = kind;
    if (kp_cupti.get_next_record((uint8_t *)buffer, sizeof buffer, &record) != 0 || record != (void *)buffer) return 0;
    if (kp_cupti.get_next_record((uint8_t *)buffer, sizeof buffer, &record) != 0) return 0;
    uintptr_t size = (uintptr_t)record - (uintptr_t)buffer;
    return size >= 8 && size < PROBE_BYTES && size % 8 == 0 ? (uint16_t)size : 0;
}

/* Compares with the size that CUPTI reports, from 13.2 on. */
static void cross_check(uint32_t kind)
{
    size_t said = 0;
    if (!kp_cupti.get_struct_size || kp_cupti.get_struct_size((int)kind, 0, &said) != 0 || said == kp_sizes[kind])
        return;
    kp_log(1, "CUPTI calls its records of kind %u %zu bytes long, its walker takes %u", kind, said,
           (unsigned)kp_sizes[kind]);
}

const char *kp_probe_sizes(void)
{
    for (uint32_t kind = 1; kind < KP_CUPTI_KINDS; kind++) kp_sizes[kind] = probe_kind(kind);
    cross_check(KP_CUPTI_CONCURRENT_KERNEL);
    cross_check(KP_CUPTI_MEMCPY);
    cross_check(KP_CUPTI_RUNTIME);
    if (kp_sizes[KP_CUPTI_RUNTIME] != API_BYTES) return "its records of calls are not 40 bytes long";
    if (kp_sizes[KP_CUPTI_CONCURRENT_KERNEL] < KERNEL_LEAST) return "its records of kernels are shorter than any known";
    return NULL;
}
