// SPDX-License-Identifier: Apache-2.0
/*
 * setup.c - settings of the simulated libcupti, its version, its log and its faults
 *
 * Every exported function begins in simcupti_call() and ends in simcupti_answer(). Functions that the chosen version
 * does not have are taken out of this library's own symbol table by the constructor, so that dlsym() finds them no
 * more.
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef SIMCUPTI_MAJOR
#define SIMCUPTI_MAJOR 13
#endif

struct simcupti_settings simcupti_set = {.log_fd = -1, .dump_fd = -1};
struct simcupti_state simcupti;
pthread_mutex_t simcupti_lock = PTHREAD_MUTEX_INITIALIZER;
_Thread_local int simcupti_in_client;
int simcupti_inside;

static const struct export
{
    const char *name;
    int since, until; /* 1107 is 11.7 */
    uint32_t calls;
}
export_rows[] = {
#define EXPORT(name, since, until) {#name, since, until, 0},
#include "test/doubles/simgpu/cupti/exports.def"
#undef EXPORT
};
enum { EXPORTS = sizeof export_rows / sizeof export_rows[0] };
static uint32_t call_counts[EXPORTS];

/* --- version --- */

/* What cuptiGetVersion says, and the layout it goes with. 18 is 11.8, 12.0 and 12.1: the soname tells which. */
static const struct {
    uint32_t version;
    int release; /* 1107 is 11.7 */
} version_rows[] = {
    {17, 1107},     {18, SIMCUPTI_MAJOR == 11 ? 1108 : 1201},
    {20, 1202},     {21, 1203},
    {22, 1204},     {23, 1205},
    {24, 1206},     {25, 1206},
    {26, 1208},     {27, 1209},
    {28, 1209},     {130000, 1300},
    {130001, 1300}, {130100, 1301},
    {130101, 1301}, {130200, 1302},
    {130300, 1303}, {130400, 1304},
    {130401, 1304}, {130500, 1305},
};

static int release_of(uint32_t version)
{
    for (size_t i = 0; i < sizeof version_rows / sizeof version_rows[0]; i++)
        if (version_rows[i].version == version) return version_rows[i].release;
    return 0;
}

static int layout_of(int release)
{
    static const char *const names[] = LAYOUT_VERSION_NAMES;
    char want[32];
    snprintf(want, sizeof want, "%d.%d", release / 100, release % 100);
    for (int i = 0; i < LAYOUT_VERSIONS; i++)
        if (!strcmp(names[i], want)) return i;
    return 0;
}

static const struct export *find_export(const char *name)
{
    size_t low = 0, high = EXPORTS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, export_rows[middle].name);
        if (!order) return &export_rows[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

static bool is_in_version(const struct export *row)
{
    int release = release_of(simcupti_set.version);
    return !row || (release >= row->since && release <= row->until);
}

bool simcupti_has(const char *function) { return is_in_version(find_export(function)); }

/* --- taking symbols away --- */

static void hide_symbols(const ElfW(Sym) * symbols, const char *strings, size_t count)
{
    long page = sysconf(_SC_PAGESIZE);
    for (size_t i = 1; i < count; i++) {
        const struct export *row = find_export(strings + symbols[i].st_name);
        if (!row || is_in_version(row) || symbols[i].st_shndx == SHN_UNDEF) continue;
        ElfW(Sym) *symbol = (ElfW(Sym) *)(uintptr_t)&symbols[i];
        uintptr_t at = (uintptr_t)symbol & ~(uintptr_t)(page - 1);
        size_t length = (uintptr_t)(symbol + 1) - at;
        if (mprotect((void *)at, length, PROT_READ | PROT_WRITE)) return;
        symbol->st_shndx = SHN_UNDEF;
        symbol->st_value = 0;
    }
}

static void forget_functions(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(&simcupti_set, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    size_t count = 0;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB) strings = (const char *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_HASH) count = ((const uint32_t *)entry->d_un.d_ptr)[1];
    }
    if (symbols && strings) hide_symbols(symbols, strings, count);
}

/* --- settings --- */

static uint32_t number(const char *name)
{
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

static int open_told(const char *name)
{
    const char *path = getenv(name);
    return path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
}

static void read_settings(void)
{
    static const uint32_t by_soname[] = {[11] = 18, [12] = 27, [13] = 130200};
    struct simcupti_settings *set = &simcupti_set;
    set->version = number("SIMCUPTI_VERSION");
    if (set->version && !release_of(set->version))
        fprintf(stderr, "simcupti: SIMCUPTI_VERSION=%u is none of those it knows\n", set->version);
    if (!release_of(set->version)) set->version = by_soname[SIMCUPTI_MAJOR];
    set->layout = layout_of(release_of(set->version));
    set->crash_early = number("SIMCUPTI_CRASH_EARLY");
    set->crash_null = number("SIMCUPTI_CRASH_NULL");
    set->shuffle = number("SIMCUPTI_SHUFFLE");
    set->truncate = number("SIMCUPTI_TRUNCATE");
    set->latch = number("SIMCUPTI_LATCH");
    set->amid = number("SIMCUPTI_AMID");
    set->v2_used = number("SIMCUPTI_V2_USED");
    set->stuck = number("SIMCUPTI_STUCK");
    set->singles = number("SIMCUPTI_SINGLES");
    set->holes = number("SIMCUPTI_HOLES");
    set->drop = number("SIMCUPTI_DROP");
    set->zero_every = number("SIMCUPTI_ZERO_EVERY");
    set->odd = number("SIMCUPTI_ODD");
    set->invisible = number("SIMCUPTI_INVISIBLE");
    set->late_ms = number("SIMCUPTI_LATE_MS");
    set->stale_ns = number("SIMCUPTI_STALE_NS");
    set->fail = getenv("SIMCUPTI_FAIL");
    set->hang = getenv("SIMCUPTI_HANG");
    set->slow = getenv("SIMCUPTI_SLOW");
    set->sync = getenv("SIMCUPTI_SYNC");
    set->crash_exit = number("SIMCUPTI_CRASH_EXIT");
    set->other_tool = getenv("SIMCUPTI_OTHER_TOOL");
    const char *replaced = getenv("SIMCUPTI_REPLACED");
    set->replaced = !replaced ? REPLACED_NEW : !strcmp(replaced, "own") ? REPLACED_OWN : REPLACED_LOST;
    set->is_multi_allowed = !getenv("SIMCUPTI_MULTI") || number("SIMCUPTI_MULTI");
    set->log_fd = open_told("SIMCUPTI_LOG");
    set->dump_fd = open_told("SIMCUPTI_DUMP");
    simcupti.attributes[9] = set->version >= 130000;
}

__attribute__((constructor)) static void prepare(void)
{
    read_settings();
    if (!number("SIMCUPTI_KEEP_SYMBOLS")) forget_functions();
}

/* --- the log --- */

static void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void log_line(const char *format, ...)
{
    if (simcupti_set.log_fd < 0) return;
    char line[768];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int n = snprintf(line, sizeof line, "{\"ns\":%lld,\"pid\":%d,\"tid\":%d,", now.tv_sec * 1000000000LL + now.tv_nsec,
                     (int)getpid(), (int)gettid());
    va_list arguments;
    va_start(arguments, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 3, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof line - 3) n = (int)sizeof line - 3;
    line[n++] = '}';
    line[n++] = '\n';
    ssize_t written = write(simcupti_set.log_fd, line, (size_t)n);
    (void)written;
}

int simcupti_answer(const char *name, int flags, uint64_t a, uint64_t b, int answer)
{
    if (!(flags & CALL_QUIET))
        log_line("\"call\":\"%s\",\"args\":[%llu,%llu],\"result\":%d", name, (unsigned long long)a,
                 (unsigned long long)b, answer);
    return answer;
}

static void log_enabled(char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (int kind = 1; kind < KIND_COUNT; kind++)
        if (simcupti.kinds[kind] && n + 8 < size) n += (size_t)snprintf(text + n, size - n, "%s%d", n ? "," : "", kind);
}

static int count_single(void)
{
    static const int kind_of[] = {[SIMGPU_DRIVER] = KIND_DRIVER, [SIMGPU_RUNTIME] = KIND_RUNTIME};
    int single = 0;
    for (int domain = SIMGPU_DRIVER; domain <= SIMGPU_RUNTIME; domain++)
        for (int cbid = 0; cbid < CBID_WORDS * 32 && simcupti_set.singles && !simcupti.kinds[kind_of[domain]]; cbid++)
            single += simcupti.filter[domain][cbid] > 0;
    return single;
}

void simcupti_log_request(void)
{
    char enabled[256];
    if (simcupti_set.log_fd < 0) return;
    log_enabled(enabled, sizeof enabled);
    log_line("\"request\":1,\"enabled\":[%s],\"single\":%d", enabled, count_single());
}

__attribute__((destructor)) static void say_what_is_left(void)
{
    char enabled[256];
    log_enabled(enabled, sizeof enabled);
    log_line(
        "\"exit\":1,\"enabled\":[%s],\"single\":%d,\"armed_pid\":%d,\"outstanding\":%zu,\"dropped\":%zu,\"clock\":%d",
        enabled, count_single(), simcupti.armed_pid, simcupti_outstanding(), simcupti.dropped, simcupti.clock != NULL);
    if (!simcupti_set.crash_exit || simcupti.armed_pid != (int)getpid() ||
        !__atomic_load_n(&simcupti_inside, __ATOMIC_RELAXED))
        return;
    log_line("\"crash\":\"somebody is inside\"");
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

/* --- faults --- */

void simcupti_hang(void)
{
    for (;;) pause();
}

bool simcupti_hangs(const char *word)
{
    const char *at = simcupti_set.hang;
    size_t length = strlen(word);
    while (at && *at) {
        size_t n = strcspn(at, ",");
        if (n == length && !strncasecmp(at, word, n)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

/* list: WORD[,...] */
static bool is_meant(const char *list, const char *function)
{
    for (const char *at = list; at && *at;) {
        char word[64];
        size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (n && strcasestr(function, word)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static void hang_if_told(const char *function)
{
    if (!is_meant(simcupti_set.hang, function)) return;
    log_line("\"call\":\"%s\",\"hangs\":1", function);
    simcupti_hang();
}

/* WORD:MS[:N] */
static void wait_if_told(const char *function)
{
    static uint32_t calls;
    char word[64];
    unsigned ms = 0, nth = 0;
    if (sscanf(simcupti_set.slow, "%63[^:]:%u:%u", word, &ms, &nth) < 2 || !strcasestr(function, word)) return;
    if (nth && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != nth) return;
    log_line("\"call\":\"%s\",\"slow\":%u", function, ms);
    usleep(ms * 1000);
}

/* FUNCTION:N:CODE[,...] */
static int told_to_fail(const char *function, uint32_t nth)
{
    const char *at = simcupti_set.fail;
    while (at && *at) {
        char name[96];
        unsigned n = 0;
        int code = 0;
        if (sscanf(at, "%95[^:]:%u:%d", name, &n, &code) == 3 && !strcmp(name, function) && (n == 0 || n == nth))
            return code;
        at = strchr(at, ',');
        if (at) at++;
    }
    return GO_ON;
}

/* --- the driver below --- */

const struct simgpu_core *simcupti_core(void)
{
    static const struct simgpu_core *_Atomic found;
    const struct simgpu_core *core = found;
    if (core) return core;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return NULL;
    const struct simgpu_core *(*get)(void) = NULL;
    *(void **)&get = dlsym(driver, "simgpu_core");
    core = get ? get() : NULL;
    found = core;
    return core;
}

bool simcupti_is_up(void)
{
    const struct simgpu_core *core = simcupti_core();
    return core && core->is_initialised();
}

int simcupti_no_gpu(void) { return simcupti_set.version >= 130000 ? CUPTI_UNKNOWN : CUPTI_NOT_INITIALIZED; }

/* What a call answers while there is no driver: up to 13.1 some work all the same; 13.2 (told to) crashes; later all
 * fail. */
static int before_driver(const char *name, int flags)
{
    if (simcupti_set.crash_early) {
        log_line("\"call\":\"%s\",\"crash\":\"before cuInit\"", name);
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (simcupti_set.version >= 130200 || (flags & (CALL_GPU | CALL_V1))) return simcupti_no_gpu();
    if ((flags & CALL_STUB_FAILS) && simcupti_core()) return simcupti_no_gpu();
    return GO_ON;
}

int simcupti_call(const char *name, int flags)
{
    const struct export *row = find_export(name);
    uint32_t nth = row ? __atomic_add_fetch(&call_counts[row - export_rows], 1, __ATOMIC_RELAXED) : 0;
    if (!is_in_version(row)) return CUPTI_NOT_SUPPORTED;
    if (simcupti_set.hang) hang_if_told(name);
    if (simcupti_set.slow) wait_if_told(name);
    if (is_meant(simcupti_set.sync, name)) simcupti_wait_for_work();
    if (simcupti_set.fail) {
        int code = told_to_fail(name, nth);
        if (code != GO_ON) return code;
    }
    if (!simcupti_is_up()) {
        int early = before_driver(name, flags);
        if (early != GO_ON) return early;
    }
    if ((flags & CALL_V1) && (simcupti_set.v2_used || simcupti.v2_used)) return CUPTI_NOT_COMPATIBLE;
    return GO_ON;
}
