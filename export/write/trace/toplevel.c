// SPDX-License-Identifier: Apache-2.0
/*
 * toplevel.c - writes what surrounds a trace's events: top-level keys, metadata events, span and instants
 */
#include <string.h>

#include "collector/base/kp_hash.h"
#include "collector/base/kp_jsonread.h"
#include "collector/base/kp_log.h"
#include "export/write/gpu/gpu.h"
#include "export/write/heap/allocations.h"
#include "export/write/out/slice.h"
#include "export/write/trace/memory_before.h"
#include "export/write/trace/parts.h"
#include "collector/base/kp_poison.h"

#define QUARTER_S 7889238u /* Kineto counts times from a multiple of a quarter of a year */

static void key_string(struct kp_trace *t, const char *key, const char *value, size_t bytes)
{
    kp_json_fmt(&t->json, "  \"%s\": \"%.*s\",\n", key, (int)bytes, value);
}

static void key_number(struct kp_trace *t, const char *key, uint64_t value)
{
    kp_json_fmt(&t->json, "  \"%s\": %lu,\n", key, value);
}

/* --- top-level keys --- */

/* The user's own, or 32 upper-case hex digits, the same for the same cycle of the same process. */
static void id_write(struct kp_trace *t)
{
    size_t own_bytes;
    const char *own = kp_metadata_trace_id(t, &own_bytes);
    if (own) {
        kp_json_lit(&t->json, "  \"trace_id\": ");
        kp_json_raw(&t->json, own, own_bytes);
        kp_json_lit(&t->json, ",\n");
        return;
    }
    const struct kp_file_head *head = kp_reader_head(t->reader);
    struct {
        char host[64];
        uint64_t start, pid, cycle, salt;
    } seed = {.start = head->start_real_ns, .pid = head->pid, .cycle = t->cycle.number};
    char hex[32];
    memcpy(seed.host, head->host, strnlen(head->host, sizeof head->host));
    for (int half = 0; half < 2; half++) {
        uint64_t hash = kp_hash64(&seed, sizeof seed);
        for (int i = 0; i < 16; i++) hex[half * 16 + i] = "0123456789ABCDEF"[hash >> (60 - 4 * i) & 15];
        seed.salt = hash;
    }
    key_string(t, "trace_id", hex, 32);
}

static const char *launcher_text(const void *trace, const char *variable)
{
    char key[64];
    kp_fmt(key, sizeof key, "env.%s", variable);
    return kp_reader_text(((const struct kp_trace *)trace)->reader, key);
}

struct kp_rank kp_rank_of_trace(const struct kp_trace *t) { return kp_rank_find(launcher_text, t); }

/* What torch.distributed said, as torch.profiler writes it; else the launcher's. A spool may come from anywhere. */
static void distributed_write(struct kp_trace *t)
{
    const struct kp_rank found = kp_rank_of_trace(t);
    const char *const said = kp_reader_text(t->reader, "distributed"), *why;
    size_t offset;
    kp_json_lit(&t->json, "  \"distributedInfo\": {");
    if (said && *said == '{' && !kp_jsonread_check_object(said, strlen(said), &offset, &why)) {
        kp_json_raw(&t->json, said + 1, strlen(said) - 1);
        kp_json_lit(&t->json, ",\n");
        return;
    }
    /* HTA searches for "rank": with the blank */
    kp_json_fmt(&t->json, "\"rank\": %u, \"world_size\": %u},\n", found.rank, found.size);
}

static void options_write(struct kp_trace *t)
{
    static const char *const names[][2] = {{"KPROF_RECORD_SHAPES", "record_shapes"},
                                           {"KPROF_PROFILE_MEMORY", "profile_memory"},
                                           {"KPROF_WITH_STACK", "with_stack"},
                                           {"KPROF_WITH_MODULES", "with_modules"},
                                           {"KPROF_WITH_FLOPS", "with_flops"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = kp_reader_text(t->reader, names[i][0]);
        if (value && *value && strcmp(value, "0") != 0) key_number(t, names[i][1], 1);
    }
}

/* --- what only our traces say --- */

static const char *kind_name(int kind)
{
    switch (kind) {
#define KP_KIND(name, number, counts, ends, text) \
    case number:                                  \
        return #name;
#include "collector/format/kinds.def"
#undef KP_KIND
    default: return NULL;
    }
}

/* Writes {"OP": {"no chunk": 3}}. Rows of zeros are left out. */
static void drops_write(struct kp_trace *t)
{
    static const char *const reasons[KP_LOSS_N] = {"no chunk", "cap",   "disk",       "no slot",     "too big",  "name",
                                                   "re-entry", "quota", "file limit", "disk stands", "left free"};
    const struct kp_file_head *const head = kp_reader_head(t->reader);
    bool any = false;
    for (int kind = 0; kind < KP_KIND_N; kind++) {
        bool open = false;
        for (int reason = 0; reason < KP_LOSS_N; reason++) {
            const uint64_t n = kp_file_loss(head, kind, reason);
            if (!n) continue;
            if (any) kp_json_lit(&t->json, ", ");
            if (!open) kp_json_fmt(&t->json, "\"%s\": {", kind_name(kind) ? kind_name(kind) : "unknown");
            kp_json_fmt(&t->json, "\"%s\": %lu", reasons[reason], n);
            any = open = true;
        }
        if (open) kp_json_char(&t->json, '}');
    }
}

static void ours_string(struct kp_trace *t, const char *name, const char *key)
{
    const char *value = kp_reader_text(t->reader, key);
    if (value) kp_json_fmt(&t->json, ", \"%s\": \"%s\"", name, value);
}

/* "installed.0=a,b" and those that came later, as one list. */
static void installed_write(struct kp_trace *t)
{
    char key[24];
    const char *value;
    for (uint32_t i = 0; kp_fmt(key, sizeof key, "installed.%u", i), (value = kp_reader_text(t->reader, key)); i++) {
        if (i) kp_json_char(&t->json, ',');
        else kp_json_lit(&t->json, ", \"installed\": \"");
        kp_json_text(&t->json, value, strlen(value));
    }
    if (kp_reader_text(t->reader, "installed.0")) kp_json_char(&t->json, '"');
}

const char *kp_phase_name(const struct kp_trace *t)
{
    char key[32];
    kp_fmt(key, sizeof key, "phase.%u", (unsigned)t->cycle.number);
    return kp_reader_text(t->reader, key);
}

/* A whole number of a list such as "RUN,PART,GAPLESS,LEAVING" (phaserun.c). Returns the next one. */
static const char *whole_write(struct kp_trace *t, const char *name, const char *text)
{
    const char *end = text;
    while (*end >= '0' && *end <= '9') end++;
    if (end == text) return text;
    kp_json_fmt(&t->json, ", \"%s\": %.*s", name, (int)(end - text), text);
    return *end == ',' ? end + 1 : end;
}

/* The numbers of "1,2,3", by these names. */
static void wholes_of(struct kp_trace *t, const char *text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) text = whole_write(t, names[i], text);
}

/* The numbers of the note "KEY.WINDOW=1,2,3". False: there is no such note. */
static bool wholes_write(struct kp_trace *t, const char *note, const char *const *names, size_t count)
{
    char key[32];
    kp_fmt(key, sizeof key, "%s.%u", note, (unsigned)t->cycle.number);
    const char *const text = kp_reader_text(t->reader, key);
    if (text) wholes_of(t, text, names, count);
    return text;
}

/* Which run of its phase the window is of, so that a reader can tell how long a run lasts. */
static void phase_write(struct kp_trace *t)
{
    const char *const phase = kp_phase_name(t);
    if (!phase) return;
    kp_json_fmt(&t->json, ", \"phase\": \"%s\"", phase);
    static const char *const names[] = {"phase_run", "phase_part", "phase_gapless", "phase_leaving", "phase_open"};
    (void)wholes_write(t, "phase_run", names, sizeof names / sizeof *names);
}

/* "US;train:RUNS:US;..." since the first phase began, up to the window's end (phaserun.h). */
static void phase_times_write(struct kp_trace *t)
{
    char key[32];
    kp_fmt(key, sizeof key, "phase_times.%u", (unsigned)t->cycle.number);
    ours_string(t, "phase_times", key);
    static const char *const names[] = {"phase_before_steps", "phase_before_us"};
    (void)wholes_write(t, "phase_before", names, sizeof names / sizeof *names);
}

/* Processes that one program started are one run, whichever of them left a trace. */
static void ppid_write(struct kp_trace *t) { kp_json_fmt(&t->json, ", \"ppid\": %u", kp_reader_head(t->reader)->ppid); }

/* Whether a worker computes or waits, its calls do not tell: a file may be read from a disk far away. */
static void busy_write(struct kp_trace *t)
{
    const struct kp_busy busy = kp_reader_busy(t->reader, t->cycle.number);
    if (!kp_reader_text(t->reader, "parent_pid") || !busy.of_ns) return;
    kp_json_fmt(&t->json, ", \"busy_ms\": %lu, \"busy_of_ms\": %lu", busy.ns / 1000000, busy.of_ns / 1000000);
}

/*
 * "HAD,WAITED,OTHERS" in us: how long the thread of the steps had a core in the window, and waited for one, and how
 * long the program's other threads had one (procfacts.h). Older spools lack the last. A worker mostly ends before its
 * window does, and then its clock samples tell the first two.
 */
static void core_write(struct kp_trace *t)
{
    static const char *const names[] = {"core_had_us", "core_waited_us", "core_others_us"};
    if (wholes_write(t, "core", names, sizeof names / sizeof *names)) return;
    const struct kp_busy busy = kp_reader_busy(t->reader, t->cycle.number);
    if (!kp_reader_text(t->reader, "parent_pid") || !busy.is_wait_known) return;
    char text[48];
    kp_fmt(text, sizeof text, "%lu,%lu", (unsigned long)((busy.ns - busy.waited_ns) / 1000),
           (unsigned long)(busy.waited_ns / 1000));
    wholes_of(t, text, names, sizeof names / sizeof *names);
}

/* "NAME.WINDOW.0=17:60000,19-24:3000" and those that came later, as one list. */
static void of_steps_write(struct kp_trace *t, const char *name)
{
    const char *value;
    char key[40];
    uint32_t parts = 0;
    for (; kp_fmt(key, sizeof key, "%s.%u.%u", name, (unsigned)t->cycle.number, parts),
           (value = kp_reader_text(t->reader, key));
         parts++) {
        if (parts) kp_json_char(&t->json, ',');
        else kp_json_fmt(&t->json, ", \"%s\": \"", name);
        kp_json_text(&t->json, value, strlen(value));
    }
    if (parts) kp_json_char(&t->json, '"');
}

static void lists_write(struct kp_trace *t)
{
    of_steps_write(t, "core_steps");     /* us that they waited for a core */
    of_steps_write(t, "resident_steps"); /* KB of memory at their ends */
    of_steps_write(t, "address_steps");  /* KB of addresses then */
    of_steps_write(t, "file_steps");     /* how many files are open then */
}

/* "COUNT,US,ALL,ALL_US,LONG,LONG_US": of steps before the window, in which nothing was recorded, the median of the last
 * ones; where some are long, how many there are in all, and how long they last (baresteps.h). */
static void bare_write(struct kp_trace *t)
{
    static const char *const names[] = {"bare_steps",  "bare_step_us",    "bare_all_steps",
                                        "bare_all_us", "bare_long_steps", "bare_long_us"};
    (void)wholes_write(t, "bare", names, sizeof names / sizeof *names);
}

/* "STEPS,MANY,MINOR,MAJOR,BARE_STEPS,BARE": page faults of the thread of the steps (faultcount.h). */
static void faults_write(struct kp_trace *t)
{
    static const char *const names[] = {"fault_steps",  "fault_steps_many", "faults_minor",
                                        "faults_major", "fault_steps_bare", "faults_bare"};
    (void)wholes_write(t, "faults", names, sizeof names / sizeof *names);
    ours_string(t, "fault_ns", "fault_ns");
    ours_string(t, "malloc_trim_threshold", "env.MALLOC_TRIM_THRESHOLD_");
}

/* What counted this window's steps, and what did from then on, where the schedule started over. */
static void step_source_write(struct kp_trace *t)
{
    const char *at = kp_reader_text(t->reader, "guessed_windows");
    uint64_t guessed = 0;
    while (at && *at >= '0' && *at <= '9') guessed = guessed * 10 + (uint64_t)(*at++ - '0');
    const bool is_guess = t->cycle.number <= guessed;
    ours_string(t, "step_source", is_guess ? "guessed_by" : "step_source");
    if (is_guess) ours_string(t, "steps_until", "guessed_until");
}

/* What counts as a step, where the user named it. */
static void asked_step_write(struct kp_trace *t)
{
    const char *const step = kp_reader_text(t->reader, "KPROF_STEP");
    const bool is_named =
        step && (strncmp(step, "call:", 5) == 0 || strncmp(step, "op:", 3) == 0 || strncmp(step, "range:", 6) == 0);
    if (is_named) ours_string(t, "step", "KPROF_STEP");
}

static void counts_write(struct kp_trace *t)
{
    kp_json_fmt(&t->json,
                ", \"cycle\": %u, \"steps\": %u, \"complete\": %s, \"lost\": %lu, \"skipped\": %lu, \"drops\": {",
                t->cycle.number, t->cycle.steps, t->cycle.complete ? "true" : "false", t->cycle.lost,
                kp_reader_skipped(t->reader));
    drops_write(t);
    kp_json_lit(&t->json, "}");
    if (kp_reader_text(t->reader, "gpu_lost_at_least")) kp_json_lit(&t->json, ", \"lost_at_least\": true");
}

static uint64_t number_of(const struct kp_trace *t, const char *key)
{
    const char *at = kp_reader_text(t->reader, key);
    uint64_t value = 0;
    while (at && *at >= '0' && *at <= '9') value = value * 10 + (uint64_t)(*at++ - '0');
    return value;
}

/* What `kprof run` saw: how long behind the last thing that the program wrote it was gone, and its most memory. */
static void killed_write(struct kp_trace *t)
{
    const char *const exec = kp_reader_text(t->reader, "exec");
    ours_string(t, "ended_by", "ended_by");
    if (exec && *exec) ours_string(t, "exec", "exec");
    ours_string(t, "ended_without_memory", "ended_without_memory");
    const uint64_t gone_ns = number_of(t, "ended_real_ns"), end_ns = t->cycle.end_ns;
    const uint64_t peak_kb = number_of(t, "ended_peak_kb"), may_have = number_of(t, "ended_may_have");
    if (gone_ns > end_ns) kp_json_fmt(&t->json, ", \"ended_after_us\": %lu", (gone_ns - end_ns) / 1000);
    if (peak_kb) kp_json_fmt(&t->json, ", \"ended_peak_kb\": %lu", peak_kb);
    if (may_have) kp_json_fmt(&t->json, ", \"ended_may_have\": %lu", may_have);
}

/* A signal leaves the cycle open, an exit or an exception cuts it short. Behind any other the program went on. */
static void ended_write(struct kp_trace *t)
{
    ours_string(t, "error_file", "env." KP_RANK_ERROR_FILE);
    if ((t->cycle.complete && !t->cycle.cut_short) || t->options->is_kept) kp_json_lit(&t->json, ", \"went_on\": true");
    if (!t->cycle.complete) killed_write(t);
    if (t->cycle.complete && !t->cycle.cut_short) return;
    ours_string(t, "exit_status", "exit_status");
    ours_string(t, "exception", "exception");
    ours_string(t, "exception_at", "exception_at");
    ours_string(t, "exception_text", "exception_text");
    ours_string(t, "exception_root", "exception_root");
    if (kp_reader_text(t->reader, "lost_peer")) kp_json_lit(&t->json, ", \"lost_peer\": true");
    ours_string(t, "out_of_memory", "out_of_memory");
}

/* With KPROF_RING: how long what is left is. */
static void last_part_write(struct kp_trace *t)
{
    if (t->options->is_kept) kp_json_lit(&t->json, ", \"kept\": true");
    if (t->cycle.last_part) kp_json_fmt(&t->json, ", \"last_us\": %lu", (t->cycle.end_ns - t->cycle.begin_ns) / 1000);
}

static void ours_write(struct kp_trace *t)
{
    kp_json_lit(&t->json, "  \"kprof\": {\"version\": \"" KP_VERSION "\"");
    ours_string(t, "torch_version", "torch_version");
    ours_string(t, "job", "job");
    ours_string(t, "clock_left", "clock_left");
    step_source_write(t);
    if (kp_reader_text(t->reader, "step_ends")) kp_json_lit(&t->json, ", \"step_ends\": true");
    ours_string(t, "model", "model");
    asked_step_write(t);
    ours_string(t, "step_near", "step_near");
    ours_string(t, "gpu_source", "gpu_source");
    ours_string(t, "gpu_cupti", "gpu_cupti");
    ours_string(t, "schedule", "KPROF_SCHEDULE");
    ours_string(t, "python_gc", "KPROF_PYTHON_GC");
    ours_string(t, "python_version", "python_version");
    phase_write(t);
    phase_times_write(t);
    ours_string(t, "parent_pid", "parent_pid");
    ppid_write(t);
    ours_string(t, "symbols", "symbols");
    ours_string(t, "script", "script");
    ended_write(t);
    last_part_write(t);
    installed_write(t);
    ours_string(t, "cores", "cores");
    ours_string(t, "memory_kb", "memory_kb");
    ours_string(t, "instructions", "instructions");
    ours_string(t, "busy_threads", "busy_threads");
    ours_string(t, "torch_threads", "torch_threads");
    ours_string(t, "omp_num_threads", "env.OMP_NUM_THREADS");
    ours_string(t, "local_world_size", "env.LOCAL_WORLD_SIZE");
    core_write(t);
    lists_write(t);
    bare_write(t);
    faults_write(t);
    busy_write(t);
    counts_write(t);
    kp_json_lit(&t->json, "},\n");
}

/* --- metadata events --- */

static int thread_take(void *context, uint32_t tid, uint32_t thread_no, const char *name)
{
    struct kp_trace *t = context;
    struct kp_op_thread *thread = t->gpu ? kp_opstack_thread(&t->gpu->ops, tid) : NULL;
    (void)thread_no;
    if (thread) thread->is_named = true;
    kp_thread_row_write(t, tid, name);
    return 0;
}

static void process_write(struct kp_trace *t)
{
    const struct kp_file_head *head = kp_reader_head(t->reader);
    char program[sizeof head->program + 1] = {0};
    memcpy(program, head->program, strnlen(head->program, sizeof head->program));
    kp_row_write(t, "process_name", t->pid, 0, "name", program, 0);
    kp_row_write(t, "process_labels", t->pid, 0, "labels", "CPU", 0);
    kp_row_write(t, "process_sort_index", t->pid, 0, "sort_index", NULL, t->pid);
}

/* --- the two ends of the file --- */

void kp_head_write(struct kp_trace *t)
{
    const struct kp_file_head *head = kp_reader_head(t->reader);
    uint64_t start_s = head->start_real_ns / 1000000000u;
    t->base_ns = start_s / QUARTER_S * QUARTER_S * 1000000000u;
    kp_json_lit(&t->json, "{\n  \"schemaVersion\": 1,\n");
    kp_device_keys_write(t);
    id_write(t);
    options_write(t);
    distributed_write(t);
    kp_metadata_write(t);
    key_string(t, "host_name", head->host, strnlen(head->host, sizeof head->host));
    ours_write(t);
    key_string(t, "displayTimeUnit", "ms", 2);
    key_number(t, "baseTimeNanoseconds", t->base_ns);
    kp_json_lit(&t->json, "  \"traceEvents\": [\n");
    process_write(t);
    int rc = kp_reader_threads(t->reader, t->cycle.number, thread_take, t);
    if (rc && !t->json.error) t->json.error = rc;
}

int kp_tail_write(struct kp_trace *t)
{
    uint64_t begin = t->cycle.warm_begin_ns, end = t->cycle.end_ns;
    kp_json_fmt(&t->json,
                "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\",\"tid\":\"PyTorch "
                "Profiler\","
                "\"ts\":%ju,\"dur\":%ju,\"args\":{\"Op count\":0}},\n",
                kp_ts_of(t, begin), end > begin ? end - begin : 0);
    kp_json_fmt(&t->json,
                "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":%ju,\"pid\":\"Spans\",\"tid\":0,"
                "\"args\":{\"sort_index\":536870912}},\n",
                kp_ts_of(t, begin));
    kp_json_fmt(&t->json,
                "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: PyTorch Profiler\",\"pid\":\"Traces\","
                "\"tid\":\"Trace PyTorch Profiler\",\"ts\":%ju},\n",
                kp_ts_of(t, begin));
    kp_json_fmt(
        &t->json,
        "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":%ju}\n  ],\n",
        kp_ts_of(t, end));
    if (kp_gpu_has_counts(t)) kp_gpu_counts_write(t);
    const int rc = kp_before_write(t->before, t);
    if (t->heap) kp_heap_key_write(t->heap, t);
    kp_json_fmt(&t->json, "  \"traceName\": \"%s\"\n}\n", t->result->path);
    return rc;
}
