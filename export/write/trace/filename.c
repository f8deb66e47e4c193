// SPDX-License-Identifier: Apache-2.0
/*
 * filename.c - names of trace files, as the TensorBoard plugin and HTA look for them
 */
#include "export/write/trace/filename.h"

#include <errno.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

/*
 * Replaces what cannot stand in a file's name. Dots stay, as in torch's own names, since the plugin splits at the last
 * dots.
 */
static char tame(char c) { return c == '/' || c == '\\' || (unsigned char)c <= ' ' || c == 127 ? '_' : c; }

int kp_filename_make(char *out, size_t bytes, const char *worker, const char *host, uint32_t pid, const char *phase,
                     uint64_t now_ns, bool gzip)
{
    char name[256];
    size_t n = worker ? kp_fmt(name, sizeof name, "%s", worker)
                      : kp_fmt(name, sizeof name, "%s_%u", *host ? host : "host", pid);
    if (n >= 200) return -ENAMETOOLONG;
    if (!n) n = kp_fmt(name, sizeof name, "%s_%u", *host ? host : "host", pid);
    if (phase) n += kp_fmt(name + n, sizeof name - n, "_%s", phase);
    if (n >= 200) return -ENAMETOOLONG; /* file systems take 255 bytes, and a temporary name is longer */
    for (char *c = name; *c; c++) *c = tame(*c);
    n = kp_fmt(out, bytes, "%s.%llu.pt.trace.json%s", name, (unsigned long long)now_ns, gzip ? ".gz" : "");
    return n < bytes ? 0 : -ENAMETOOLONG;
}
