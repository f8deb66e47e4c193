// SPDX-License-Identifier: Apache-2.0
/*
 * oomwords.c - one sentence of an allocation that failed: what was asked for, what is live, and whose most is
 *
 * Called by: oomfile.c
 * Owns:      nothing
 * Locks:     none
 * Memory:    of the caller
 *
 * The file, the log, the trace and the command have this one text.
 */
#include "preload/blackbox/oomfile.h"

#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_units.h"
#include "preload/python_bridge.h"
#include "collector/base/kp_poison.h"

enum { SIZE_BYTES = 32, PLACE_BYTES = 200, NAME_MOST = 80 };

static const char *place_put(char out[PLACE_BYTES], const struct kp_callsite *s)
{
    if (!s) return "a place that is not known";
    kp_fmt(out, PLACE_BYTES, "%.*s:%d %.*s", NAME_MOST, kp_path_base(s->file), s->line, NAME_MOST, s->function);
    return out;
}

void kp_oomwords_put(char out[KP_OOMWORDS_BYTES], const struct kp_oomwords *w)
{
    char size[3][SIZE_BYTES], place[PLACE_BYTES];
    const bool is_host = strcmp(w->device, "cpu") == 0;
    size_t used = kp_fmt(
        out, KP_OOMWORDS_BYTES, "%s ran out of %s%s: %s asked for at %s, %s live", is_host ? "the host" : w->device,
        w->limit ? kp_units_bytes(size[0], SIZE_BYTES, (int64_t)w->limit) : "memory",
        is_host && w->limit ? " of memory" : "", kp_units_bytes(size[1], SIZE_BYTES, (int64_t)w->asked),
        place_put(place, w->at), kp_units_bytes(size[2], SIZE_BYTES, (int64_t)w->live));
    const char *const category = w->most_at ? w->most_at->category : "";
    if (w->most)
        used += kp_fmt(out + used, KP_OOMWORDS_BYTES - used, ", %s of it from %s%s%s%s",
                       kp_units_bytes(size[0], SIZE_BYTES, (int64_t)w->most), place_put(place, w->most_at),
                       *category ? " (" : "", category, *category ? ")" : "");
    if (w->cached)
        kp_fmt(out + used, KP_OOMWORDS_BYTES - used, ", %s cached%s",
               kp_units_bytes(size[0], SIZE_BYTES, (int64_t)w->cached),
               w->cached >= w->asked ? " in parts that do not fit" : "");
}
