// SPDX-License-Identifier: Apache-2.0
/* cmd_ctl.c - kprof ctl: asks running processes for their state, and starts and stops their recording */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/text/kp_jsonread.h"
#include "collector/base/text/kp_jsonvalue.h"
#include "export/answers/hang/hangprint.h"
#include "export/cli/cli.h"
#include "export/answers/jobs/ctlsocket.h"
#include "export/answers/jobs/joblist.h"
#include "export/answers/jobs/jobstart.h"
#include "export/answers/jobs/whereask.h"
#include "export/read/files/procstate.h"
#include "export/read/folder/trace_source.h"
#include "schedule/ctl_proto.h"

#define LISTENS "kprof run --control -- ..., or KPROF_CONTROL=1"

struct ctl {
    char request[KP_CTL_LINE_MAX + 2], words[KP_CTL_LINE_MAX + 2];
    struct kp_ctl_request parsed; /* points into words */
    const char *steps, *at, *job; /* as the user gave them, or NULL */
    bool is_json, is_of_job;
    unsigned asked, failed;
    struct kp_joblist jobs;
};
#define INTO(member) KP_OPT_INTO(struct ctl, member)
static const struct kp_opt flags[] = {
    {"steps", 0, KP_OPT_VALUE, "N", "start: record N whole steps, from the next one on, then write the trace",
     INTO(steps)},
    {"at-step", 0, KP_OPT_VALUE, "N|next", "start: begin with this step", INTO(at)},
    {"job", 0, KP_OPT_VALUE, "ID", "of several jobs in the folder this one; its first letters suffice", INTO(job)},
    {"json", 0, KP_OPT_FLAG, NULL, "the processes' own answers, a line each", INTO(is_json)},
    {0}};

/*
 * The members of the answers that preload/control/ctl_answer.c and preload/blackbox/where.c write: the library has no
 * rows. test_ctl.py holds what programs answer against them.
 */
/* clang-format off */
#define ALWAYS(key, type) {#key, true, KP_FIELD_TYPE, KP_TYPE(type), 0}
#define SOME(key, type) {#key, false, KP_FIELD_TYPE, KP_TYPE(type), 0}
#define ROWS(name) {NULL, name, sizeof name / sizeof *name}
/* clang-format on */
static const struct kp_field status_rows[] = {
    ALWAYS(ok, "boolean"),          ALWAYS(pid, "integer"),    ALWAYS(host, "string"),     SOME(job, "string"),
    SOME(phase, "string"),          ALWAYS(step, "integer"),   ALWAYS(steps_by, "string"), ALWAYS(window, "string"),
    SOME(asked_at, "integer"),      ALWAYS(traces, "integer"), ALWAYS(ops, "integer"),     ALWAYS(dropped, "integer"),
    ALWAYS(spool_bytes, "integer"), ALWAYS(cost_ms, "number")};
static const struct kp_field where_rows[] = {
    ALWAYS(where, "integer"),   ALWAYS(event, "string"),     ALWAYS(pid, "integer"),       ALWAYS(host, "string"),
    ALWAYS(time_ms, "integer"), SOME(rank, "integer"),       SOME(size, "integer"),        SOME(job, "string"),
    ALWAYS(step, "integer"),    ALWAYS(steps_by, "string"),  ALWAYS(collectives, "array"), SOME(python, "string"),
    SOME(no_python, "string"),  SOME(no_threads, "integer"), ALWAYS(threads, "array"),     ALWAYS(left_out, "integer"),
    ALWAYS(ours, "integer"),    SOME(lost, "array"),         SOME(children, "array")};
static const struct kp_field done_rows[] = {ALWAYS(ok, "boolean"), SOME(begins, "integer")};
static const struct kp_field error_rows[] = {ALWAYS(error, "string")};
static const struct kp_fields answers[] = {ROWS(status_rows), ROWS(where_rows), ROWS(done_rows), ROWS(error_rows)};
const struct kp_fields *const kp_ctl_status_schema = &answers[0], *const kp_ctl_where_schema = &answers[1],
                              *const kp_ctl_done_schema = &answers[2], *const kp_ctl_error_schema = &answers[3];

/* ---- one process ---- */

/* The answer of a process. Texts that are asked for lie in `plain`, which a single answer cannot fill. */
struct ctl_answer {
    char text[8192], plain[2 * 8192];
    size_t used;
    bool is_json;
};

/* Sends a line and reads the answer. False: there is none. */
static bool answer_get(struct ctl_answer *a, int fd, const char *request)
{
    size_t offset;
    const char *why;
    a->used = 0;
    if (!kp_ctlsocket_ask(fd, request, a->text, sizeof a->text)) return false;
    a->is_json = kp_jsonread_check(a->text, strlen(a->text), &offset, &why) == 0;
    return true;
}

/* A text or a number at the key. NULL: there is none. */
static const char *text_of(struct ctl_answer *a, const char *key)
{
    const struct kp_jsonvalue all = {a->text, strlen(a->text)};
    const struct kp_jsonvalue v = a->is_json ? kp_jsonvalue_member(all, key) : (struct kp_jsonvalue){NULL, 0};
    char *const to = a->plain + a->used;
    if (!v.at || !(*v.at == '"' || *v.at == '-' || (*v.at >= '0' && *v.at <= '9'))) return NULL;
    if (a->used + v.bytes + 4 > sizeof a->plain) return NULL;
    a->used += kp_jsonvalue_text(to, v.bytes + 4, v) + 1;
    return to;
}

static const char *or_none(const char *text) { return text ? text : "?"; }

static void status_print(const char *who, struct ctl_answer *answer)
{
    const char *const asked = text_of(answer, "asked_at");
    const char *const phase = text_of(answer, "phase");
    const char *const job = text_of(answer, "job");
    kp_cli_say(
        stdout,
        "%s: %s%s%s%s%sstep %s by %s, %s%s%s, %s ops, %s dropped, %s traces, spool %ld KiB, our threads took %s ms",
        who, job ? "job " : "", job ? job : "", job ? ", " : "", phase ? phase : "", phase ? " " : "",
        or_none(text_of(answer, "step")), or_none(text_of(answer, "steps_by")), or_none(text_of(answer, "window")),
        asked ? " from step " : "", asked ? asked : "", or_none(text_of(answer, "ops")),
        or_none(text_of(answer, "dropped")), or_none(text_of(answer, "traces")),
        atol(or_none(text_of(answer, "spool_bytes"))) / 1024, or_none(text_of(answer, "cost_ms")));
}

/* False: the process refused. */
static bool answer_print(const struct ctl *c, const char *who, struct ctl_answer *answer)
{
    const char *const error = answer->is_json ? text_of(answer, "error") : "its answer is no JSON";
    const char *const begins = text_of(answer, "begins");
    if (c->is_json) kp_cli_say(stdout, "%s", answer->text);
    else if (error) kp_cli_fail("ctl", "%s: %s", who, error);
    else if (text_of(answer, "step")) status_print(who, answer);
    else if (begins) kp_cli_say(stdout, "%s: records from step %s", who, begins);
    else kp_cli_say(stdout, "%s: done", who);
    return !error;
}

/* Prints all threads of a process. Its answer is long, and a process that is stopped gives none. */
static void where_ask(struct ctl *c, const char *path, const char *who)
{
    struct kp_hang hang = {0};
    const bool is_told = kp_where_ask(&hang, path, who);
    if (!is_told && errno == ECONNREFUSED) return; /* left by a process that was killed */
    c->asked++;
    const bool is_known = is_told && hang.of[0].state == KP_HANG_TOLD;
    if (!is_told) kp_cli_fail("ctl", "%s: %s", path, strerror(errno));
    else if (!is_known)
        kp_cli_fail("ctl", "%s: %s", who, hang.of[0].state == KP_HANG_STOPPED ? "stopped by a signal" : "no answer");
    else if (c->is_json) printf("%s\n", kp_where_text());
    else kp_hang_threads_print(stdout, &hang.of[0]);
    c->failed += !is_known;
    kp_hang_fini(&hang);
}

static void process_ask(void *context, const char *path, const char *who)
{
    struct ctl *const c = context;
    if (c->parsed.verb == KP_CTL_WHERE) {
        where_ask(c, path, who);
        return;
    }
    if (kp_input_has_end(path, KP_CTLSOCKET_EARLY)) return;
    struct ctl_answer answer;
    const int fd = kp_ctlsocket_connect(path);
    if (fd < 0 && errno == ECONNREFUSED) return; /* left by a process that was killed */
    c->asked++;
    if (fd < 0) {
        kp_cli_fail("ctl", "%s: %s", path, errno == EPERM ? "it belongs to another user" : strerror(errno));
        c->failed++;
    } else if (!answer_get(&answer, fd, c->request)) {
        kp_cli_fail("ctl", "%s: no answer", who);
        c->failed++;
    } else if (!answer_print(c, who, &answer)) {
        c->failed++;
    }
    if (fd >= 0) close(fd);
}

/* ---- which processes ---- */

/* Gives the job of a process to `out`: "" for none. False: it does not answer. */
static bool job_read(const char *path, char out[KP_JOBLIST_ID])
{
    struct ctl_answer answer;
    const int fd = kp_ctlsocket_connect(path);
    const bool is_there = fd >= 0 && answer_get(&answer, fd, "status\n") && answer.is_json;
    if (fd >= 0) close(fd);
    const char *const job = is_there ? text_of(&answer, "job") : NULL;
    snprintf(out, KP_JOBLIST_ID, "%s", job ? job : "");
    return is_there;
}

static void job_list(void *context, const char *path, const char *who)
{
    struct ctl *const c = context;
    char job[KP_JOBLIST_ID];
    (void)who;
    if (kp_input_has_end(path, KP_CTLSOCKET_EARLY)) return;
    if (job_read(path, job) && *job) kp_joblist_add(&c->jobs, job); /* a launcher itself has none */
}

static void job_ask(void *context, const char *path, const char *who)
{
    struct ctl *const c = context;
    char job[KP_JOBLIST_ID];
    if (job_read(path, job) && strcmp(job, c->job) == 0) process_ask(c, path, who);
}

/* Only status and where are for all jobs of a folder. False: the user has to name one, and is told. */
static bool job_find(struct ctl *c, const char *dir)
{
    if ((c->parsed.verb == KP_CTL_STATUS || c->parsed.verb == KP_CTL_WHERE) && !c->job) return true;
    (void)kp_ctlsocket_each(dir, job_list, c);
    c->is_of_job = c->job || c->jobs.count > 1;
    if (c->is_of_job) c->job = kp_joblist_pick(&c->jobs, dir, c->job);
    if (!c->is_of_job || c->job) return true;
    c->failed++;
    return false;
}

static void folder_ask(struct ctl *c, const char *dir)
{
    if (!job_find(c, dir)) return;
    const int elsewhere = kp_ctlsocket_each(dir, c->is_of_job ? job_ask : process_ask, c);
    if (elsewhere < 0) kp_cli_fail("ctl", "%s: %s", dir, kp_cli_read_why(errno));
    if (elsewhere > 0) kp_cli_fail("ctl", "%s: %d sockets of other machines: run this there", dir, elsewhere);
    if (elsewhere >= 0 && !c->asked)
        kp_cli_fail("ctl", "%s: no process here was started with --control (" LISTENS ")", dir);
    if (!c->asked) c->failed++;
}

/* The nearest process above that one that listens: a forked child does not itself. 0: none. */
static long parent_find(long pid)
{
    char path[4600];
    enum { DEPTH = 16 };
    for (int up = 0; up < DEPTH && (pid = kp_procstate_parent(pid)) > 1; up++)
        if (kp_ctlsocket_of_pid(pid, ".sock", path, sizeof path)) return pid;
    return 0;
}

static void pid_ask(struct ctl *c, long pid)
{
    char path[4600], who[32];
    snprintf(who, sizeof who, "%ld", pid);
    if (kp_ctlsocket_of_pid(pid, ".sock", path, sizeof path)) process_ask(c, path, who);
    else if (c->parsed.verb == KP_CTL_WHERE && kp_ctlsocket_of_pid(pid, KP_CTLSOCKET_EARLY, path, sizeof path))
        process_ask(c, path, who);
    if (c->asked) return;
    const long parent = parent_find(pid);
    if (parent)
        kp_cli_fail("ctl", "process %ld does not listen: it is a child of process %ld, which does: kprof ctl %ld where",
                    pid, parent, parent);
    else if (kp_procstate(pid)) kp_cli_fail("ctl", "process %ld was not started with --control (" LISTENS ")", pid);
    else kp_cli_fail("ctl", "process %ld is gone", pid);
    c->failed++;
}

/* ---- the request ---- */

static void word_add(char *line, size_t bytes, const char *before, const char *word)
{
    const size_t n = strlen(line);
    snprintf(line + n, bytes - n, "%s%s", before, word);
}

/* Joins the words, checks them as the process does, and ends the line. */
static int request_make(struct ctl *c, int count, char **words)
{
    char why[128];
    for (int i = 0; i < count; i++) word_add(c->request, sizeof c->request, i ? " " : "", words[i]);
    if (c->steps) word_add(c->request, sizeof c->request, " steps=", c->steps);
    if (c->at) word_add(c->request, sizeof c->request, " at=", c->at);
    const size_t length = strlen(c->request);
    if (length >= KP_CTL_LINE_MAX) return kp_cli_misuse("ctl", "the request is longer than %d bytes", KP_CTL_LINE_MAX);
    memcpy(c->words, c->request, length + 1);
    if (kp_ctl_parse(c->words, &c->parsed, why, sizeof why) != 0) return kp_cli_misuse("ctl", "%s", why);
    memcpy(c->request + length, "\n", 2);
    return KP_EXIT_DONE;
}

static int help_print(void)
{
    kp_cli_help("ctl", flags);
    if (!kp_cli_wants_schema())
        puts("\nrequests: status, where, start, stop, keep, toggle cpu|cuda on|off, step, phase NAME, metadata KEY "
             "VALUE");
    return KP_EXIT_DONE;
}

int kp_cmd_ctl(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "ctl", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct ctl c = {.is_json = false};
    struct stat st;
    long pid;
    const int i = kp_opt_flags(&scan, &c, NULL);
    if (i == KP_OPT_HELP) return help_print();
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (scan.count < 2)
        return kp_cli_misuse("ctl", "name a folder or a process, then a request: status, where, start or another");
    const int rc = request_make(&c, scan.count - 1, argv + 1);
    if (rc != KP_EXIT_DONE) return rc;
    const bool is_for_all = c.parsed.verb == KP_CTL_START || c.parsed.verb == KP_CTL_STOP;
    if (is_for_all && kp_jobstart_has_ranks(argv[0])) return kp_jobstart_run(argv[0], &c.parsed, c.job, c.is_json);
    if (stat(argv[0], &st) != 0 && kp_opt_number(argv[0], 1, &pid)) pid_ask(&c, pid);
    else folder_ask(&c, argv[0]);
    kp_joblist_free(&c.jobs);
    return c.failed ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}
