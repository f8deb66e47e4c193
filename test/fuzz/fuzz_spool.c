// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_spool.c - whatever a spool holds, it opens or is refused, its walk ends, and its trace is valid JSON
 *
 * The first byte chooses: patches of a good spool (chunk, offset, value), bytes laid over the beginning of each chunk, bytes as
 * the whole file, or bytes as KPROF_METADATA.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_jsoncheck.h"
#include "export/kp_export.h"
#include "test/support/spool.h"

#define LAID 512u /* bytes laid over one chunk */

static char dir[] = "/dev/shm/kprof-fuzz-XXXXXX";
static struct test_spool good;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!mkdtemp(dir)) abort();
    test_spool_training(&good);
    return 0;
}

static void patch(uint8_t *file, size_t bytes, const uint8_t *data, size_t size)
{
    for (; size >= 4; data += 4, size -= 4) {
        size_t at = (size_t)(data[0] % (bytes / KP_CHUNK_BYTES)) * KP_CHUNK_BYTES + ((data[1] | (size_t)data[2] << 8) % (data[0] & 128 ? 65536u : 1024u));
        if (at < bytes) file[at] = data[3];
    }
}

static void lay(uint8_t *file, size_t bytes, const uint8_t *data, size_t size)
{
    for (size_t chunk = 1; chunk * KP_CHUNK_BYTES < bytes && size; chunk++) {
        size_t n = size < LAID ? size : LAID;
        memcpy(file + chunk * KP_CHUNK_BYTES + 4, data, n); /* the magic stays */
        data += n, size -= n;
    }
}

static void trace_check(struct kp_reader *r, uint32_t cycle, const char *metadata)
{
    static char text[1 << 22];
    struct kp_export_options options = {.dir = dir, .metadata = metadata};
    struct kp_export_result result;
    size_t n, offset;
    const char *why;
    FILE *f;
    if (kp_export_trace(r, cycle, &options, &result)) return;
    f = fopen(result.path, "rb");
    if (!f) abort();
    n = fread(text, 1, sizeof text, f);
    fclose(f);
    unlink(result.path);
    if (n < sizeof text && kp_jsoncheck_object(text, n, &offset, &why)) {
        fprintf(stderr, "not JSON at %zu: %s: %.80s\n", offset, why, text + (offset > 40 ? offset - 40 : 0));
        abort();
    }
}

static void walk(const char *path, const char *metadata)
{
    struct kp_reader *r;
    char why[256];
    struct kp_cycle c;
    if (kp_reader_open(&r, path, why, sizeof why)) return;
    for (size_t i = 0; i < kp_reader_cycles(r) && i < 4; i++)
        if (!kp_reader_cycle(r, i, &c)) trace_check(r, c.number, metadata);
    kp_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes = (size_t)good.chunks * KP_CHUNK_BYTES;
    char path[64], *metadata = NULL;
    uint8_t *file;
    int fd, mode;
    if (size < 2) return 0;
    mode = data[0] & 3;
    if (mode == 2) bytes = size - 1 < sizeof(struct kp_file_head) ? sizeof(struct kp_file_head) : size - 1;
    fd = memfd_create("spool", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) abort();
    file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) abort();
    if (mode != 2) memcpy(file, good.bytes, bytes);
    if (mode == 0) patch(file, bytes, data + 1, size - 1);
    if (mode == 1) lay(file, bytes, data + 1, size - 1);
    if (mode == 2) memcpy(file, data + 1, size - 1);
    if (mode == 3) metadata = strndup((const char *)data + 1, size - 1);
    if (data[0] & 64 && ftruncate(fd, (off_t)(bytes - (data[0] >> 2 & 15) * 4099 % bytes))) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    walk(path, metadata);
    free(metadata);
    munmap(file, bytes);
    close(fd);
    return 0;
}
