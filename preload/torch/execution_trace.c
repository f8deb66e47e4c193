// SPDX-License-Identifier: Apache-2.0
/*
 * execution_trace.c - has torch's ExecutionTraceObserver write a file beside each window, as torch.profiler does
 *
 * Called by: torch_source.c, at steps (inside our own end callback) and when a window is closed; the host through taps
 * Owns:      torch's observer while a window has it; the range of the step in progress
 * Locks:     `turn`, held while torch's observer is changed; waits for it are bounded
 * On fail:   no execution trace, with one line; the window itself is recorded
 * Safe in:   after fork yes: the child leaves the file to its parent
 *
 * Torch has one observer a process. Its functions may be called only between its adding and its removing, so a tap
 * sees when the program adds its own: then ours ends and stays away. Torch writes to the file from each op, under a
 * mutex, and formats inputs and outputs: this costs what torch.profiler's execution_trace_observer costs.
 */
#include "preload/torch/execution_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "preload/hook/hook.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

int __cxa_atexit(void (*fn)(void *), void *arg, void *object); /* libc's; it may allocate, once for many handlers */

enum { TURN_TRIES = 2000, TURN_NAP_NS = 1000000, FDS_MAX = 65536 };
enum state {
    NONE,  /* torch has no observer, or the program's */
    READY, /* it has one, which does not write yet: the window warms up */
    ON,    /* it writes */
    OVER,  /* it does not write any more; the file has no end yet */
};

static bool are_groups_due; /* the window's file lacks them, and its first step has not begun */
static bool is_wanted, wants_extras, is_usable, is_broken, is_at_exit;
static const struct kp_torch_api *api;
static struct {
    bool (*add)(const void *text); /* const std::string & */
    void (*remove)(void);
    void (*enable)(void);
    void (*disable)(void);
} observer;
static const char *worker;
static atomic_flag turn = ATOMIC_FLAG_INIT;
static enum state state;
static uint32_t window; /* whose file it is */
static char path[4400];
static _Atomic bool host_has_it;
static struct kp_tap taps[2];

/* The RecordFunction of the step in progress. */
static struct {
    _Alignas(64) uint8_t at[2048];
    char name[40];
    bool is_open;
} step;

/* Torch's own variable: index tensors and more go into a folder beside the file. */
static bool has_extras(void)
{
    for (char **e = environ; e && *e; e++)
        if (strcmp(*e, "ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS=1") == 0) return true;
    return false;
}

void kp_execution_trace_setup(const struct kp_config *config)
{
    is_wanted = config->execution_trace;
    wants_extras = has_extras();
    worker = config->worker_name;
}

static bool turn_take(void)
{
    for (int i = 0; i < TURN_TRIES; i++) {
        if (!atomic_flag_test_and_set_explicit(&turn, memory_order_acquire)) return true;
        kp_io_nap(TURN_NAP_NS);
    }
    KP_LOG_ONCE(0, "torch is still writing an execution trace: a window gets none");
    return false;
}

static void turn_give(void) { atomic_flag_clear_explicit(&turn, memory_order_release); }

/* --- the step in progress --- */

/*
 * Torch calls the callbacks of all observers for this range. Our own are kept out: the step has a record already, and
 * `inside` refuses them without counting a loss.
 */
static void step_call(void (*what)(void))
{
    struct kp_thread *t = kp_thread_self;
    const uint64_t inside = t ? kp_load_relaxed(&t->inside) : 0;
    if (t) kp_store_relaxed(&t->inside, 1);
    kp_signal_fence();
    what();
    kp_signal_fence();
    if (t) kp_store_relaxed(&t->inside, inside);
}

static void range_begin(void)
{
    api->make(step.at, KP_TORCH_USER_SCOPE);
    kp_torch_before(api, step.at, step.name, -1);
}

static void range_end(void) { api->unmake(step.at); }

/* torch.profiler notes the process groups when its observer begins to write: a range that ends at once. */
static void groups_write(void)
{
    static _Alignas(64) uint8_t at[sizeof step.at];
    const struct kp_torch_layout *const layout = &kp_torch.layout;
    const char *const text = kp_caller_groups();
    void *value = NULL; /* an IValue, which is a list of one as well */
    if (!text || layout->dropped & KP_TORCH_NO_INPUTS || !api->from_text || !api->drop_value) return;
    if (api->from_text(text, &value) != 0 || !value) return;
    const size_t count = 1;
    api->make(at, KP_TORCH_USER_SCOPE);
    memcpy(at + layout->rf_inputs, &value, sizeof value);
    memcpy(at + layout->rf_inputs + sizeof value, &count, sizeof count);
    kp_torch_before(api, at, "## process_group:init ##", -1);
    api->unmake(at);
    api->drop_value(value);
    are_groups_due = false;
}

void kp_execution_trace_step_begin(uint64_t number)
{
    if (state != ON || step.is_open) return;
    if (are_groups_due) step_call(groups_write);
    are_groups_due = false;
    kp_fmt(step.name, sizeof step.name, "ProfilerStep#%lu", (unsigned long)number);
    step.is_open = true;
    step_call(range_begin);
}

void kp_execution_trace_step_end(void)
{
    if (!step.is_open) return;
    step_call(range_end);
    step.is_open = false;
}

/* --- the file; the caller has the turn --- */

/* The name is that of the window's trace up to the time: rank, then phase. */
static void path_make(void)
{
    const struct kp_rank place = kp_run_rank();
    const char *const phase = kp_phases_name(kp_phases_now());
    char host[KP_IO_HOST_BYTES], name[200], rank[16] = "";
    size_t n = worker ? kp_fmt(name, sizeof name, "%s", worker) : 0;
    kp_io_host_name(host);
    if (place.size > 1) kp_fmt(rank, sizeof rank, "_r%u", place.rank);
    if (!n) n = kp_fmt(name, sizeof name, "%s%s_%d", host, rank, (int)getpid());
    if (*phase) kp_fmt(name + n, sizeof name - n, "_%s", phase);
    for (char *c = name; *c; c++)
        if (*c == '/' || *c == '\\' || (unsigned char)*c <= ' ' || *c == 127) *c = '_';
    kp_fmt(path, sizeof path, "%s/%s.%lu.et.json", kp_run_out_dir(), name, (unsigned long)kp_clock_ns(CLOCK_REALTIME));
}

/* Torch truncates a file that is there, and takes no mode: so it is made here, as a trace's file is. */
static int file_make(void)
{
    path_make();
    const int fd = kp_io_open(path, O_WRONLY | O_CREAT | O_EXCL, KP_IO_FILE_MODE);
    if (fd >= 0) kp_io_close(fd);
    return fd < 0 ? fd : 0;
}

/* Torch looks for the folder under this name. */
static void extras_folder_make(void)
{
    char folder[sizeof path + 16];
    size_t length = strlen(path) - strlen(".json");
    memcpy(folder, path, length);
    kp_fmt(folder + length, sizeof folder - length, "_resources");
    (void)kp_io_mkdirs(folder, KP_IO_FOLDER_MODE);
}

/* A std::string of either ABI, as far as its reader looks. The older one is never shared at a count of -1. */
static bool torch_add(void)
{
    const size_t length = strlen(path);
    static struct {
        size_t length, room;
        int64_t count;
        char text[sizeof path];
    } older;
    if (kp_torch.layout.string_bytes == 32) {
        const struct {
            const char *text;
            size_t length, room, rest;
        } text = {path, length, length, 0};
        return observer.add(&text);
    }
    older.length = older.room = length;
    older.count = -1;
    memcpy(older.text, path, length + 1);
    const char *text = older.text;
    return observer.add(&text);
}

static void torch_end(void);

/* Runs before torch's own handlers, as torch's observer was made before: a window that exit cuts short has its end. */
static void at_exit(void *unused)
{
    (void)unused;
    kp_execution_trace_step_end();
    if (!turn_take()) return;
    is_at_exit = true;
    torch_end();
    turn_give();
}

static void open_file(uint32_t number)
{
    static bool is_registered;
    int err = file_make();
    if (!err && !torch_add()) err = -EIO;
    if (err) {
        is_broken = true;
        kp_log(0, "no execution trace: %s cannot be written: %s", kp_path_display(path), kp_log_error_text(err));
        return;
    }
    if (wants_extras) extras_folder_make();
    if (!is_registered) __cxa_atexit(at_exit, NULL, NULL);
    is_registered = true;
    state = READY;
    window = number;
}

/* Ends the file of a window that recorded; removes that of one that did not. */
static void torch_end(void)
{
    const bool is_empty = state == READY;
    if (state == NONE) return;
    if (state == ON) observer.disable();
    observer.remove();
    state = NONE;
    if (is_empty) (void)kp_io_unlink(path);
    else kp_log(1, "execution trace: %s", kp_path_display(path));
}

static void turn_off(bool is_full)
{
    if (state == ON) {
        observer.disable();
        state = OVER;
    }
    if (state == READY || is_full) torch_end();
}

bool kp_execution_trace_turn(bool is_full, uint64_t gate)
{
    const uint32_t number = kp_gate_cycle(gate);
    const bool records = gate & KP_GATE_RECORD;
    bool is_new = false;
    if (!is_usable || is_broken || is_at_exit || !turn_take()) return false;
    /* kprof_toggle alone asks for less while the window goes on: torch.profiler's observer writes on then, too. */
    const bool goes_on = state == ON && window == number && records;
    if (state != NONE && !goes_on && (!is_full || window != number)) turn_off(is_full);
    if (is_full && state == NONE && kp_load_acquire(&host_has_it))
        KP_LOG_ONCE(0, "no execution trace: the program has torch's observer for its own");
    else if (is_full && state == NONE) {
        open_file(number);
        is_new = state == READY;
    }
    if (is_full && state == READY && records) {
        observer.enable();
        state = ON;
        are_groups_due = true;
        step_call(groups_write);
    }
    turn_give();
    return is_new;
}

bool kp_execution_trace_is_on(void) { return is_usable; }

void kp_execution_trace_close(void)
{
    if (is_at_exit || !turn_take()) return;
    if (state == OVER) torch_end();
    turn_give();
}

/* Torch alone has the file open. -1: not found. */
static int fd_find(void)
{
    struct stat file, other;
    if (kp_io_stat(path, &file) != 0) return -1;
    for (int fd = STDERR_FILENO + 1; fd < FDS_MAX; fd++)
        if (kp_io_fstat(fd, &other) == 0 && other.st_ino == file.st_ino && other.st_dev == file.st_dev) return fd;
    return -1;
}

/* Text that torch holds back for the file would be written twice, by the child's exit as well. */
static void file_leave(void)
{
    const int fd = fd_find(), nowhere = fd < 0 ? fd : kp_io_open("/dev/null", O_WRONLY, 0);
    if (nowhere < 0) return;
    (void)kp_io_dup_over(nowhere, fd);
    kp_io_close(nowhere);
}

void kp_execution_trace_forget(void)
{
    atomic_flag_clear_explicit(&turn, memory_order_release);
    if (state != NONE) file_leave();
    if (state == ON) observer.disable();
    state = NONE;
    step.is_open = false;
    is_broken = true; /* torch has the parent's observer */
}

/* --- the program's own observer --- */

static bool tap_add(const void *text)
{
    if (turn_take()) {
        if (state != NONE) kp_log(0, "the program adds an execution trace observer: ours ends");
        torch_end();
        kp_store_release(&host_has_it, true);
        turn_give();
    }
    return observer.add(text);
}

static void tap_remove(void)
{
    observer.remove();
    kp_store_release(&host_has_it, false);
}

/* Torch 1.13 and 2.0 call it graph. `string` is the mangled name of std::string in this build. */
static bool observer_find(const char *word, const char *string)
{
    static char add[128], remove[80];
    char name[80];
    kp_fmt(add, sizeof add, "_ZN5torch8profiler4impl25addExecution%sObserverERK%s", word, string);
    kp_fmt(remove, sizeof remove, "_ZN5torch8profiler4impl28removeExecution%sObserverEv", word);
    *(void **)&observer.add = kp_torch_symbol(add);
    *(void **)&observer.remove = kp_torch_symbol(remove);
    kp_fmt(name, sizeof name, "_ZN5torch8profiler4impl28enableExecution%sObserverEv", word);
    *(void **)&observer.enable = kp_torch_symbol(name);
    kp_fmt(name, sizeof name, "_ZN5torch8profiler4impl29disableExecution%sObserverEv", word);
    *(void **)&observer.disable = kp_torch_symbol(name);
    taps[0] = (struct kp_tap){add, *(void **)&observer.add, (void *)(uintptr_t)tap_add};
    taps[1] = (struct kp_tap){remove, *(void **)&observer.remove, (void *)(uintptr_t)tap_remove};
    return observer.add && observer.remove && observer.enable && observer.disable;
}

void kp_execution_trace_attach(const struct kp_torch_api *found)
{
    const char *string =
        kp_torch.layout.string_bytes == 32 ? "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE" : "Ss";
    if (!is_wanted) return;
    api = found;
    is_usable = found->make && found->unmake && (found->before_view || found->before_text) &&
                (observer_find("Trace", string) || observer_find("Graph", string));
    if (is_usable) (void)kp_hook_add_taps(taps, 2);
    else
        kp_log(0, "torch %s has no execution trace observer: KPROF_EXECUTION_TRACE does nothing",
               kp_torch.version_text);
}
