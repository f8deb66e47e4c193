// SPDX-License-Identifier: Apache-2.0
/*
 * budget.c - limits the time, memory, text and disk that a command uses for a file
 *
 * Called by: every command that reads traces or spools
 * Owns:      RLIMIT_DATA's soft limit and the timer of processor time, while a file is read. From the first file on,
 *            the handlers of SIGPROF, SIGINT, SIGTERM and SIGHUP.
 * On fail:   a limit that cannot be set is left out
 *
 * A file may come from any source. A megabyte of gzip may be a gigabyte of events. All ops of a spool may refer to
 * the same thousand frames. So the limits grow with the file's data, where a hole of a terabyte counts nothing. A
 * recorded file stays far below (docs/decisions/041). KPROF_READ_LIMIT raises the limits for a trusted file that does
 * not. The kernel limits memory, so that no allocation is forgotten. It counts private pages, not those of a mapped
 * spool or a scratch file. The limit on processor time stops a walk that a hostile file makes long.
 */
#include "export/read/files/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "export/show/say.h"
#include "export/read/files/spoolfile.h"
#include "export/kp_export.h"
#include "export/read/store/stringtable.h"
#include "export/show/plain.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { HAS_SHADOW = true }; /* the sanitizer's own mappings would count as memory */
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { HAS_SHADOW = true };
#else
enum { HAS_SHADOW = false };
#endif
#else
enum { HAS_SHADOW = false };
#endif

#define MB (UINT64_C(1) << 20)
#define DEBUG_MOST (UINT64_C(8) << 30)
#define DEBUG_A_SECOND (8 * MB)
enum {
    LINE = 1024,
    EXTENTS_MAX = 65536,
    DEBUG_TIMES = 4
}; /* memory that libdw takes for a byte of debug information */

/* The least limits, and those for each byte of the file (seconds: for each megabyte). */
static const struct {
    uint64_t least, times;
} seconds_of = {60, 10}, memory_of = {160 * MB, 128}, text_of = {256 * MB, 512}, disk_of = {128 * MB, 48};

static struct {
    const char *command;
    char path[4400]; /* a copy: the input that has it may be closed before its limits end */
    struct kp_budget now;
    uint64_t taken, printed, debug; /* debug: bytes given to kp_budget_more */
    uint64_t all;                   /* bytes of all files that were begun; UINT64_MAX: a pipe was among them */
    struct rlimit data;             /* as it was */
    bool is_limited, is_watched;
    char part[KP_PART_BYTES], heap_part[KP_PART_BYTES];
    char late[LINE]; /* the timer's message, ready to be written */
    size_t late_bytes;
    char explained[LINE];
} budget;

/* ---- how much ---- */

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t all;
    return __builtin_mul_overflow(a, b, &all) ? UINT64_MAX : all;
}

static uint64_t part_of(uint64_t least, uint64_t times, uint64_t n, uint64_t factor)
{
    const uint64_t more = multiply(times, n),
                   all = multiply(more > UINT64_MAX - least ? UINT64_MAX : least + more, factor);
    return all >= (uint64_t)1 << 62 ? 0 : all;
}

void kp_budget_make(struct kp_budget *out, uint64_t file_bytes, const char *times)
{
    char *end;
    const unsigned long long given = times ? strtoull(times, &end, 10) : 1;
    const uint64_t factor = times && (end == times || *end || times[0] == '-') ? 1 : given;
    *out = (struct kp_budget){0};
    if (!factor || file_bytes == UINT64_MAX) return;
    out->seconds = part_of(seconds_of.least, seconds_of.times, file_bytes / MB, factor);
    out->memory = part_of(memory_of.least, memory_of.times, file_bytes, factor);
    out->text = part_of(text_of.least, text_of.times, file_bytes, factor);
    out->disk = part_of(disk_of.least, disk_of.times, file_bytes, factor);
}

uint64_t kp_budget_data(int fd, uint64_t size)
{
    uint64_t data = 0;
    off_t begin, end = 0;
    for (int n = 0; n < EXTENTS_MAX && kp_spoolfile_extent(fd, (off_t)size, &begin, &end); n++)
        data += (uint64_t)(end - begin);
    return data;
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return UINT64_MAX;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const uint64_t data = fd < 0 ? (uint64_t)st.st_size : kp_budget_data(fd, (uint64_t)st.st_size);
    if (fd >= 0) close(fd);
    return data;
}

/* ---- what is said ---- */

#define WHAT_TO_DO "; if you trust it, KPROF_READ_LIMIT=0 reads it without a limit"

static void megabytes_say(uint64_t bytes, const char *of)
{
    snprintf(budget.explained, sizeof budget.explained,
             "more than %llu MiB of %s is too much for a file of its size" WHAT_TO_DO, (unsigned long long)(bytes / MB),
             of);
}

const char *kp_budget_explain(int rc)
{
    if (rc == -EFBIG && budget.now.text) megabytes_say(budget.now.text, "text come out of it");
    else if (rc == -ENOMEM && budget.now.memory)
        megabytes_say(budget.now.memory, "memory or temporary files are needed to read it");
    else if (rc == -EDQUOT && budget.now.disk)
        megabytes_say(budget.now.disk, "temporary files are needed to put its events in order");
    else return strerror(-rc);
    return budget.explained;
}

static void parts_remove(void)
{
    if (budget.part[0]) unlink(budget.part);
    if (budget.heap_part[0]) unlink(budget.heap_part);
}

static void end_with(int rc)
{
    fflush(stdout);
    parts_remove();
    kp_cli_fail(budget.command, "%s: %s", budget.path, kp_budget_explain(rc));
    exit(KP_EXIT_BAD_INPUT);
}

/* Several threads read. The first that lacks memory ends the command; the others wait for that. */
static void no_memory(void)
{
    static atomic_flag is_ending = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&is_ending)) pause();
    if (!budget.now.memory) return;
    const struct rlimit data = budget.data;
    if (budget.is_limited) (void)setrlimit(RLIMIT_DATA, &data); /* room for the message */
    end_with(-ENOMEM);
}

int kp_budget_text(uint64_t bytes)
{
    budget.taken += bytes;
    return budget.now.text && budget.taken > budget.now.text ? -EFBIG : 0;
}

void kp_budget_unpacked(void)
{
    if (budget.now.text > budget.now.disk) budget.now.text = budget.now.disk;
}

uint64_t kp_budget_left(void)
{
    if (!budget.now.text) return 0;
    return budget.taken < budget.now.text ? budget.now.text - budget.taken : 1;
}

void kp_budget_print(size_t bytes)
{
    const uint64_t most = budget.part[0] ? budget.now.disk : budget.now.text;
    budget.printed += bytes;
    if (!most || budget.printed <= most) return;
    budget.now.text = most; /* for the message */
    end_with(-EFBIG);
}

/* ---- signals ---- */

char *kp_budget_part(void) { return budget.part; }

char *kp_budget_heap_part(void) { return budget.heap_part; }

static void on_late(int number)
{
    (void)number;
    parts_remove();
    if (write(2, budget.late, budget.late_bytes) < 0) _exit(KP_EXIT_BAD_INPUT);
    _exit(KP_EXIT_BAD_INPUT);
}

static void on_end(int number)
{
    parts_remove();
    signal(number, SIG_DFL);
    raise(number);
}

static void watch(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction old, action = {.sa_handler = on_end};
    if (budget.is_watched) return;
    budget.is_watched = true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(ends[i], &action, NULL);
    action.sa_handler = on_late;
    sigaction(SIGPROF, &action, NULL);
    kp_kineto_no_memory = no_memory;
}

/* ---- one file ---- */

/* Bytes of private pages in use. */
static uint64_t data_bytes(void)
{
    unsigned long long all, resident, shared, text, unused, data = 0;
    FILE *const file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%llu %llu %llu %llu %llu %llu", &all, &resident, &shared, &text, &unused, &data) != 6)
        data = 0;
    if (file) fclose(file);
    return data * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void memory_limit(void)
{
    const uint64_t had = HAS_SHADOW || !budget.now.memory ? 0 : data_bytes();
    if (!had || getrlimit(RLIMIT_DATA, &budget.data) != 0) return;
    struct rlimit less = {had + budget.now.memory, budget.data.rlim_max};
    if (budget.data.rlim_cur <= less.rlim_cur) return;
    budget.is_limited = setrlimit(RLIMIT_DATA, &less) == 0;
}

static void late_make(void)
{
    char plain[LINE / 2];
    (void)kp_plain_text(plain, sizeof plain, budget.path, strlen(budget.path));
    const int n =
        snprintf(budget.late, sizeof budget.late,
                 "kprof %s: %s: more than %llu s of processor time is too much for a file of its size" WHAT_TO_DO "\n",
                 budget.command, plain, (unsigned long long)budget.now.seconds);
    budget.late_bytes = n < LINE ? (size_t)n : LINE - 1;
}

static void time_limit(void)
{
    const struct itimerval timer = {.it_value.tv_sec = (time_t)budget.now.seconds};
    late_make();
    setitimer(ITIMER_PROF, &timer, NULL); /* 0: none */
}

static void begin(const char *command, const char *path, uint64_t bytes)
{
    kp_budget_end();
    kp_budget_make(&budget.now, bytes, getenv("KPROF_READ_LIMIT"));
    budget.command = command;
    if (path != budget.path) snprintf(budget.path, sizeof budget.path, "%s", path);
    budget.taken = budget.printed = budget.debug = 0;
    watch();
    memory_limit();
    time_limit();
}

static void all_add(uint64_t bytes) { budget.all = bytes > UINT64_MAX - budget.all ? UINT64_MAX : budget.all + bytes; }

void kp_budget_begin(const char *command, const char *path)
{
    const uint64_t bytes = size_of(path);
    begin(command, path, bytes);
    all_add(bytes);
}

void kp_budget_begin_all(void)
{
    if (budget.command) begin(budget.command, budget.path, budget.all);
}

static void add(uint64_t seconds, uint64_t memory)
{
    struct itimerval timer;
    struct rlimit data;
    if (!budget.now.seconds || getitimer(ITIMER_PROF, &timer) != 0) return;
    budget.now.seconds += seconds;
    timer.it_value.tv_sec += (time_t)seconds;
    late_make();
    setitimer(ITIMER_PROF, &timer, NULL);
    if (!budget.is_limited || getrlimit(RLIMIT_DATA, &data) != 0) return;
    data.rlim_cur += memory;
    budget.now.memory += memory;
    (void)setrlimit(RLIMIT_DATA, &data);
}

/* A spool may name a thousand files. All of them together add no more than a large program has. */
void kp_budget_more(uint64_t file_bytes)
{
    const uint64_t left = DEBUG_MOST - budget.debug, bytes = file_bytes < left ? file_bytes : left;
    budget.debug += bytes;
    add(bytes / DEBUG_A_SECOND, DEBUG_TIMES * bytes);
}

void kp_budget_beside(const char *path)
{
    struct kp_budget more;
    const uint64_t bytes = size_of(path);
    kp_budget_make(&more, bytes, getenv("KPROF_READ_LIMIT"));
    all_add(bytes);
    if (budget.now.text) budget.now.text += more.text;
    add(more.seconds, more.memory);
}

void kp_budget_end(void)
{
    const struct itimerval none = {.it_value.tv_sec = 0};
    if (budget.is_watched) setitimer(ITIMER_PROF, &none, NULL);
    if (budget.is_limited) (void)setrlimit(RLIMIT_DATA, &budget.data);
    budget.is_limited = false;
    budget.now = (struct kp_budget){0};
}

const struct kp_budget *kp_budget_now(void) { return &budget.now; }
