// SPDX-License-Identifier: Apache-2.0
/*
 * packages.c - remembers which names at the beginning of a file's path are of installed packages, and notes them
 *
 * Called by: call_text.c, inside a hook, once for each new text (cold); finish.c through source.h, under finish_lock
 * Owns:      the names, "torch" of "torch/nn/functional.py"; how many of them the spool has
 * Locks:     none; a name is published once it is whole
 * Memory:    12 KB
 * On fail:   names beyond PARTS are forgotten, so their files count as the program's own
 * Safe in:   signal handlers yes
 *
 * A trace has file names without the folder they were found in, as Kineto's does. So a reader cannot tell the program's
 * own files from others (decisions/076).
 */
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/python/pycalls.h"
#include "collector/base/kp_poison.h"

enum { PARTS = 256, PART_BYTES = 47, NOTE_BYTES = 4096 };
static struct {
    _Atomic uint8_t bytes; /* 0: not whole yet */
    char text[PART_BYTES];
} parts[PARTS];
static _Atomic uint32_t part_count; /* may exceed PARTS */
static uint32_t noted, notes;       /* under finish_lock */

/* "six.py" is the file of a module, so its part is "six". */
static size_t part_of(const char *file)
{
    const size_t bytes = strcspn(file, "/");
    return !file[bytes] && bytes > 3 && strcmp(file + bytes - 3, ".py") == 0 ? bytes - 3 : bytes;
}

static uint32_t count_get(void)
{
    const uint32_t count = kp_load_relaxed(&part_count);
    return count < PARTS ? count : PARTS;
}

void kp_pypackage_saw(const char *file)
{
    const size_t bytes = part_of(file);
    if (!bytes || bytes > PART_BYTES || memchr(file, ',', bytes)) return;
    const uint32_t count = count_get();
    for (uint32_t i = 0; i < count; i++)
        if (kp_load_acquire(&parts[i].bytes) == bytes &&
            memcmp(parts[i].text, file, bytes) == 0) /* pairs with: below */
            return;
    if (count == PARTS) return;
    const uint32_t at = kp_add_relaxed(&part_count, 1); /* two threads may add the same name */
    if (at >= PARTS) return;
    memcpy(parts[at].text, file, bytes);
    kp_store_release(&parts[at].bytes,
                     (uint8_t)bytes); /* pairs with: packages.c:kp_pypackage_saw, kp_pypackages_note */
}

void kp_pypackages_note(void)
{
    char text[NOTE_BYTES], key[24];
    const uint32_t count = count_get();
    uint32_t at = noted;
    size_t used = 0;
    for (uint8_t n; at < count && (n = kp_load_acquire(&parts[at].bytes)); at++) { /* pairs with: kp_pypackage_saw */
        if (used + n + 2 > sizeof text) break;
        if (used) text[used++] = ',';
        memcpy(text + used, parts[at].text, n);
        used += n;
    }
    if (!used) return;
    text[used] = 0;
    kp_fmt(key, sizeof key, "installed.%u", notes);
    if (kp_record_note(key, text) != 0) return;
    noted = at;
    notes++;
}

void kp_pypackages_forget(void) { noted = notes = 0; }
