// SPDX-License-Identifier: Apache-2.0
/*
 * ownspool.c - opens this process's own spool to read it: both halves
 *
 * Called by: finish.c, for each window
 * On fail:   -errno, and a text that says why
 * Safe in:   signal handlers no; after fork yes
 */
#include "preload/finish/finish.h"

#include <errno.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "collector/base/kp_poison.h"

static int halves_open(struct kp_reader **reader, const struct kp_halves *halves, uint32_t cycle, char *why,
                       size_t why_bytes)
{
    const struct kp_reader_halves opened = {.memory = halves->memory, .disk = halves->disk, .cycle = cycle};
    const bool is_there = halves->memory >= 0 || halves->disk >= 0;
    int err = halves->memory;
    if (is_there) err = kp_reader_open_halves(reader, &opened, kp_record_path(), why, why_bytes);
    if (halves->memory >= 0) kp_io_close(halves->memory);
    if (halves->disk >= 0) kp_io_close(halves->disk);
    return err;
}

/*
 * Opens the own spool for one window. If the first chunk went to the disk meanwhile, that half was not looked at: then
 * once more.
 */
int kp_ownspool_open(struct kp_reader **reader, uint32_t cycle, char *why, size_t why_bytes)
{
    struct kp_halves halves;
    for (int once = 0; once < 2; once++) {
        kp_record_reopen(&halves);
        const int err = halves_open(reader, &halves, cycle, why, why_bytes);
        if (!err && (halves.disk >= 0 || !kp_record_is_on_disk())) return 0;
        if (!err) kp_reader_close(*reader);
        if (!why[0])
            kp_fmt(why, why_bytes, !err || err == -ENOENT ? "the spool was removed" : "the spool cannot be opened");
        if (err) return err;
    }
    return -ENOENT;
}
