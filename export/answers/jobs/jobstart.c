// SPDX-License-Identifier: Apache-2.0
/* jobstart.c - begins or ends a window in all ranks of a job with one step, by files (schedule/job/job.h) */
#include "export/answers/jobs/jobstart.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "export/show/fields.h"
#include "export/show/say.h"
#include "export/answers/jobs/ctlsocket.h"
#include "export/answers/jobs/joblist.h"
#include "export/read/files/procstate.h"
#include "export/read/store/stringtable.h"
#include "schedule/ctl_proto.h"
#include "schedule/job/job.h"

enum { LOOK_MS = 50, BEAT_MS = 500, SCAN_MS = 200, WATCH_MS = 1200, JOIN_MS = 1000, NAME_BYTES = 256 };

static const char call_name[] = ".kprof.job", rank_begin[] = ".", rank_end[] = ".rank";

struct job_rank_file {
    char name[NAME_BYTES];
    bool is_told; /* that it was left out, or refused */
};

struct jobstart {
    const char *dir;
    int dir_fd, call_fd;
    uid_t owner; /* of the job's files */
    struct job_rank_file *files;
    struct kp_job_member *members; /* as files */
    uint32_t count;
    size_t file_room, member_room;
    struct kp_job_lead lead;
    struct kp_job_call written;
    uint64_t written_ms, scanned_ms, round;
    bool has_job;    /* only ranks of `job` are added */
    bool is_joining; /* a rank has made its file, and not written it */
    char job[KP_JOBLIST_ID];
    char host[65];
    uint64_t pidspace;
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

static uint64_t clock_ms(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t now_ms(void) { return clock_ms(CLOCK_MONOTONIC); }

static void nap(uint64_t ms)
{
    const struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* ---- files ---- */

static bool is_rank_name(const char *name)
{
    const size_t n = strlen(name), end = sizeof rank_end - 1;
    return n > end + 1 && n < NAME_BYTES && strncmp(name, rank_begin, 1) == 0 && strcmp(name + n - end, rank_end) == 0;
}

/* The descriptor decides, never the path (decisions/039). -1 with errno; EPERM: not a file of the job's user alone. */
static int job_file_open(const struct jobstart *j, const char *name, int flags)
{
    struct stat st;
    const int fd = openat(j->dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && !(st.st_mode & (S_IRWXG | S_IRWXO)) &&
        st.st_uid == j->owner)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* For root the job's user is the owner of the job's file; all files must be that user's. */
static void owner_find(struct jobstart *j)
{
    struct stat st;
    j->owner = geteuid();
    if (j->owner == 0 && fstatat(j->dir_fd, call_name, &st, AT_SYMLINK_NOFOLLOW) == 0) j->owner = st.st_uid;
}

static const char *reason(int error)
{
    return error == EPERM || error == EACCES || error == ELOOP ? "it is not a file of the job's user alone"
                                                               : strerror(error);
}

static bool call_read(const struct jobstart *j, struct kp_job_call *out)
{
    char text[KP_JOB_BYTES] = "";
    memset(out, 0, sizeof *out);
    return pread(j->call_fd, text, sizeof text, 0) == (ssize_t)sizeof text && kp_job_call_parse(text, out);
}

static int call_write(struct jobstart *j)
{
    char text[KP_JOB_BYTES];
    j->lead.call.beat++;
    kp_job_call_print(&j->lead.call, text);
    if (pwrite(j->call_fd, text, sizeof text, 0) != (ssize_t)sizeof text)
        return kp_cli_fail("ctl", "%s/%s: %s", j->dir, call_name, strerror(errno));
    j->written = j->lead.call;
    j->written_ms = now_ms();
    return KP_EXIT_DONE;
}

/* ---- ranks ---- */

static bool is_here(const struct jobstart *j, const struct kp_job_answer *a)
{
    return j->pidspace && a->pidspace == j->pidspace && strcmp(a->host, j->host) == 0;
}

static bool is_process_gone(const struct jobstart *j, const struct kp_job_answer *a)
{
    return is_here(j, a) && kp_procstate_start((long)a->pid) != a->start;
}

/* 0, or an errno value. */
static int answer_read(const struct jobstart *j, const char *name, struct kp_job_answer *out)
{
    char text[KP_JOB_BYTES] = "";
    const int fd = job_file_open(j, name, O_RDONLY);
    if (fd < 0) return errno;
    const ssize_t n = pread(fd, text, sizeof text, 0);
    close(fd);
    return n == (ssize_t)sizeof text && kp_job_answer_parse(text, out) ? 0 : EAGAIN;
}

static void member_look(struct jobstart *j, uint32_t i)
{
    struct kp_job_member *const m = &j->members[i];
    struct kp_job_answer now = m->answer;
    const int error = answer_read(j, j->files[i].name, &now);
    m->is_gone = error == ENOENT || is_process_gone(j, &now);
    if (error || now.beat == m->answer.beat) return;
    m->answer = now;
    m->heard_ms = now_ms();
}

static bool is_known(const struct jobstart *j, const char *name)
{
    for (uint32_t i = 0; i < j->count; i++)
        if (strcmp(j->files[i].name, name) == 0) return true;
    return false;
}

/* A file that a killed process of this machine left goes; one that was there before is not told of. One that is half
 * written is read in the next scan: its job is not known. */
static void rank_add(struct jobstart *j, const char *name)
{
    struct kp_job_answer a = {.id = 0};
    const int error = answer_read(j, name, &a);
    if (error == EPERM || error == ELOOP) kp_cli_fail("ctl", "%s/%s: %s: left out", j->dir, name, reason(error));
    if (error == ENOENT || error == EAGAIN) return;
    if (!error && j->has_job && strcmp(a.job, j->job) != 0) return;
    const bool is_bad = error;
    const bool is_left = !error && is_process_gone(j, &a);
    if (is_left) {
        unlinkat(j->dir_fd, name, 0);
        return;
    }
    j->members = kp_kineto_grow(j->members, &j->member_room, j->count + 1, sizeof *j->members);
    j->files = kp_kineto_grow(j->files, &j->file_room, j->count + 1, sizeof *j->files);
    struct job_rank_file *const f = &j->files[j->count];
    *f = (struct job_rank_file){.is_told = is_bad};
    memcpy(f->name, name, strlen(name) + 1);
    j->members[j->count++] = (struct kp_job_member){.answer = a, .is_left_out = is_bad};
}

/* Ranks may come as long as none was asked for a step. */
static void ranks_scan(struct jobstart *j)
{
    const int fd = openat(j->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    j->scanned_ms = now_ms();
    if (!folder) return;
    while ((entry = readdir(folder)))
        if (is_rank_name(entry->d_name) && !is_known(j, entry->d_name)) rank_add(j, entry->d_name);
    closedir(folder);
}

/* ---- which job ---- */

/* Keeps the ranks of the job that is meant. False: none is, or several are, and it is told. */
static bool job_take(struct jobstart *j, const char *wish)
{
    struct kp_joblist list = {.count = 0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < j->count; i++)
        if (!j->members[i].is_left_out) kp_joblist_add(&list, j->members[i].answer.job);
    const char *const id = kp_joblist_pick(&list, j->dir, wish);
    if (id) snprintf(j->job, sizeof j->job, "%s", id);
    j->has_job = id && list.count;
    for (uint32_t i = 0; j->has_job && i < j->count; i++) {
        if (!j->members[i].is_left_out && strcmp(j->members[i].answer.job, j->job) != 0) continue;
        j->files[kept] = j->files[i];
        j->members[kept++] = j->members[i];
    }
    if (j->has_job) j->count = kept;
    kp_joblist_free(&list);
    return id;
}

/* ---- begin and end ---- */

static bool folder_open(struct jobstart *j, const char *dir)
{
    struct stat space;
    *j = (struct jobstart){.dir = dir, .call_fd = -1};
    j->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j->dir_fd < 0) return false;
    gethostname(j->host, sizeof j->host - 1);
    if (stat("/proc/self/ns/pid", &space) == 0) j->pidspace = space.st_ino;
    owner_find(j);
    return true;
}

static void folder_close(struct jobstart *j)
{
    if (j->call_fd >= 0) close(j->call_fd); /* gives the lock */
    close(j->dir_fd);
    free(j->files);
    free(j->members);
}

static uint32_t ranks_in(const struct jobstart *j)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < j->count; i++) count += !j->members[i].is_left_out;
    return count;
}

/* Visits the ranks' files that can be read, as long as `visit` says so. */
static void ranks_each(struct jobstart *j, bool (*visit)(struct jobstart *j, const char *name, bool is_gone))
{
    const struct dirent *entry;
    struct kp_job_answer a;
    const int fd = openat(j->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const folder = fd < 0 ? NULL : fdopendir(fd);
    bool goes_on = folder;
    j->is_joining = false;
    while (goes_on && (entry = readdir(folder))) {
        if (!is_rank_name(entry->d_name)) continue;
        const int error = answer_read(j, entry->d_name, &a);
        j->is_joining |= error == EAGAIN;
        if (!error) goes_on = visit(j, entry->d_name, is_process_gone(j, &a));
    }
    if (folder) closedir(folder);
}

static bool living_count(struct jobstart *j, const char *name, bool is_gone)
{
    (void)name;
    j->count += !is_gone;
    return is_gone;
}

bool kp_jobstart_has_ranks(const char *dir)
{
    struct jobstart j;
    if (!folder_open(&j, dir)) return false;
    const uint64_t begin = now_ms();
    ranks_each(&j, living_count);
    while (!j.count && j.is_joining && now_ms() - begin < JOIN_MS) {
        nap(LOOK_MS);
        ranks_each(&j, living_count);
    }
    const bool has = j.count;
    folder_close(&j);
    return has;
}

static bool gone_remove(struct jobstart *j, const char *name, bool is_gone)
{
    if (is_gone) unlinkat(j->dir_fd, name, 0); /* of this machine, by its own word and the pid namespace */
    return true;
}

void kp_jobstart_sweep(const char *dir)
{
    struct jobstart j;
    if (!folder_open(&j, dir)) return;
    ranks_each(&j, gone_remove);
    folder_close(&j);
}

/* One command at a time. If the file system has no locks, a call that changes is another's. */
static int call_take(struct jobstart *j)
{
    struct kp_job_call before, after;
    j->call_fd = job_file_open(j, call_name, O_RDWR);
    if (j->call_fd < 0) return kp_cli_fail("ctl", "%s/%s: %s", j->dir, call_name, reason(errno));
    bool is_busy = flock(j->call_fd, LOCK_EX | LOCK_NB) != 0;
    if (is_busy && errno != EWOULDBLOCK) {
        is_busy = call_read(j, &before);
        if (is_busy) nap(WATCH_MS);
        is_busy = is_busy && call_read(j, &after) && before.beat != after.beat;
    }
    return is_busy ? kp_cli_fail("ctl", "%s: another kprof ctl is starting or stopping these ranks", j->dir)
                   : KP_EXIT_DONE;
}

static uint64_t id_make(void)
{
    uint64_t id = 0;
    /* getrandom() came with glibc 2.25, Linux has it since 3.17 */
    if (syscall(SYS_getrandom, &id, sizeof id, 0) != (long)sizeof id)
        id = clock_ms(CLOCK_REALTIME) << 20 ^ (uint64_t)getpid();
    return id ? id >> 1 : 1; /* room for the rounds that are added to it */
}

/* ---- what happens ---- */

static void members_tell(struct jobstart *j)
{
    for (uint32_t i = 0; i < j->count; i++) {
        const struct kp_job_member *const m = &j->members[i];
        if (!m->is_left_out || j->files[i].is_told) continue;
        j->files[i].is_told = true;
        kp_cli_fail("ctl", "rank %lu (%s, process %lu) %s: left out", m->answer.rank, m->answer.host, m->answer.pid,
                    m->is_gone ? "is gone" : "was silent for 30 s");
        unlinkat(j->dir_fd, j->files[i].name, 0); /* it makes it again if it lives */
    }
    if (j->round && j->lead.call.round != j->round)
        kp_cli_fail("ctl", "rank %lu was late: all try again", j->members[j->lead.late].answer.rank);
    j->round = j->lead.call.round;
}

static bool is_call_changed(const struct jobstart *j)
{
    const struct kp_job_call *const a = &j->lead.call, *const b = &j->written;
    return a->state != b->state || a->round != b->round;
}

/* Two commands may have begun at a time if there are no locks: the last one to write goes on. */
static bool is_taken_over(const struct jobstart *j)
{
    struct kp_job_call there;
    return call_read(j, &there) && there.id != j->lead.call.id;
}

static int give_up(struct jobstart *j)
{
    if (j->lead.call.state == KP_JOB_COMMIT)
        return kp_cli_fail("ctl", "interrupted; the ranks have agreed on it already");
    j->lead.call.state = KP_JOB_DROP;
    (void)call_write(j);
    return kp_cli_fail("ctl", "interrupted: nothing was started");
}

/* Until all ranks agree. */
static int agree(struct jobstart *j)
{
    enum kp_job_progress progress = KP_JOB_GOES_ON;
    int rc = call_write(j);
    kp_ctlsocket_knock(j->dir); /* ranks elsewhere look by themselves */
    while (rc == KP_EXIT_DONE && progress == KP_JOB_GOES_ON) {
        nap(LOOK_MS + j->count / 4);
        if (is_interrupted) return give_up(j);
        const bool is_open = j->lead.call.state == KP_JOB_ASK || j->lead.call.state == KP_JOB_STOP;
        if (is_open && now_ms() - j->scanned_ms >= SCAN_MS) ranks_scan(j);
        for (uint32_t i = 0; i < j->count; i++) member_look(j, i);
        progress = kp_job_lead_turn(&j->lead, j->members, j->count, now_ms(), clock_ms(CLOCK_REALTIME));
        members_tell(j);
        const bool is_due = is_call_changed(j) || now_ms() - j->written_ms >= BEAT_MS;
        if (is_due && is_taken_over(j)) return kp_cli_fail("ctl", "%s: another kprof ctl took over", j->dir);
        if (is_due) rc = call_write(j);
    }
    return rc;
}

/* ---- the result ---- */

static const char *refusal(uint64_t error)
{
    switch (error) {
    case EALREADY: return "a window is open already, or KPROF_SCHEDULE has one with that step";
    case EBUSY: return "a start waits for its step already; stop takes it back";
    case EIO: return "there is no spool; the program's standard error says why";
    case ESHUTDOWN: return "the program ends";
    default: return strerror((int)error);
    }
}

static int failure_say(const struct jobstart *j)
{
    const struct kp_job_answer *const a = j->count ? &j->members[j->lead.who].answer : NULL;
    switch (j->lead.failure) {
    case KP_JOB_FAIL_REFUSED: return kp_cli_fail("ctl", "rank %lu: %s", a->rank, refusal(a->err));
    case KP_JOB_FAIL_BEGUN: return kp_cli_fail("ctl", "rank %lu: that step has begun already", a->rank);
    case KP_JOB_FAIL_PHASES:
        return kp_cli_fail("ctl", "rank %lu is in %s%s, others are not: steps count in a phase", a->rank,
                           *a->phase ? "phase " : "no phase", a->phase);
    case KP_JOB_FAIL_STEPLESS: return kp_cli_fail("ctl", "--at-step: nothing counts steps in these ranks");
    case KP_JOB_FAIL_ROUNDS: return kp_cli_fail("ctl", "rank %lu was late %d times", a->rank, KP_JOB_ROUNDS);
    default: return kp_cli_fail("ctl", "%s: no rank answers", j->dir);
    }
}

static const struct kp_job_answer *first_in(const struct jobstart *j)
{
    for (uint32_t i = 0; i < j->count; i++)
        if (j->members[i].is_in) return &j->members[i].answer;
    return NULL;
}

struct job_said {
    uint32_t ranks, left_out;
    const struct kp_job_call *call; /* NULL: they stopped */
};
/* clang-format off */
#define SAID(F, IF) \
    F(BOOL, ok, true) \
    F(WHOLE, ranks, r->ranks) \
    IF(r->call, WHOLE, left_out, r->left_out) \
    IF(r->call, WHOLE, rounds, r->call->round) \
    IF(r->call && r->call->target, WHOLE, begins, r->call->target) \
    IF(r->call && !r->call->target, WHOLE, begins_at_ms, r->call->at_ms)
KP_FIELDS(said, struct job_said, SAID)
/* clang-format on */
const struct kp_fields *const kp_jobstart_schema = &said_fields;

static void start_say(const struct jobstart *j, bool is_json)
{
    const struct kp_job_call *const call = &j->lead.call;
    const struct kp_job_answer *const first = first_in(j);
    const uint32_t ranks = ranks_in(j);
    char steps[40] = "", when[64], of[32] = "";
    const time_t at = (time_t)(call->at_ms / 1000);
    struct tm local;
    if (is_json) {
        kp_fields_line(stdout, &said_fields, &(struct job_said){ranks, j->count - ranks, call});
        return;
    }
    if (call->steps) snprintf(steps, sizeof steps, " %lu %s", call->steps, call->target ? "steps" : "s");
    if (first && first->size != ranks) snprintf(of, sizeof of, " of %lu", first->size);
    if (call->target) snprintf(when, sizeof when, "step %lu", call->target);
    else if (!localtime_r(&at, &local) || !strftime(when, sizeof when, "%H:%M:%S", &local)) return;
    kp_cli_say(stdout, "%u%s ranks record%s from %s%s%s on", ranks, of, steps, *call->phase ? call->phase : "",
               *call->phase ? " " : "", when);
}

static int stop_say(const struct jobstart *j, bool is_json)
{
    uint32_t stopped = 0;
    for (uint32_t i = 0; i < j->count; i++) stopped += j->members[i].is_in && !j->members[i].answer.err;
    if (!stopped) return kp_cli_fail("ctl", "nothing is recorded or asked for in %u ranks", ranks_in(j));
    if (is_json) kp_fields_line(stdout, &said_fields, &(struct job_said){.ranks = stopped});
    else kp_cli_say(stdout, "%u ranks stopped", stopped);
    return KP_EXIT_DONE;
}

static void call_begin(struct jobstart *j, const struct kp_ctl_request *request)
{
    const uint64_t at = request->is_at_step ? request->at : 0;
    if (request->verb == KP_CTL_STOP) kp_job_lead_stop(&j->lead, id_make(), now_ms());
    else kp_job_lead_begin(&j->lead, id_make(), request->steps, at, now_ms());
    memcpy(j->lead.call.job, j->job, sizeof j->job);
}

int kp_jobstart_run(const char *dir, const struct kp_ctl_request *request, const char *job, bool is_json)
{
    const struct sigaction quit = {.sa_handler = on_interrupt};
    const bool is_stop = request->verb == KP_CTL_STOP;
    struct jobstart j;
    if (request->is_at_step && !request->at) return kp_cli_fail("ctl", "step 0 has begun already");
    if (!folder_open(&j, dir)) return kp_cli_fail("ctl", "%s: %s", dir, kp_cli_read_why(errno));
    int rc = call_take(&j);
    if (rc == KP_EXIT_DONE) {
        sigaction(SIGINT, &quit, NULL);
        sigaction(SIGTERM, &quit, NULL);
        ranks_scan(&j);
        if (!job_take(&j, job)) {
            folder_close(&j);
            return KP_EXIT_BAD_INPUT;
        }
        call_begin(&j, request);
        rc = agree(&j);
        if (rc == KP_EXIT_DONE && j.lead.failure) rc = failure_say(&j);
        else if (rc == KP_EXIT_DONE && is_stop) rc = stop_say(&j, is_json);
        else if (rc == KP_EXIT_DONE) start_say(&j, is_json);
    }
    folder_close(&j);
    return rc;
}
