// SPDX-License-Identifier: Apache-2.0
/* ended.c - how the program of a trace ended, where it did not end by itself */
#include "export/read/kineto/ended.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/kp_crash.h"
#include "collector/base/text/kp_signalname.h"
#include "export/read/kineto/kineto_facts.h"

bool kp_ended_early(const struct kp_kineto *trace)
{
    const char *const complete = kp_kineto_fact(trace, "kprof.complete");
    return complete && strcmp(complete, "0") == 0;
}

const char *kp_ended_signal(const struct kp_kineto *trace) { return kp_kineto_fact(trace, "kprof.ended_by"); }

const char *kp_ended_exception(const struct kp_kineto *trace) { return kp_kineto_fact(trace, "kprof.exception"); }

bool kp_ended_lost_peer(const struct kp_kineto *trace)
{
    return kp_kineto_fact(trace, "kprof.lost_peer") || kp_ended_by_watchdog(kp_ended_by(trace));
}

const char *kp_ended_oom(const struct kp_kineto *trace)
{
    return kp_ended_exception(trace) ? kp_kineto_fact(trace, "kprof.out_of_memory") : NULL;
}

const char *kp_ended_by(const struct kp_kineto *trace)
{
    const char *const exception = kp_ended_exception(trace), *const signal = kp_ended_signal(trace);
    const char *const own = kp_kineto_fact(trace, "kprof.exec");
    return exception ? exception : signal && !(own && kp_ended_says_more(own, signal)) ? signal : own;
}

bool kp_ended_says_more(const char *by, const char *than)
{
    const size_t bytes = strlen(than);
    return strncmp(by, than, bytes) == 0 && by[bytes] == ' ';
}

bool kp_ended_by_watchdog(const char *by) { return by && strstr(by, "'s watchdog"); }

bool kp_ended_badly(const struct kp_kineto *trace) { return kp_ended_early(trace) || kp_ended_exception(trace); }

/* torch.save's writer in C++ says where it is in its file, and nothing of the error of the system. */
static bool is_unwritten(const char *text)
{
    if (strstr(text, "iostream error")) return true;
    return strstr(text, "inline_container.cc") &&
           (strstr(text, "unexpected pos") || strstr(text, "PytorchStreamWriter failed writing"));
}

const char *kp_ended_text(char *out, size_t bytes, const char *text)
{
    *out = '\0';
    if (!text || !*text) return out;
    snprintf(out, bytes, " \"%.83s\"%s", text,
             is_unwritten(text) ? " (torch could not write its file: is the disk full?)" : "");
    return out;
}

const char *kp_ended_place(char *out, size_t bytes, const char *place, const char *root)
{
    snprintf(out, bytes, "%s%.300s%s%.319s%s", place && *place ? " at " : "", place ? place : "",
             root && *root ? " (caused by " : "", root ? root : "", root && *root ? ")" : "");
    return out;
}

const char *kp_ended_exception_place(char *out, size_t bytes, const struct kp_kineto *trace)
{
    const bool is_meant = kp_ended_exception(trace);
    return kp_ended_place(out, bytes, is_meant ? kp_kineto_fact(trace, "kprof.exception_at") : NULL,
                          is_meant ? kp_kineto_fact(trace, "kprof.exception_root") : NULL);
}

const char *kp_ended_way(char *out, size_t bytes, const struct kp_kineto *trace)
{
    const char *const by = kp_ended_by(trace);
    const char *const text = kp_ended_exception(trace) ? kp_kineto_fact(trace, "kprof.exception_text") : NULL;
    const char *const child = kp_kineto_fact(trace, KP_ENDED_CHILD);
    char quoted[KP_ENDED_TEXT_BYTES];
    snprintf(out, bytes, "%s%.400s%s%s%.160s%s", by ? "by " : KP_ENDED_WITHOUT_EXIT, by ? by : "",
             kp_ended_text(quoted, sizeof quoted, text), child ? " (its child process " : "", child ? child : "",
             child ? ")" : "");
    return out;
}

const char *kp_ended_word(const struct kp_kineto *trace)
{
    const char *const by = kp_ended_by(trace);
    return by && kp_signalname_number(by) == SIGKILL ? "killed" : "ended";
}

const char *kp_ended_remark(const struct kp_kineto *trace)
{
    return kp_kineto_fact(trace, "kprof.ended_without_memory")
               ? " (meanwhile the kernel killed a process for want of memory)"
               : "";
}

bool kp_ended_is_kept(const struct kp_kineto *trace) { return kp_kineto_fact(trace, "kprof.kept"); }

bool kp_ended_went_on(const struct kp_kineto *trace) { return kp_kineto_fact(trace, "kprof.went_on"); }

bool kp_ended_is_last_part(const struct kp_kineto *trace) { return kp_kineto_number(trace, "kprof.last_us") > 0; }

const char *kp_ended_recorded(char *out, size_t bytes, const struct kp_kineto *trace)
{
    const double us = (double)kp_kineto_number(trace, "kprof.last_us");
    const double after_us = (double)kp_kineto_number(trace, "kprof.ended_after_us");
    if (kp_ended_is_last_part(trace))
        snprintf(out, bytes, "the last %.1f s before it ended", (us + (after_us > 0 ? after_us : 0)) / 1e6);
    else snprintf(out, bytes, "what was recorded until then");
    return out;
}

bool kp_ended_by_crash(const char *by) { return by && kp_crash_is(kp_signalname_number(by)); }
