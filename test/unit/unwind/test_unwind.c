// SPDX-License-Identifier: Apache-2.0
/* test_unwind.c - machine code stacks are those the compiler's own unwinder sees, wherever they are asked for */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/elf/kp_modulepath.h"
#include "collector/read/kp_read.h"
#include "collector/record/kp_record.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/unwind/codemap.h"
#include "test/support/reader_open.h"
#include "test/support/support.h"

enum { DEPTH = KP_UNWIND_DEPTH };
#define FRAMELESS __attribute__((noinline, optimize("omit-frame-pointer")))
#define NOINLINE __attribute__((noinline))

static struct both {
    uintptr_t ours[DEPTH + 1], theirs[DEPTH];
    int ours_n, theirs_n;
} both;
static volatile int sink;

static _Unwind_Reason_Code take(struct _Unwind_Context *context, void *unused)
{
    (void)unused;
    int is_exact = 0;
    const uintptr_t pc = _Unwind_GetIPInfo(context, &is_exact);
    if (pc && both.theirs_n < DEPTH) both.theirs[both.theirs_n++] = pc + (is_exact != 0);
    return _URC_NO_REASON;
}

/* Both from the same function: their innermost frames are two places in it. */
static NOINLINE void walk_both(void)
{
    memset(&both, 0, sizeof both);
    both.ours_n = kp_unwind_walk(both.ours, DEPTH);
    _Unwind_Backtrace(take, NULL);
    sink++;
}

static void assert_same(int at_least)
{
    assert_true(both.ours_n >= at_least);
    assert_int_equal(both.ours_n, both.theirs_n);
    for (int i = 1; i < both.ours_n; i++)
        if (both.ours[i] != both.theirs[i])
            fail_msg("frame %d of %d: %lx, not %lx", i, both.ours_n, both.ours[i], both.theirs[i]);
}

/* ---- code of many shapes ---- */

static FRAMELESS int deep(int n)
{
    char room[32 + 16];
    memset(room, n, sizeof room);
    if (n == 0) walk_both();
    else sink ^= deep(n - 1);
    return room[7] ^ sink;
}

/* The frame grows at run time: the stack pointer does not tell where it began. */
static NOINLINE int with_array(int n)
{
    char *room = __builtin_alloca((size_t)n);
    memset(room, 1, (size_t)n);
    walk_both();
    return room[n / 2] ^ sink;
}

/* Needs more than the stack's alignment: reached through a register and a word of the frame. */
static NOINLINE int aligned(int n)
{
    _Alignas(64) volatile char room[64];
    char *more = __builtin_alloca((size_t)n);
    room[0] = more[0] = (char)n;
    walk_both();
    return (room[0] + more[0]) ^ sink;
}

static int compare(const void *a, const void *b)
{
    if (!both.ours_n) walk_both();
    return *(const int *)a - *(const int *)b;
}

static void stacks_are_those_of_the_unwinder(void **state)
{
    int numbers[] = {5, 3, 4, 1};
    (void)state;
    walk_both();
    assert_same(3);
    deep(40);
    assert_same(43);
    with_array(100);
    assert_same(4);
    aligned(33);
    assert_same(4);
    both.ours_n = 0;
    qsort(numbers, 4, sizeof *numbers, compare); /* through libc, which has no frame pointers */
    assert_same(5);
}

static void a_stack_deeper_than_asked_for_is_cut(void **state)
{
    (void)state;
    deep(KP_UNWIND_DEPTH + 100);
    assert_int_equal(both.ours_n, DEPTH);
    for (int i = 1; i < DEPTH; i++) assert_int_equal(both.ours[i], both.theirs[i]);
    both.ours[3] = 77;
    assert_int_equal(kp_unwind_walk(both.ours, 3), 3);
    assert_int_equal(both.ours[3], 77);
}

/* ---- where a stack is ---- */

static struct both kept;

static void *on_a_thread(void *depth)
{
    deep((int)(intptr_t)depth);
    kept = both;
    return NULL;
}

static void threads_have_their_own_stacks(void **state)
{
    pthread_t thread;
    pthread_attr_t small;
    (void)state;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32768); /* of the C library's 16 KB a sanitizer leaves nothing */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&thread, i ? NULL : &small, on_a_thread, (void *)(intptr_t)(i * 50)), 0);
        pthread_join(thread, NULL);
        both = kept;
        assert_same(i * 50 + 3);
    }
    pthread_attr_destroy(&small);
}

static void on_signal(int number)
{
    (void)number;
    const int saved = errno;
    walk_both();
    errno = saved;
}

static FRAMELESS int struck(int n)
{
    if (n) return struck(n - 1) + 1;
    raise(SIGUSR1);
    return sink;
}

static void a_signal_shows_what_it_struck(void **state)
{
    struct sigaction action = {.sa_handler = on_signal};
    stack_t alternate = {.ss_size = 65536,
                         .ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    (void)state;
    sigaction(SIGUSR1, &action, NULL);
    struck(5);
    assert_same(9);
    assert_int_equal(sigaltstack(&alternate, NULL), 0);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    struck(5);
    assert_same(9);
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, NULL);
    munmap(alternate.ss_sp, 65536);
}

/* Struck at its first and last instructions, too: everywhere in a loop of calls. */
static FRAMELESS int leaf(int a) { return (a * 3) ^ sink; }
static volatile sig_atomic_t ticks_seen, ticks_wrong;

/* AArch64 stores the return address at a frame's low end, and a rule has room for one within 4 KB of the CFA. So the
 * handler's own frame is small. */
static void on_tick(int number)
{
    static uintptr_t frames[DEPTH];
    (void)number;
    const int n = kp_unwind_walk(frames, DEPTH);
    bool is_main_there = false;
    for (int i = 0; i < n; i++) is_main_there |= frames[i] == (uintptr_t)kept.ours[0];
    ticks_seen++;
    if (!is_main_there) ticks_wrong++;
}

static NOINLINE void spin(void)
{
    char text[64];
    for (int i = 0; ticks_seen < 300; i++) {
        sink ^= leaf(i);
        snprintf(text, sizeof text, "%d %s", i, "some work in libc");
        sink ^= text[0];
    }
}

static NOINLINE void note_caller(void) { kept.ours[0] = (uintptr_t)__builtin_return_address(0); }

static void a_signal_may_strike_anywhere(void **state)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    uintptr_t frames[DEPTH];
    (void)state;
    sigaction(SIGALRM, &action, NULL);
    note_caller();
    assert_true(kp_unwind_walk(frames, DEPTH) > 2);
    kept.ours[0] = frames[1]; /* the test runner's call of this test */
    ualarm(1000, 1000);
    spin();
    ualarm(0, 0);
    assert_int_equal(ticks_wrong, 0);
}

static ucontext_t fiber, back;
static void in_fiber(void)
{
    deep(10);
    swapcontext(&fiber, &back);
}

static void a_fiber_is_a_stack_of_its_own(void **state)
{
    enum { BYTES = 1 << 17 };
    (void)state;
    for (volatile int i = 0; i < 3; i++) { /* its memory goes away each time */
        uint8_t *volatile stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(stack, 4096, PROT_NONE);
        getcontext(&fiber);
        fiber.uc_stack.ss_sp = stack, fiber.uc_stack.ss_size = BYTES, fiber.uc_link = &back;
        makecontext(&fiber, in_fiber, 0);
        swapcontext(&back, &fiber);
        assert_true(both.ours_n >= 12);
        for (int k = 1; k < 12; k++) assert_int_equal(both.ours[k], both.theirs[k]);
        munmap(stack, BYTES);
    }
    deep(3);
    assert_same(6);
}

static void a_child_can_walk(void **state)
{
    int status = 0;
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        deep(7);
        _exit(both.ours_n == both.theirs_n && both.ours_n > 9 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void memory_that_cannot_be_asked_for_gives_no_frames(void **state)
{
    (void)state;
    kp_fail_set("peek:1+");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, on_a_thread, NULL), 0);
    pthread_join(thread, NULL);
    kp_fail_set(NULL);
    assert_true(kept.ours_n <= 1);
}

/* ---- modules ---- */

static const char *library_make(const char *name, int shape)
{
    static char path[4096];
    char command[9000];
    snprintf(path, sizeof path, "%s/lib%s.so", kp_test_tmpdir(), name);
    snprintf(
        command, sizeof command,
        "printf 'int outer(int (*f)(int), int n) { volatile char room[%d]; room[0] = 1; return f(n) + room[0]; }' |"
        " ${CC:-cc} -O2 -fomit-frame-pointer -fPIC -shared -Wl,--build-id -x c - -o %s",
        16 + 64 * shape, path);
    return system(command) == 0 ? path : NULL;
}

static int walk_from_library(int n)
{
    walk_both();
    return n;
}

static void walk_through(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    int (*outer)(int (*)(int), int);
    *(void **)&outer = dlsym(library, "outer");
    kp_unwind_modules_changed();
    sink ^= outer(walk_from_library, 1);
    assert_same(5);
    assert_int_equal(dlclose(library), 0);
    kp_unwind_modules_changed();
}

static void code_that_was_unloaded_is_forgotten(void **state)
{
    (void)state;
    char first[4096];
    const char *path = library_make("one", 0);
    if (!path) KP_SKIP("no compiler");
    snprintf(first, sizeof first, "%s", path);
    path = library_make("two", 9); /* the same function at the same place, with another frame */
    const uint32_t generation = kp_unwind_generation();
    for (int i = 0; i < 4; i++) walk_through(i % 2 ? path : first);
    assert_true(kp_unwind_generation() != generation);
}

#if defined(__x86_64__)
/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret: in no module, so no table tells of it. */
static void code_made_at_run_time_is_passed_by_its_frame_pointer(void **state)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*run)(void (*)(void));
    (void)state;
    assert_ptr_not_equal(page, MAP_FAILED);
    memcpy(page, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) KP_SKIP("pages of code cannot be made here");
    memcpy(&run, &page, sizeof run);
    walk_both();
    kept = both;
    run(walk_both);
    assert_true(kept.ours_n > 3);
    assert_int_equal(both.ours_n, kept.ours_n + 1);
    assert_int_equal(both.ours[1], (uintptr_t)page + 6);
    for (int i = 2; i < kept.ours_n; i++) assert_int_equal(both.ours[i + 1], kept.ours[i]);
    munmap(page, 4096);
}
#endif

/* ---- kept ---- */

static __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls", "no-reorder-blocks-and-partition")))
uint32_t
stack_of(struct kp_thread *t, int depth)
{
    const uint32_t id = depth ? stack_of(t, depth - 1) : kp_unwind_stack(t);
    sink++;
    return id;
}

static void a_stack_is_kept_once_and_told(void **state)
{
    struct kp_thread *t = kp_thread_get();
    struct kp_reader *r;
    struct kp_frame of[DEPTH];
    char why[256];
    uint32_t first[2], stack;
    uintptr_t frames[DEPTH];
    int n = 0, inside = 0;
    (void)state;
    for (volatile int i = 0; i < 2; i++) first[i] = stack_of(t, 20);
    assert_int_not_equal(first[0], 0);
    assert_int_equal(first[0], first[1]);
    assert_int_not_equal(stack_of(t, 21), first[0]);
    const int depth = kp_unwind_walk(frames, DEPTH);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    for (stack = first[0]; n < DEPTH && kp_reader_native(r, &stack, &of[n]); n++) {
        const uintptr_t at = of[n].base + of[n].offset;
        inside += at > (uintptr_t)stack_of && at < (uintptr_t)stack_of + 256;
    }
    assert_true(inside >= 21 && inside <= 22); /* perhaps this test is right behind it */
    assert_int_equal(n, 1 + 21 + depth);       /* here kp_unwind_stack is no library's own */
    assert_non_null(strstr(of[1].path, "test_unwind"));
    assert_int_equal(strlen(of[1].build_id), 40);
    for (int i = 1; i < depth; i++) assert_int_equal(of[n - i].base + of[n - i].offset, frames[depth - i]);
    stack = 12345678;
    assert_false(kp_reader_native(r, &stack, &of[0]));
    kp_reader_close(r);
}

static int depth_read(struct kp_reader *r, uint32_t stack)
{
    struct kp_frame frame;
    int n = 0;
    while (n < 2 * DEPTH && kp_reader_native(r, &stack, &frame)) n++;
    return n;
}

static void a_deep_stack_is_whole_and_a_deeper_one_cut(void **state)
{
    struct kp_thread *t = kp_thread_get();
    struct kp_reader *r;
    char why[256];
    (void)state;
    const uint32_t shallow = stack_of(t, 20), deep = stack_of(t, KP_UNWIND_DEPTH - 100);
    const uint32_t deeper = stack_of(t, KP_UNWIND_DEPTH + 100), again = stack_of(t, KP_UNWIND_DEPTH + 100);
    const uint32_t after = stack_of(t, 20), deep_again = stack_of(t, KP_UNWIND_DEPTH - 100);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    assert_int_equal(depth_read(r, deep) - depth_read(r, shallow), KP_UNWIND_DEPTH - 120);
    assert_int_equal(depth_read(r, deeper), KP_UNWIND_CUT);
    assert_int_equal(depth_read(r, again), KP_UNWIND_CUT);
    assert_int_equal(depth_read(r, after), depth_read(r, shallow)); /* whole again */
    assert_int_equal(depth_read(r, deep_again), depth_read(r, deep));
    kp_reader_close(r);
}

/* A block's stack: the Python stack beside the machine code, as one id. */
static void two_stacks_are_one_id(void **state)
{
    struct kp_thread *t = kp_thread_get();
    struct kp_reader *r;
    struct kp_frame frame;
    char why[256];
    const uint32_t native = kp_unwind_stack(t), pair = kp_unwind_stack_with(t, native, 4711);
    (void)state;
    assert_false(kp_unwind_was_interrupted(t));
    assert_int_not_equal(native, 0);
    assert_int_not_equal(pair, native);
    assert_int_equal(kp_unwind_stack_with(t, native, 4711), pair);
    assert_int_not_equal(kp_unwind_stack_with(t, native, 4712), pair);
    assert_int_not_equal(kp_unwind_stack_with(t, pair, 4711), pair);
    assert_int_equal(kp_unwind_stack_with(t, 0, 4711), 0);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    uint32_t stack = pair;
    assert_false(kp_reader_native(r, &stack, &frame)); /* it is no frame */
    stack = pair;
    assert_int_equal(kp_reader_python_beside(r, &stack), 4711);
    assert_int_equal(stack, native);
    assert_int_equal(kp_reader_python_beside(r, &stack), 0);
    assert_int_equal(stack, native);
    kp_reader_close(r);
}

static uint32_t handler_stack;
static bool handler_interrupted;

static void on_stack_signal(int number)
{
    (void)number;
    handler_stack = kp_unwind_stack(kp_thread_get());
    handler_interrupted = kp_unwind_was_interrupted(kp_thread_get());
}

static void a_stack_in_a_handler_says_so(void **state)
{
    (void)state;
    signal(SIGUSR2, on_stack_signal);
    raise(SIGUSR2);
    signal(SIGUSR2, SIG_DFL);
    assert_int_not_equal(handler_stack, 0);
    assert_true(handler_interrupted);
    assert_int_not_equal(kp_unwind_stack(kp_thread_get()), 0);
    assert_false(kp_unwind_was_interrupted(kp_thread_get()));
}

static void *without_memory(void *lost)
{
    struct kp_thread *t = kp_thread_get();
    const uint64_t before = kp_loss_total();
    kp_fail_set("arena:1+:12");
    if (kp_unwind_stack(t) != 0) return NULL;
    kp_fail_set(NULL);
    *(uint64_t *)lost = kp_loss_total() - before;
    return kp_unwind_stack(t) != 0 ? lost : NULL;
}

static void a_stack_without_memory_is_counted_as_lost(void **state)
{
    pthread_t thread;
    uint64_t lost = 0;
    void *result;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, without_memory, &lost), 0);
    pthread_join(thread, &result);
    assert_non_null(result);
    assert_int_equal(lost, 1);
}

/* Another program has the C library elsewhere, and the same bytes in it. */
static void a_module_is_found_in_another_process(void **state)
{
    const uintptr_t at = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"); /* no sanitizer has its own */
    char there[16] = "";
    int sync[2], status;
    (void)state;
    assert_int_equal(kp_modulepath_there((uint32_t)getpid(), at), at);
    assert_int_equal(kp_modulepath_there((uint32_t)getpid(), (uintptr_t)&status), 0); /* no file */
    assert_int_equal(pipe2(sync, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) execlp("sleep", "sleep", "60", (char *)NULL), _exit(1);
    close(sync[1]);
    assert_int_equal(read(sync[0], there, 1), 0); /* exec closes it */
    uintptr_t found = 0;
    for (int i = 0; !found && i < 1000; i++) found = kp_modulepath_there((uint32_t)pid, at), usleep(10000);
    assert_int_not_equal(found, 0);
    assert_int_equal(kp_modulepath_there((uint32_t)pid, (uintptr_t)kp_modulepath_there), 0); /* sleep has it not */
    const struct iovec to = {there, sizeof there}, from = {(void *)found, sizeof there};
    const ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (n < 0) KP_SKIP("a child's memory cannot be read here");
    assert_memory_equal(there, (const void *)at, sizeof there);
    close(sync[0]);
}

/* The loader keeps "./librelative.so", which leads nowhere once the program is in another folder. */
static void a_module_of_a_relative_path_has_its_whole_path(void **state)
{
    char whole[4096], found[4096], before[4096];
    const char *path = library_make("relative", 0);
    (void)state;
    if (!path) KP_SKIP("no compiler");
    assert_non_null(realpath(path, whole));
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(kp_test_tmpdir()), 0);
    void *library = dlopen("./librelative.so", RTLD_NOW);
    assert_int_equal(chdir("/"), 0);
    assert_non_null(library);
    const uintptr_t at = (uintptr_t)dlsym(library, "outer");
    assert_true(kp_modulepath_find(at, found, sizeof found));
    assert_string_equal(found, whole);
    assert_false(kp_modulepath_find(at, found, 8));                             /* no room */
    assert_false(kp_modulepath_find((uintptr_t)&library, found, sizeof found)); /* no file */
    uint64_t offset;
    const uint32_t id = kp_unwind_module_find(kp_thread_get(), at, &offset);
    assert_int_equal(id, kp_unwind_module_find(kp_thread_get(), at, &offset));
    assert_int_equal(dlclose(library), 0);
    kp_unwind_modules_changed();
    assert_int_equal(chdir(before), 0);
}

/* Whatever comes and goes: the same frames are the same frames, and are written once. */
static void libraries_that_come_and_go_add_no_frames(void **state)
{
    struct kp_thread *t = kp_thread_get();
    const char *path = library_make("goes", 0);
    uint32_t first = 0, changes = 0, others = 0;
    (void)state;
    if (!path) KP_SKIP("no compiler");
    for (volatile int i = 0; i < 10000; i++) {
        void *library = dlopen(path, RTLD_NOW);
        const uint32_t before = kp_unwind_generation();
        if (library) dlclose(library);
        kp_unwind_modules_changed();
        changes += kp_unwind_generation() != before;
        const uint32_t id = stack_of(t, 20);
        if (!first) first = id;
        others += id != first;
    }
    assert_int_not_equal(first, 0);
    assert_int_equal(changes, 10000);
    assert_true(others < 100); /* on a busy machine the writer may have no chunk ready for a name */
    kp_unwind_forget();        /* in another file they are put again */
    assert_int_not_equal(stack_of(t, 20), first);
}

/*
 * A stack's number tells its frames: over trees of calls that share some, with frames of many sizes, equal frames have
 * equal numbers and others others. What the walk that remembers says is compared with what the one that does not says.
 */
enum { MET = 1 << 16, VISITS = 20000 };
static struct {
    uint64_t frames;
    uint32_t id;
} met[MET];
static uint32_t met_n, visits, wrong;

static __attribute__((noinline)) void meet(struct kp_thread *t)
{
    uintptr_t frames[KP_UNWIND_DEPTH];
    const uint32_t id = kp_unwind_stack(t);
    const int n = kp_unwind_walk(frames, KP_UNWIND_DEPTH);
    uint64_t hash = 1469598103934665603u;
    for (int i = 1; i < n; i++)
        hash = (hash ^ frames[i]) * 1099511628211u; /* the innermost two calls are not the same */
    uint32_t at = 0;
    while (at < met_n && met[at].frames != hash) at++;
    if (at == met_n && met_n < MET) {
        for (uint32_t i = 0; i < met_n; i++) wrong += met[i].id == id;
        met[met_n].frames = hash;
        met[met_n++].id = id;
    }
    wrong += !id || met[at].id != id;
    visits++;
}

static void calls(struct kp_thread *t, unsigned seed, int depth);

#define CALLS(name, bytes)                                                                    \
    static __attribute__((noinline)) void name(struct kp_thread *t, unsigned seed, int depth) \
    {                                                                                         \
        volatile char room[bytes];                                                            \
        room[seed % (bytes)] = (char)depth;                                                   \
        if (depth == 0 || seed % 11 == 0) meet(t);                                            \
        else calls(t, seed * 1103515245 + 12345, depth - 1);                                  \
        room[0] = room[seed % (bytes)];                                                       \
        if (room[0] && seed % 3 == 0) meet(t);                                                \
    }
CALLS(calls_small, 8)
CALLS(calls_middle, 88)
CALLS(calls_large, 3000)

static __attribute__((noinline)) void calls(struct kp_thread *t, unsigned seed, int depth)
{
    switch (seed >> 16 & 3) {
    case 0: calls_small(t, seed, depth); break;
    case 1: calls_middle(t, seed, depth); break;
    case 2: calls_large(t, seed, depth); break;
    default: meet(t);
    }
    if (depth > 3) meet(t);
}

static void a_walk_that_remembers_the_last_is_as_one_that_does_not(void **state)
{
    struct kp_thread *t = kp_thread_get();
    (void)state;
    for (unsigned seed = 1; visits < VISITS && seed < VISITS; seed++) calls(t, seed % 500 * 7919, 2 + (int)(seed % 5));
    assert_true(visits >= VISITS && met_n > 100);
    assert_int_equal(wrong, 0);
}

static void an_old_c_library_does_as_well(void **state)
{
    (void)state;
    kp_unwind_modules_use_list();
    deep(30); /* rules are there */
    assert_same(33);
    code_that_was_unloaded_is_forgotten(state);
    char name[] = "three";
    const char *path = library_make(name, 3);
    if (path) walk_through(path);
    stacks_are_those_of_the_unwinder(state);
    assert_int_not_equal(stack_of(kp_thread_get(), 33), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_those_of_the_unwinder),
        cmocka_unit_test(a_stack_deeper_than_asked_for_is_cut),
        cmocka_unit_test(threads_have_their_own_stacks),
        cmocka_unit_test(a_signal_shows_what_it_struck),
        cmocka_unit_test(a_signal_may_strike_anywhere),
        cmocka_unit_test(a_fiber_is_a_stack_of_its_own),
        cmocka_unit_test(a_child_can_walk),
        cmocka_unit_test(memory_that_cannot_be_asked_for_gives_no_frames),
        cmocka_unit_test(code_that_was_unloaded_is_forgotten),
#if defined(__x86_64__)
        cmocka_unit_test(code_made_at_run_time_is_passed_by_its_frame_pointer),
#endif
        cmocka_unit_test(a_stack_is_kept_once_and_told),
        cmocka_unit_test(a_deep_stack_is_whole_and_a_deeper_one_cut),
        cmocka_unit_test(two_stacks_are_one_id),
        cmocka_unit_test(a_stack_in_a_handler_says_so),
        cmocka_unit_test(a_stack_without_memory_is_counted_as_lost),
        cmocka_unit_test(a_module_of_a_relative_path_has_its_whole_path),
        cmocka_unit_test(a_module_is_found_in_another_process),
        cmocka_unit_test(libraries_that_come_and_go_add_no_frames),
        cmocka_unit_test(a_walk_that_remembers_the_last_is_as_one_that_does_not),
        cmocka_unit_test(an_old_c_library_does_as_well),
    };
    struct kp_record_options options = {.dir = kp_test_tmpdir(), .max_bytes = 64 << 20, .text = ""};
    kp_clock_init();
    if (kp_record_open(&options)) return 1;
    kp_unwind_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
