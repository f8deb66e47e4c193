// SPDX-License-Identifier: Apache-2.0
/* test_guard.c - a hook is entered once at a time, only with an open gate, and does not touch errno */
#include "preload/guard.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "collector/base/sys/kp_fail.h"
#include "test/support/support.h"

static struct kp_thread thread;
static bool birth_fails;
_Thread_local struct kp_thread *kp_thread_self __attribute__((tls_model("initial-exec")));
struct kp_thread *kp_thread_create(void) { return birth_fails ? NULL : (kp_thread_self = &thread); }

static int reset(void **state)
{
    (void)state;
    if (kp_gate_init() != 0) return -1;
    kp_gate_set(kp_gate_make(3, KP_GATE_ON | KP_GATE_RECORD));
    thread = (struct kp_thread){0};
    kp_thread_self = NULL;
    birth_fails = false;
    return 0;
}

static __attribute__((noinline)) bool enters_deeper(void)
{
    struct kp_guard g = {0};
    const bool enters = KP_HOOK_ENTER(&g, KP_GATE_RECORD);
    if (enters) KP_HOOK_LEAVE(&g);
    return enters;
}

static void an_open_gate_lets_one_in(void **state)
{
    struct kp_guard g = {0}, again = {0};
    (void)state;
    errno = EXDEV;
    assert_true(KP_HOOK_ENTER(&g, KP_GATE_RECORD));
    assert_int_equal(kp_gate_cycle(g.gate), 3);
    assert_true(thread.inside == kp_inside_tag(__builtin_frame_address(0)));
    const uint64_t lost = kp_loss_total();
    assert_false(enters_deeper());
    assert_int_equal(kp_loss_total() - lost, 1);
    KP_HOOK_LEAVE(&g);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(thread.inside, 0);
    assert_true(KP_HOOK_ENTER(&again, KP_GATE_RECORD));
    KP_HOOK_LEAVE(&again);
}

static void a_shut_gate_lets_nobody_in_and_makes_no_thread(void **state)
{
    struct kp_guard g = {0};
    (void)state;
    assert_false(KP_HOOK_ENTER(&g, KP_GATE_WARM));
    kp_gate_set(0);
    assert_false(KP_HOOK_ENTER(&g, KP_GATE_RECORD));
    assert_null(kp_thread_self);
}

static void a_dying_thread_and_one_that_cannot_be_had_pass_through(void **state)
{
    struct kp_guard g = {0};
    (void)state;
    errno = EXDEV;
    birth_fails = true;
    assert_false(KP_HOOK_ENTER(&g, KP_GATE_RECORD));
    assert_int_equal(errno, EXDEV);
    birth_fails = false;
    thread.inside = 1;
    assert_false(KP_HOOK_ENTER(&g, KP_GATE_RECORD));
    assert_int_equal(thread.inside, 1);
}

/* ---- a hook that a handler struck and never came back to ---- */

static sigjmp_buf away;
static ucontext_t outside, coroutine;
static char stack[65536] __attribute__((aligned(16)));
static bool switches, handler_enters;

static void leave_by_jump(int signal)
{
    (void)signal;
    siglongjmp(away, 1);
}

static void switch_or_return(int signal)
{
    (void)signal;
    handler_enters = enters_deeper();
    if (switches) swapcontext(&coroutine, &outside);
}

static __attribute__((noinline)) int hook(void)
{
    struct kp_guard g = {0};
    if (!KP_HOOK_ENTER(&g, KP_GATE_RECORD)) return -1000;
    raise(SIGUSR1);
    KP_HOOK_LEAVE(&g);
    return 1;
}

/* A hook below `depth` frames. */
static __attribute__((noinline)) int hook_at(int depth)
{
    volatile char room[96];
    room[0] = (char)depth;
    return (depth ? hook_at(depth - 1) : hook()) + room[0];
}

static __attribute__((noinline)) void overwrite(void)
{
    volatile char room[8192];
    for (unsigned i = 0; i < sizeof room; i++) room[i] = 0x55;
}

static void handler_set(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void a_hook_that_was_left_by_a_jump_is_forgotten_where_another_has_its_place(void **state)
{
    (void)state;
    handler_set(leave_by_jump, 0);
    for (volatile int i = 0; i < 3; i++)
        if (!sigsetjmp(away, 1)) hook_at(3);
    assert_true(thread.inside > 1);
    handler_set(SIG_IGN, 0);
    assert_int_equal(hook_at(3), 1 + 1 + 2 + 3);
    assert_int_equal(thread.inside, 0);
}

static void a_hook_that_was_left_by_a_jump_is_forgotten_when_its_frame_is_overwritten(void **state)
{
    (void)state;
    handler_set(leave_by_jump, 0);
    if (!sigsetjmp(away, 1)) hook_at(2);
    assert_true(thread.inside > 1);
    const uint64_t was = thread.inside;
    overwrite();
    assert_true(kp_inside_is_abandoned(&thread));
    assert_true(thread.inside == was);
    handler_set(SIG_IGN, 0);
    assert_int_equal(hook_at(9), 1 + 45);
    assert_int_equal(thread.inside, 0);
}

static void left_from_a_signal_stack(void **state)
{
    (void)state;
    static char room[65536];
    const stack_t other = {.ss_sp = room, .ss_size = sizeof room};
    assert_int_equal(sigaltstack(&other, NULL), 0);
    handler_set(leave_by_jump, SA_ONSTACK);
    if (!sigsetjmp(away, 1)) hook_at(2);
    assert_true(thread.inside > 1);
    overwrite();
    assert_true(kp_inside_is_abandoned(&thread));
    handler_set(switch_or_return, SA_ONSTACK); /* live, with hooks above and below it in addresses */
    switches = false;
    assert_int_equal(hook_at(2), 1 + 3);
    assert_false(handler_enters);
    const stack_t none = {.ss_flags = SS_DISABLE};
    assert_int_equal(sigaltstack(&none, NULL), 0);
}

enum { ROOM_LEFT = 1200, SIGNAL_STACK = 65536 }; /* the handler's hook is less than 2 KB above the one it struck */
static const char *signal_stack;

static __attribute__((noinline)) void enter_at_its_end(void)
{
    volatile char room[64];
    room[0] = 0;
    if ((uintptr_t)room - (uintptr_t)signal_stack > ROOM_LEFT) enter_at_its_end();
    else handler_enters = enters_deeper();
    room[1] = 0;
}

static void enter_where_little_is_left(int signal)
{
    (void)signal;
    handler_enters = true;
    enter_at_its_end();
}

static void a_hook_is_there_under_a_signal_stack_in_a_frame_around_it(void **state)
{
    (void)state;
    char room[SIGNAL_STACK];
    const stack_t other = {.ss_sp = room, .ss_size = sizeof room}, none = {.ss_flags = SS_DISABLE};
    signal_stack = room;
    assert_int_equal(sigaltstack(&other, NULL), 0);
    handler_set(enter_where_little_is_left, SA_ONSTACK);
    assert_int_equal(hook(), 1);
    assert_false(handler_enters);
    assert_int_equal(thread.inside, 0);
    assert_int_equal(sigaltstack(&none, NULL), 0);
}

static int coroutine_result;
static void coroutine_run(void) { coroutine_result = hook_at(1); }

static void a_hook_that_sleeps_on_another_stack_is_not_forgotten(void **state)
{
    (void)state;
    handler_set(switch_or_return, 0);
    switches = true;
    assert_int_equal(getcontext(&coroutine), 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof stack;
    coroutine.uc_link = &outside;
    makecontext(&coroutine, coroutine_run, 0);
    assert_int_equal(swapcontext(&outside, &coroutine), 0);
    const uint64_t was = thread.inside;
    assert_true(was > 1);
    for (int depth = 0; depth < 20; depth++) { /* the handler is away: nobody enters, above or below */
        overwrite();
        assert_true(hook_at(depth) < 0);
        assert_false(kp_inside_is_abandoned(&thread));
    }
    assert_true(thread.inside == was);
    switches = false;
    assert_int_equal(swapcontext(&outside, &coroutine), 0);
    assert_int_equal(coroutine_result, 1 + 1);
    assert_int_equal(thread.inside, 0);
    assert_true(enters_deeper());
}

static void what_was_half_done_is_as_if_it_had_not_begun(void **state)
{
    (void)state;
    static struct {
        struct kp_chunk_head head;
        uint8_t bytes[512];
    } chunk;
    kp_store_relaxed(&chunk.head.used, sizeof chunk.head + 32);
    thread.chunk = &chunk.head;
    thread.chunk_cycle = 3;
    thread.at = chunk.bytes + 96; /* the record is filled, its commit under way */
    thread.end = chunk.bytes + sizeof chunk.bytes;
    handler_set(leave_by_jump, 0);
    if (!sigsetjmp(away, 1)) hook_at(0);
    handler_set(SIG_IGN, 0);
    assert_int_equal(hook_at(0), 1);
    assert_ptr_equal(thread.at, chunk.bytes + 32);
    thread.chunk_cycle = 0; /* a change of chunk was under way */
    handler_set(leave_by_jump, 0);
    if (!sigsetjmp(away, 1)) hook_at(0);
    handler_set(SIG_IGN, 0);
    assert_int_equal(hook_at(0), 1);
    assert_null(thread.at);
    assert_null(thread.end);
}

static void where_memory_cannot_be_looked_at_the_hook_counts_as_there(void **state)
{
    (void)state;
    handler_set(leave_by_jump, 0);
    if (!sigsetjmp(away, 1)) hook_at(2);
    overwrite();
    kp_fail_set("peek:1");
    errno = EXDEV;
    assert_false(kp_inside_is_abandoned(&thread));
    kp_fail_set(NULL);
    assert_true(kp_inside_is_abandoned(&thread));
    assert_int_equal(errno, EXDEV);
}

static void a_frame_whose_memory_is_gone_is_gone(void **state)
{
    (void)state;
    const long page = sysconf(_SC_PAGESIZE);
    uintptr_t *at = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    at[1] = 0x1234567;
    thread.inside = kp_inside_tag(at);
    assert_false(kp_inside_is_abandoned(&thread));
    munmap(at, (size_t)page);
    assert_true(kp_inside_is_abandoned(&thread));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_open_gate_lets_one_in, reset),
        cmocka_unit_test_setup(a_shut_gate_lets_nobody_in_and_makes_no_thread, reset),
        cmocka_unit_test_setup(a_dying_thread_and_one_that_cannot_be_had_pass_through, reset),
        cmocka_unit_test_setup(a_hook_that_was_left_by_a_jump_is_forgotten_where_another_has_its_place, reset),
        cmocka_unit_test_setup(a_hook_that_was_left_by_a_jump_is_forgotten_when_its_frame_is_overwritten, reset),
        cmocka_unit_test_setup(left_from_a_signal_stack, reset),
        cmocka_unit_test_setup(a_hook_is_there_under_a_signal_stack_in_a_frame_around_it, reset),
        cmocka_unit_test_setup(a_hook_that_sleeps_on_another_stack_is_not_forgotten, reset),
        cmocka_unit_test_setup(what_was_half_done_is_as_if_it_had_not_begun, reset),
        cmocka_unit_test_setup(where_memory_cannot_be_looked_at_the_hook_counts_as_there, reset),
        cmocka_unit_test_setup(a_frame_whose_memory_is_gone_is_gone, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
