// SPDX-License-Identifier: Apache-2.0
/*
 * tracewrite.c - writes the trace of a cycle of this process's own spool, and says why it cannot
 *
 * Called by: finish.c, by the thread that writes traces, or that exits
 * Owns:      how much of the disk traces leave to the program; the reason that was said
 * Locks:     none
 * On fail:   -errno, and one line for a reason
 * Safe in:   signal handlers no; after fork yes
 */
#include "preload/finish/finish.h"

#include <errno.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "collector/base/sys/kp_room.h"
#include "collector/read/kp_read.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { SPREAD_MS = 10000 }; /* within which the ranks of a big job begin to write */

/* A trace that is written while the program runs leaves it what the first one found. Export thread. */
static uint64_t left_free(void)
{
    static uint64_t bytes;
    if (!bytes && kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE) == 0)
        bytes = kp_room_left_free_of(kp_run_out_dir());
    return bytes;
}

struct kp_export_options kp_tracewrite_options(const struct kp_config *config, bool host_waits)
{
    return (struct kp_export_options){
        .dir = kp_run_out_dir(),
        .worker_name = config->worker_name,
        .gzip = config->gzip,
        .metadata = config->metadata,
        .left_free = host_waits ? 0 : left_free(),
    };
}

/* Once for a reason: each window of a long run may fail, and the closing line counts them. */
static void say_failed(int err, const char *why)
{
    static _Atomic int said;
    if (kp_load_relaxed(&said) == err) return;
    kp_store_relaxed(&said, err);
    const bool is_kept = kp_record_is_in_place();
    kp_log(0, "no trace written to %s: %s (%s); the records %s %s%s", kp_run_out_dir(), why[0] ? why : "export failed",
           kp_log_error_text(err), is_kept ? "stay in" : "are lost with", kp_record_path(),
           is_kept ? ", see: kprof recover" : ", which was removed");
}

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
static int spool_open(struct kp_reader **reader, uint32_t cycle, char *why, size_t why_bytes)
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

int kp_tracewrite(uint32_t cycle, const struct kp_export_options *options, struct kp_export_result *result)
{
    char why[256] = "";
    struct kp_reader *reader = NULL;
    int err = spool_open(&reader, cycle, why, sizeof why);
    if (err == 0) {
        err = kp_export_trace(reader, cycle, options, result);
        kp_reader_close(reader);
    }
    if (result->is_room_left) kp_fmt(why, sizeof why, "what has room there is left free for the program");
    if (err && err != -ENODATA) say_failed(err, why);
    return err;
}

/*
 * All ranks of a job close their windows with one step. They begin to write one after the other, or one folder gets the
 * files of all ranks in one second. The next window ends the wait. Under finish_lock.
 */
bool kp_tracewrite_is_due(bool is_alone)
{
    static uint64_t begin_ms; /* 0: nothing waits */
    const struct kp_rank place = kp_run_rank();
    if (place.size <= KP_RANK_MANY || !is_alone) {
        begin_ms = 0;
        return true;
    }
    if (!begin_ms) begin_ms = kp_clock_ms() + (uint64_t)SPREAD_MS * place.rank / place.size;
    if (kp_clock_ms() < begin_ms) return false;
    begin_ms = 0;
    return true;
}
