// SPDX-License-Identifier: Apache-2.0
/*
 * api.c - the exported kprof_* functions: each a short call into schedule, cycle or record
 *
 * Called by: the host, any thread, through kprof.h or ctypes; never from a signal handler
 * Owns:      a stack of open ranges per thread (arena, made at a thread's first push)
 * Locks:     none of its own. Memory: a thread's first push takes one arena block.
 * On fail:   returns -errno and leaves no trace; the host goes on
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_clock.h"
#include "collector/base/kp_jsoncheck.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/boot.h"
#include "preload/cycle.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

#define KP_EXPORTED __attribute__((visibility("default")))
enum { RANGES_MAX = 64, USER_SCOPE = 7 };

KP_EXPORTED int kprof_step(void);
KP_EXPORTED int64_t kprof_step_num(void);
KP_EXPORTED int kprof_start(void);
KP_EXPORTED int kprof_stop(void);
KP_EXPORTED int kprof_range_push(const char *name);
KP_EXPORTED int kprof_range_pop(void);
KP_EXPORTED int kprof_metadata(const char *key, const char *value);
KP_EXPORTED static bool is_json(const char *text)
{
    size_t offset;
    const char *why;
    return kp_jsoncheck_value(text, strlen(text), &offset, &why) == 0;
}

/* `text` as a JSON string; false when it does not fit or is not UTF-8. */
static bool quote(char *out, size_t size, const char *text)
{
    size_t n = 0;
    out[n++] = '"';
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (n + 8 > size) return false;
        if (*c == '"' || *c == '\\') {
            out[n++] = '\\';
            out[n++] = (char)*c;
        } else if (*c < 0x20) {
            static const char hex[] = "0123456789abcdef";
            memcpy(out + n, "\\u00", 4);
            out[n + 4] = hex[*c >> 4];
            out[n + 5] = hex[*c & 15];
            n += 6;
        } else {
            out[n++] = (char)*c;
        }
    }
    out[n++] = '"';
    out[n] = 0;
    return is_json(out);
}

int kprof_metadata_json(const char *key, const char *json)
{
    if (!kp_boot_is_ours()) return -ENOSYS;
    if (!key || !json || !is_json(json)) return -EINVAL;
    return keep_metadata(key, json);
}

int kprof_metadata(const char *key, const char *value)
{
    char quoted[4096];
    if (!kp_boot_is_ours()) return -ENOSYS;
    if (!key || !value || !quote(quoted, sizeof quoted, value)) return -EINVAL;
    return keep_metadata(key, quoted);
}
