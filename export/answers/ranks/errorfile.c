// SPDX-License-Identifier: Apache-2.0
/*
 * errorfile.c - what torch.distributed.elastic wrote of the exception that ended a rank (TORCHELASTIC_ERROR_FILE)
 *
 * {"message": {"message": "ValueError: text", "extraInfo": {"py_callstack": "Traceback ...", "timestamp": "17"}}}, by
 * its decorator `record`, and by its wrapper of a function that it starts as a rank.
 */
#include "export/answers/ranks/lastwords.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_filecheck.h"
#include "collector/base/text/kp_jsonread.h"
#include "collector/base/text/kp_jsonvalue.h"
#include "collector/base/text/kp_lostpeer.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_traceback.h"
#include "export/read/frames/ownline.h"
#include "export/read/kineto/kineto.h"

enum { SLACK = 16 }; /* kp_jsonvalue_text may leave some of its room unused */

/* The string's text, which the caller frees. NULL: it is none. */
static char *text_of(struct kp_jsonvalue string)
{
    if (!string.at || !kp_jsonvalue_is_string(string)) return NULL;
    char *const text = kp_kineto_zeros(string.bytes + SLACK, 1);
    kp_jsonvalue_text(text, string.bytes + SLACK, string);
    return text;
}

/* "ValueError: text": a name of Python, and what comes behind it. */
static bool type_take(struct kp_errorfile *out, const char *message)
{
    size_t n = 0;
    for (; message[n] && message[n] != ':'; n++) {
        const char c = message[n];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 128);
        if (n + 1 >= sizeof out->type || !(is_letter || (n && c >= '0' && c <= '9'))) return false;
    }
    snprintf(out->type, sizeof out->type, "%.*s", (int)n, message);
    return n > 0;
}

static bool is_own(const char *file) { return kp_ownline_is_file(NULL, file); }

/* The last block is that of the exception which ended it. */
static void place_find(struct kp_errorfile *out, const char *stack)
{
    struct kp_traceback block;
    while (kp_traceback_next(&stack, &block, is_own) || *block.file)
        snprintf(out->place, sizeof out->place, "%.150s:%d %.100s", kp_path_base(block.file), block.line,
                 block.function);
}

bool kp_errorfile_read(struct kp_errorfile *out, const char *text, size_t bytes)
{
    size_t offset;
    const char *why;
    *out = (struct kp_errorfile){0};
    if (kp_jsonread_check_object(text, bytes, &offset, &why) != 0) return false;
    const struct kp_jsonvalue outer = kp_jsonvalue_member((struct kp_jsonvalue){text, bytes}, "message");
    if (!outer.at || *outer.at != '{') return false; /* an older form has a text there, of no exception */
    const struct kp_jsonvalue more = kp_jsonvalue_member(outer, "extraInfo");
    const bool is_more = more.at && *more.at == '{';
    char *const message = text_of(kp_jsonvalue_member(outer, "message"));
    char *const stack = is_more ? text_of(kp_jsonvalue_member(more, "py_callstack")) : NULL;
    char *const seconds = is_more ? text_of(kp_jsonvalue_member(more, "timestamp")) : NULL;
    const bool is_told = message && type_take(out, message);
    const long long at = seconds ? atoll(seconds) : 0;
    out->at_ns = at > 0 && at < INT32_MAX ? at * INT64_C(1000000000) : 0;
    out->has_lost_peer = is_told && kp_lostpeer_is(out->type, message);
    if (is_told && stack) place_find(out, stack);
    free(message);
    free(stack);
    free(seconds);
    return is_told;
}

bool kp_errorfile_open(struct kp_errorfile *out, const char *path)
{
    const int fd = kp_filecheck_open_plain(path);
    if (fd < 0) return false;
    char *const text = kp_kineto_zeros(KP_ERRORFILE_MOST, 1);
    const ssize_t n = read(fd, text, KP_ERRORFILE_MOST - 1);
    close(fd);
    const bool is_told = n > 0 && kp_errorfile_read(out, text, (size_t)n);
    free(text);
    return is_told;
}
