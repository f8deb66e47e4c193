// SPDX-License-Identifier: Apache-2.0
/*
 * toplevel.c - writes what surrounds a trace's events: top-level keys, metadata events, span and instants
 */
#include <string.h>

#include "collector/base/kp_hash.h"
#include "collector/base/text/kp_jsonread.h"
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

/* The words of torch.distributed, as torch.profiler writes them; else the launcher's. A spool may come from
 * anywhere. */
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

/* The members that the trace and the spool name alike. */
#define OURS_STRINGS(t, ...) ours_strings(t, (const char *const[]){__VA_ARGS__, NULL})
static void ours_strings(struct kp_trace *t, const char *const *names)
{
    for (; *names; names++) ours_string(t, *names, *names);
}

static void ours_true(struct kp_trace *t, const char *name, bool is_so)
{
    if (is_so) kp_json_fmt(&t->json, ", \"%s\": true", name);
}

static void ours_number(struct kp_trace *t, const char *name, uint64_t value)
{
    if (value) kp_json_fmt(&t->json, ", \"%s\": %lu", name, value);
}

static bool has_note(const struct kp_trace *t, const char *key) { return kp_reader_text(t->reader, key) != NULL; }

static uint64_t number_of(const struct kp_trace *t, const char *key)
{
    const char *at = kp_reader_text(t->reader, key);
    uint64_t value = 0;
    while (at && *at >= '0' && *at <= '9') value = value * 10 + (uint64_t)(*at++ - '0');
    return value;
}

/* "NOTE.0=a,b" and those that came later, as one list. */
static void list_write(struct kp_trace *t, const char *name, const char *note)
{
    char key[48];
    const char *value;
    uint32_t i = 0;
    for (; kp_fmt(key, sizeof key, "%s.%u", note, i), (value = kp_reader_text(t->reader, key)); i++) {
        if (i) kp_json_char(&t->json, ',');
        else kp_json_fmt(&t->json, ", \"%s\": \"", name);
        kp_json_text(&t->json, value, strlen(value));
    }
    if (i) kp_json_char(&t->json, '"');
}

/* The name of a note of this window alone, "NOTE.WINDOW". */
struct note_key {
    char text[40];
};
static struct note_key window_key(const struct kp_trace *t, const char *note)
{
    struct note_key key;
    kp_fmt(key.text, sizeof key.text, "%s.%u", note, (unsigned)t->cycle.number);
    return key;
}

static const char *window_text(const struct kp_trace *t, const char *note)
{
    return kp_reader_text(t->reader, window_key(t, note).text);
}

const char *kp_phase_name(const struct kp_trace *t) { return window_text(t, "phase"); }

/* A whole number of a list such as "RUN,PART,GAPLESS,LEAVING" (phaserun.c). Returns the next one. */
static const char *whole_write(struct kp_trace *t, const char *name, const char *text)
{
    const char *end = text;
    while (*end >= '0' && *end <= '9') end++;
    if (end == text) return text;
    kp_json_fmt(&t->json, ", \"%s\": %.*s", name, (int)(end - text), text);
    return *end == ',' ? end + 1 : end;
}

/* The numbers of the window's note "KEY.WINDOW=1,2,3", by these names. False: there is no such note. */
#define WHOLES_WRITE(t, note, ...) wholes_write(t, window_text(t, note), (const char *const[]){__VA_ARGS__, NULL})
static bool wholes_write(struct kp_trace *t, const char *text, const char *const *names)
{
    for (const char *at = text; at && *names; names++) at = whole_write(t, *names, at);
    return text;
}

/* Which run of its phase the window is of, so that a reader can tell how long a run lasts. */
static void phase_write(struct kp_trace *t)
{
    const char *const phase = kp_phase_name(t);
    if (!phase) return;
    kp_json_fmt(&t->json, ", \"phase\": \"%s\"", phase);
    WHOLES_WRITE(t, "phase_run", "phase_run", "phase_part", "phase_gapless", "phase_leaving", "phase_open");
}

/* "US;train:RUNS:US;..." since the first phase began, up to the window's end (phaserun.h). */
static void phase_times_write(struct kp_trace *t)
{
    ours_string(t, "phase_times", window_key(t, "phase_times").text);
    WHOLES_WRITE(t, "phase_before", "phase_before_steps", "phase_before_us");
}

/* Whether a worker computes or waits, its calls do not tell: a file may be read from a disk far away. */
static void busy_write(struct kp_trace *t)
{
    const struct kp_busy busy = kp_reader_busy(t->reader, t->cycle.number);
    if (!has_note(t, "parent_pid") || !busy.of_ns) return;
    kp_json_fmt(&t->json, ", \"busy_ms\": %lu, \"busy_of_ms\": %lu", busy.ns / 1000000, busy.of_ns / 1000000);
}

/*
 * "HAD,WAITED,OTHERS" in us: how long the thread of the steps had a core in the window, and waited for one, and how
 * long the program's other threads had one (procfacts.h). Older spools lack the last. A worker mostly ends before its
 * window does, and then its clock samples tell the first two.
 */
static void core_write(struct kp_trace *t)
{
    if (WHOLES_WRITE(t, "core", "core_had_us", "core_waited_us", "core_others_us")) return;
    const struct kp_busy busy = kp_reader_busy(t->reader, t->cycle.number);
    if (!has_note(t, "parent_pid") || !busy.is_wait_known) return;
    kp_json_fmt(&t->json, ", \"core_had_us\": %lu, \"core_waited_us\": %lu", (busy.ns - busy.waited_ns) / 1000,
                busy.waited_ns / 1000);
}

/* "NAME.WINDOW.0=17:60000,19-24:3000" and those that came later. */
static void lists_write(struct kp_trace *t)
{
    static const char *const names[] = {
        "core_steps" /* us that they waited for a core */, "resident_steps" /* KB of memory at their ends */,
        "address_steps" /* KB of addresses then */, "file_steps" /* how many files are open then */};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) list_write(t, names[i], window_key(t, names[i]).text);
}

/* "COUNT,US,ALL,ALL_US,LONG,LONG_US": of steps before the window, in which nothing was recorded, the median of the last
 * ones; where some are long, how many there are in all, and how long they last (baresteps.h). */
static void bare_write(struct kp_trace *t)
{
    WHOLES_WRITE(t, "bare", "bare_steps", "bare_step_us", "bare_all_steps", "bare_all_us", "bare_long_steps",
                 "bare_long_us");
}

/* "STEPS,MANY,MINOR,MAJOR,BARE_STEPS,BARE": page faults of the thread of the steps (faultcount.h). */
static void faults_write(struct kp_trace *t)
{
    WHOLES_WRITE(t, "faults", "fault_steps", "fault_steps_many", "faults_minor", "faults_major", "fault_steps_bare",
                 "faults_bare");
    ours_string(t, "fault_ns", "fault_ns");
    ours_string(t, "malloc_trim_threshold", "env.MALLOC_TRIM_THRESHOLD_");
}

/* The thing that counted this window's steps, and the one that did from then on, if the schedule started over. */
static void step_source_write(struct kp_trace *t)
{
    const bool is_guess = t->cycle.number <= number_of(t, "guessed_windows");
    ours_string(t, "step_source", is_guess ? "guessed_by" : "step_source");
    if (is_guess) ours_string(t, "steps_until", "guessed_until");
}

/* The thing that counts as a step, if the user named it. */
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
    ours_true(t, "lost_at_least", has_note(t, "gpu_lost_at_least"));
}

/* The facts that `kprof run` saw: how long behind the last thing that the program wrote it was gone, and its most
 * memory. */
static void killed_write(struct kp_trace *t)
{
    const char *const exec = kp_reader_text(t->reader, "exec");
    ours_string(t, "ended_by", "ended_by");
    if (exec && *exec) ours_string(t, "exec", "exec");
    ours_string(t, "ended_without_memory", "ended_without_memory");
    const uint64_t gone_ns = number_of(t, "ended_real_ns"), end_ns = t->cycle.end_ns;
    if (gone_ns > end_ns) kp_json_fmt(&t->json, ", \"ended_after_us\": %lu", (gone_ns - end_ns) / 1000);
    ours_number(t, "ended_peak_kb", number_of(t, "ended_peak_kb"));
    ours_number(t, "ended_may_have", number_of(t, "ended_may_have"));
}

/* A signal leaves the cycle open, an exit or an exception cuts it short. Behind any other the program went on. */
static void ended_write(struct kp_trace *t)
{
    ours_string(t, "error_file", "env." KP_RANK_ERROR_FILE);
    const bool is_whole = t->cycle.complete && !t->cycle.cut_short;
    ours_true(t, "went_on", is_whole || t->options->is_kept);
    if (!t->cycle.complete) killed_write(t);
    if (is_whole) return;
    OURS_STRINGS(t, "exit_status", "exception", "exception_at", "exception_text", "exception_root");
    ours_true(t, "lost_peer", has_note(t, "lost_peer"));
    ours_string(t, "out_of_memory", "out_of_memory");
}

/* With KPROF_RING: how long what is left is. */
static void last_part_write(struct kp_trace *t)
{
    ours_true(t, "kept", t->options->is_kept);
    if (t->cycle.last_part) kp_json_fmt(&t->json, ", \"last_us\": %lu", (t->cycle.end_ns - t->cycle.begin_ns) / 1000);
}

static void ours_write(struct kp_trace *t)
{
    kp_json_lit(&t->json, "  \"kprof\": {\"version\": \"" KP_VERSION "\"");
    OURS_STRINGS(t, "torch_version", "job", "clock_left");
    step_source_write(t);
    ours_true(t, "step_ends", has_note(t, "step_ends"));
    ours_string(t, "model", "model");
    asked_step_write(t);
    OURS_STRINGS(t, "step_near", "gpu_source", "gpu_cupti");
    ours_string(t, "schedule", "KPROF_SCHEDULE");
    ours_string(t, "python_gc", "KPROF_PYTHON_GC");
    ours_string(t, "python_version", "python_version");
    phase_write(t);
    phase_times_write(t);
    ours_string(t, "parent_pid", "parent_pid");
    /* Processes that one program started are one run, whichever of them left a trace. */
    kp_json_fmt(&t->json, ", \"ppid\": %u", kp_reader_head(t->reader)->ppid);
    OURS_STRINGS(t, "symbols", "script");
    ended_write(t);
    last_part_write(t);
    list_write(t, "installed", "installed");
    OURS_STRINGS(t, "cores", "memory_kb", "instructions", "busy_threads", "torch_threads");
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
