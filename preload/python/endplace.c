// SPDX-License-Identifier: Apache-2.0
/*
 * endplace.c - writes the line of Python that ends the program: the program's own first, a library's behind
 *
 * Called by: lastexception.c where a SystemExit is made; execs.c where the program leaves without an exit
 * Owns:      nothing
 * Locks:     none
 * Memory:    none
 * On fail:   "": the end has no place
 * Safe in:   signal handlers yes; after fork yes
 */
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "preload/python/pycalls.h"
#include "preload/python_bridge.h"
#include "collector/base/kp_poison.h"

enum { FILE_MOST = 100, FUNCTION_MOST = 60 };

/* Its last part, with the folder of an __init__.py. */
static const char *short_of(const char *file)
{
    const char *at = kp_path_base(file);
    if (strcmp(at, "__init__.py") != 0) return at;
    while (at > file + 1 && at[-2] != '/') at--;
    return at - (at > file);
}

static size_t frame_put(char *out, size_t bytes, const char *before, const struct kp_pywhere_frame *at)
{
    const char *file = kp_pysite_file(at->file);
    if (*file == '/') file = short_of(file); /* Python's folders are not read yet, or it is in none */
    const int most = (int)strnlen(file, FILE_MOST), function_most = (int)strnlen(at->function, FUNCTION_MOST);
    return kp_fmt(out, bytes, "%s%.*s:%d %.*s", before, most, file, at->line, function_most, at->function);
}

/* Python's own call behind the function of a process, and its main. */
static bool is_of_process(const char *file, bool has_own)
{
    return strstr(file, has_own ? "/multiprocessing/popen_fork" : "/multiprocessing/");
}

/* exit() and quit() of Python's site are as good as a statement; code that is no file has no name. */
static bool is_of_site(const char *file) { return *file == '<' || strstr(file, "_sitebuiltins"); }

void kp_endplace_put(char *out, size_t bytes)
{
    struct kp_pywhere_frame own, at;
    const bool has_own = kp_pywhere_own(&own), has_any = kp_pywhere_here(&at);
    *out = '\0';
    if (!has_any || is_of_process(at.file, has_own)) return;
    size_t n = frame_put(out, bytes, " at ", has_own ? &own : &at);
    if (!has_own || kp_pyfile_is_own(at.file) || is_of_site(at.file)) return;
    n += frame_put(out + n, bytes - n, KP_ENDPLACE_WITHIN, &at);
    if (n < bytes) kp_fmt(out + n, bytes - n, ")");
}
