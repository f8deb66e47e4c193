// SPDX-License-Identifier: Apache-2.0
/* halves.h - this process's own spool as one image: what lies in memory, and the disk for the rest */
#pragma once

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/record/kp_record.h"
#include "test/support/support.h"

static inline size_t halves_bytes(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
}

/* The caller unmaps it. The disk is opened first, and read last: a chunk leaves memory once the disk has it. */
static inline uint8_t *halves_read(size_t *bytes)
{
    struct kp_halves halves;
    const bool was_on_disk = kp_record_is_on_disk();
    kp_record_reopen(&halves);
    assert_true(halves.memory >= 0);
    *bytes = (halves_bytes(halves.memory) + KP_CHUNK_BYTES - 1) & ~(size_t)(KP_CHUNK_BYTES - 1);
    uint8_t *const image = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(image != MAP_FAILED);
    for (size_t at = 0; at < *bytes; at += KP_CHUNK_BYTES) {
        struct kp_chunk_head after = {0};
        (void)!pread(halves.memory, image + at, KP_CHUNK_BYTES, (off_t)at);
        (void)!pread(halves.memory, &after, sizeof after, (off_t)at);
        if (at == 0 || after.magic == KP_CHUNK_MAGIC) continue;
        memset(image + at, 0, KP_CHUNK_BYTES);
        if (halves.disk >= 0) (void)!pread(halves.disk, image + at, KP_CHUNK_BYTES, (off_t)at);
    }
    if (halves.disk >= 0) close(halves.disk);
    close(halves.memory);
    if (was_on_disk || !kp_record_is_on_disk()) return image;
    munmap(image, *bytes); /* the first chunk went there meanwhile */
    return halves_read(bytes);
}
