// SPDX-License-Identifier: Apache-2.0
/* progress.c - shows a line on a terminal during long work */
#include <stdio.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "export/read/files/progress.h"
#include "export/show/letters.h"
#include "export/show/plain.h"
#include "export/show/terminal.h"

enum { COLUMNS_USUAL = 80 };
#define BEFORE_NAME "kprof: "

void kp_progress_begin(struct kp_progress *progress, const char *what)
{
    progress->what = what;
    progress->shown_ns = kp_clock_ns(CLOCK_MONOTONIC);
    progress->terminal = isatty(2);
    progress->shown = false;
}

/* True when a new line is due: the first after a second, then four a second. */
static bool is_due(struct kp_progress *progress)
{
    const uint64_t now = progress->terminal ? kp_clock_ns(CLOCK_MONOTONIC) : 0;
    if (!progress->terminal || now - progress->shown_ns < (progress->shown ? 250000000u : 1000000000u)) return false;
    progress->shown_ns = now;
    progress->shown = true;
    return true;
}

/* The line stays on one row, as a return leads to the row's start alone. A name's end tells it apart. */
static void line_show(struct kp_progress *progress, uint64_t count, const char *of)
{
    char name[512], done[64];
    const size_t columns = kp_terminal_columns(stderr);
    if (!is_due(progress)) return;
    const int taken = snprintf(done, sizeof done, ": %lu %s", (unsigned long)count, of) + (int)sizeof BEFORE_NAME;
    const int room = (int)(columns ? columns : COLUMNS_USUAL) - taken;
    kp_letters_fit(name, sizeof name, progress->what, room > 1 ? (size_t)room : 1, 0, "..");
    kp_plain_fmt(stderr, "\r" BEFORE_NAME "%s%s\033[K", name, done);
}

int kp_progress_events(void *context, uint64_t events)
{
    line_show(context, events, "events");
    return 0;
}

void kp_progress_bytes(struct kp_progress *progress, uint64_t bytes)
{
    line_show(progress, bytes / 1000000, "MB of text read");
}

void kp_progress_end(struct kp_progress *progress)
{
    if (progress->shown) fprintf(stderr, "\r\033[K");
    progress->shown = false;
}
