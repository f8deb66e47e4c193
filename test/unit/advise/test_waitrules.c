// SPDX-License-Identifier: Apache-2.0
/* test_waitrules.c - the thread of the steps sleeps: in a call that has a name, in one gap, or for the GIL */
#include "export/answers/advise/parts/adviseparts.h"
#include "test/unit/advise/advised.h"

enum { STEPS = 20, STEP_US = 20000, OP_US = 2000, OPS = 4 };

/* Of 400 ms the thread had a core for 180, wanted one for 20 more, and slept for 200. */
#define SLEPT "\"core_had_us\":180000,\"core_waited_us\":20000"

static void head(struct little *t, const char *facts)
{
    snprintf(t->head, sizeof t->head,
             "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\",\"cores\":\"2\",\"busy_threads\":"
             "\"1\",\"torch_threads\":\"1\",%s},",
             facts);
}

static void python(struct little *t, const char *name, int tid, int id, int parent, int ts, int dur)
{
    char args[80];
    snprintf(args, sizeof args, "\"Python id\":%d,\"Python parent id\":%d", id, parent);
    event(t, "python_function", name, tid, ts, dur, args);
}

/* Each step has its ops one behind the other, `gap_us` before each; the first has `first_us` before it. */
static struct kp_advice gaps_advise(struct little *t, const char *facts, int first_us, int gap_us)
{
    head(t, facts);
    for (int i = 0; i < STEPS; i++) {
        char name[16];
        numbered_step(t, i, STEP_US * i, STEP_US);
        for (int k = 0, at = STEP_US * i + first_us; k < OPS; k++, at += OP_US + gap_us) {
            snprintf(name, sizeof name, "aten::op%d", k);
            op(t, name, at, OP_US);
        }
    }
    return advise(t);
}

static void one_gap_in_which_the_thread_sleeps_is_a_wait(void **state)
{
    const struct kp_advice a = gaps_advise(*state, SLEPT, 11000, 100);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "waits-in-step");
    assert_float_equal(a.findings[0].step_ns, 10e6, 1);
    assert_string_equal(a.findings[0].where, "aten::op0");
    assert_true(a.findings[0].is_gap && a.findings[0].is_critical);
    assert_null(strstr(a.findings[0].change, "arger batches"));
}

/* Each fifth step has a gap of 15 ms. Without the sleep it may be computation, or Python's collector. */
static void sleep_of_each_fifth_step_is_said_with_them(void **state)
{
    (void)state;
    for (int is_asleep = 0; is_asleep < 2; is_asleep++) {
        struct little *const t = calloc(1, sizeof *t);
        head(t, is_asleep ? "\"core_had_us\":170000,\"core_waited_us\":2000"
                          : "\"core_had_us\":230000,\"core_waited_us\":2000");
        for (int i = 0, at = 0; i < STEPS; i++) {
            const int gap_us = i % 5 == 4 ? 15000 : 200;
            numbered_step(t, i, at, gap_us + 8000);
            op(t, "aten::mm", at + gap_us, 8000);
            at += gap_us + 8000;
        }
        const struct kp_advice a = advise(t);
        assert_int_equal(a.count, 1);
        assert_int_equal(strstr(a.findings[0].change, "the main thread sleeps for 2.") != NULL, is_asleep);
        assert_int_equal(strstr(a.findings[0].change, "names what ran") != NULL, !is_asleep);
        little_forget(t);
        free(t);
    }
}

/* A busy thread of the program does not make one wait in one place a wait for the GIL. */
static void what_waits_for_another_thread_in_one_place_waits_not_for_the_gil(void **state)
{
    const struct kp_advice a = gaps_advise(*state, SLEPT ",\"core_others_us\":240000", 11000, 100);
    assert_string_equal(a.findings[0].id, "waits-in-step");
}

static void many_gaps_beside_a_busy_thread_are_the_gil(void **state)
{
    const struct kp_advice a = gaps_advise(*state, SLEPT ",\"core_others_us\":240000", 3000, 2900);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "gil-wait");
    assert_float_equal(a.findings[0].step_ns, 10e6, 1);
    assert_non_null(strstr(a.findings[0].what, "compute for 12.0 ms per step"));
}

static void a_thread_that_computes_between_ops_waits_for_nothing(void **state)
{
    const struct kp_advice a =
        gaps_advise(*state, "\"core_had_us\":380000,\"core_waited_us\":10000,\"core_others_us\":240000", 11000, 100);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "no-op-runs");
}

/* Each step: 9 ms in a call of train.py's line 5, and 8 ms of an op. */
static struct kp_advice calls_advise(struct little *t, const char *facts, const char *call, const char *leaf)
{
    head(t, facts);
    python(t, "train.py(1): main", 1, 1, 0, 0, STEP_US * STEPS);
    for (int i = 0; i < STEPS; i++) {
        const int at = STEP_US * i;
        numbered_step(t, i, at, STEP_US);
        python(t, call, 1, 10 * i + 2, 1, at + 500, 9000);
        if (leaf) python(t, leaf, 1, 10 * i + 3, 10 * i + 2, at + 600, 8800);
        op(t, "aten::mm", at + 11000, 8000);
    }
    return advise(t);
}

static const struct kp_finding *found(const struct kp_advice *a, const char *id)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, id) == 0) return &a->findings[i];
    return NULL;
}

static void a_named_call_tells_what_it_waits_for(void **state)
{
    static const struct {
        const char *call, *leaf, *id;
    } those[] = {
        {"queue.py(154): get", "<built-in method acquire of _thread.lock object at 0x7f00>", "queue-wait"},
        {"train.py(4): next_batch", "queue.py(154): get", "queue-wait"}, /* it prepares nothing */
        {"<built-in function sleep>", NULL, "sleeps-in-step"},
        {"threading.py(288): wait", "<built-in method acquire of _thread.lock object at 0x7f00>", "lock-wait"},
        {"<built-in method recv of socket object at 0x7f00>", NULL, "network-wait"},
        {"<built-in method read of _io.BufferedReader object at 0x7f00>",
         "<method 'recv_into' of '_socket.socket' objects>", "network-wait"}, /* makefile() */
        {"<built-in method read of _io.BufferedReader object at 0x7f00>", NULL, "file-io"},
        {"subprocess.py(506): run", "<built-in function select>", "process-wait"},
        {"numpy/lib/_npyio_impl.py(311): load", "<built-in function fromfile>", "file-io"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) {
        struct little *const t = calloc(1, sizeof *t);
        const struct kp_advice a = calls_advise(t, SLEPT, those[i].call, those[i].leaf);
        const struct kp_finding *const f = found(&a, those[i].id);
        assert_non_null(f);
        assert_float_equal(f->step_ns, 9e6, 2e5);
        assert_true(f->is_critical);
        assert_null(found(&a, "no-op-runs"));
        assert_null(found(&a, "gil-wait"));
        assert_null(found(&a, KP_FINDING_INPUT));
        little_forget(t);
        free(t);
    }
}

/* A request in two small segments: the second waits for the acknowledgement of the first. */
static void waits_of_a_delayed_acknowledgement_have_their_cause(void **state)
{
    struct little *const t = *state;
    head(t, "\"core_had_us\":100000,\"core_waited_us\":0");
    python(t, "train.py(1): main", 1, 1, 0, 0, 5 * STEP_US * STEPS);
    for (int i = 0; i < STEPS; i++) {
        const int at = 5 * STEP_US * i;
        numbered_step(t, i, at, 5 * STEP_US);
        python(t, "<built-in method recv of socket object at 0x7f00>", 1, 10 * i + 2, 1, at + 500, 40500);
        op(t, "aten::mm", at + 42000, 50000);
    }
    const struct kp_advice a = advise(t);
    const struct kp_finding *const f = found(&a, "network-wait");
    assert_non_null(f);
    assert_non_null(strstr(f->change, "TCP_NODELAY"));
    little_teardown(state);
    little_setup(state);
    const struct kp_advice short_ones =
        calls_advise(*state, SLEPT, "<built-in method recv of socket object at 0x7f00>", NULL);
    assert_null(strstr(found(&short_ones, "network-wait")->change, "TCP_NODELAY"));
}

static void a_pool_of_processes_is_told_to_send_less(void **state)
{
    static const char *const calls[] = {"multiprocessing/pool.py(774): get", "subprocess.py(506): run"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct little *const t = calloc(1, sizeof *t);
        const struct kp_advice a =
            calls_advise(t, SLEPT, calls[i], "<built-in method acquire of _thread.lock object at 0x7f00>");
        const struct kp_finding *const f = found(&a, "process-wait");
        assert_non_null(f);
        assert_int_equal(strstr(f->change, "The pool pickles what each call sends") != NULL, i == 0);
        little_forget(t);
        free(t);
    }
}

/* A thread reads, another decodes what it read: the one that waits least for a queue is named, by its line of put. */
static void of_threads_that_fill_queues_the_slow_one_is_named(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < STEPS; i++) {
        const int at = STEP_US * i, id = 1000 + 10 * i;
        python(t, "train.py(7): read", 3, id, 0, at, STEP_US);
        python(t, "queue.py(122): put", 3, id + 1, id, at + 100, 19000);
        python(t, "<built-in method acquire of _thread.lock object at 0x7f01>", 3, id + 2, id + 1, at + 200, 18000);
        python(t, "train.py(20): fill", 4, id + 3, 0, at, STEP_US);
        python(t, "train.py(3): decode", 4, id + 4, id + 3, at + 100, 15000);
        python(t, "queue.py(122): put", 4, id + 5, id + 3, at + 16000, 100);
    }
    struct kp_advice a = calls_advise(t, SLEPT, "queue.py(154): get", NULL);
    kp_tree_fill_calls(&t->tree);
    kp_advice_make(&a, &t->tree, &t->chosen); /* with the lines of calls */
    const struct kp_finding *const f = found(&a, "queue-wait");
    assert_non_null(f);
    assert_non_null(
        strstr(f->what, "; a thread fills it at train.py:20 def fill, and runs train.py:3 def decode for 75 %"));
}

/* Callers wait for the answer, as the step waits for more of them, until its time is over. */
static void a_batch_that_nobody_can_add_to_waits_out_its_time(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < STEPS; i++) {
        const int at = STEP_US * i, id = 1000 + 10 * i;
        python(t, "batcher.py(22): submit", 4, id, 0, at, 200);
        python(t, "queue.py(122): put", 4, id + 1, id, at + 100, 50);
        python(t, "replay.py(22): caller", 4, id + 2, 0, at + 300, STEP_US - 400);
        python(t, "concurrent/futures/_base.py(428): result", 4, id + 3, id + 2, at + 310, STEP_US - 450);
    }
    struct kp_advice a = calls_advise(t, SLEPT, "queue.py(154): get", NULL);
    kp_tree_fill_calls(&t->tree);
    kp_advice_make(&a, &t->tree, &t->chosen);
    const struct kp_finding *const f = found(&a, "queue-wait");
    assert_non_null(f);
    assert_non_null(strstr(f->what, "submit, and waits for a result at replay.py:22 def caller for 99 %"));
    assert_non_null(strstr(f->change, "both wait until a time limit ends: shorten the limit"));
}

/* DDP's copies of its buffers before and behind cost the step; ranks wait in the broadcast between, which is said. */
static void the_broadcast_of_buffers_is_said_beside_its_copies(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < STEPS; i++) {
        const int at = STEP_US * i, id = 1000 + 10 * i;
        numbered_step(t, i, at, STEP_US);
        python(t, "torch/nn/parallel/distributed.py(2138): _sync_buffers", 1, id, 0, at + 100, 12000);
        op(t, "aten::cat", at + 110, 4000);
        event(t, "user_annotation", "gloo:broadcast", 9, at + 4200, 6000, "");
        op(t, "aten::copy_", at + 10300, 1500);
        op(t, "aten::addmm", at + 12200, STEP_US - 12300);
    }
    const struct kp_advice a = advise(t);
    const struct kp_finding *const f = found(&a, "ddp-buffers");
    assert_non_null(f);
    assert_non_null(strstr(f->what, "(the collectives, in which ranks also wait, take 6.00 ms per step more)"));
    assert_int_equal(f->step_ns, 6000000);
}

/* The collective is told as communication; a call of another library that waits is none. */
static void what_a_collective_waits_for_is_communication_alone(void **state)
{
    static const char work[] = "<built-in method wait of pybind11_builtins object>";
    static const char *const calls[][2] = {{"torch/distributed/distributed_c10d.py(4079): all_reduce", work},
                                           {work, NULL}};
    (void)state;
    for (int way = 0; way < 4; way++) {
        const bool has_comm = way < 2;
        struct little *const t = calloc(1, sizeof *t);
        for (int i = 0; i < STEPS && has_comm; i++)
            event(t, "user_annotation", "gloo:all_reduce", 1, STEP_US * i + 700, 8600, "");
        const struct kp_advice a = calls_advise(t, SLEPT, calls[way % 2][0], calls[way % 2][1]);
        assert_null(found(&a, "lock-wait"));
        assert_int_equal(found(&a, KP_FINDING_COMM) != NULL, has_comm);
        assert_int_equal(found(&a, "waits-in-step") != NULL, !has_comm);
        little_forget(t);
        free(t);
    }
}

static void a_call_that_computes_is_no_wait(void **state)
{
    const struct kp_advice a =
        calls_advise(*state, "\"core_had_us\":390000,\"core_waited_us\":5000", "<built-in function compress>", NULL);
    assert_null(found(&a, "waits-in-step"));
    assert_non_null(found(&a, "no-op-runs"));
}

static void a_call_without_a_name_in_which_the_thread_sleeps_is_a_wait(void **state)
{
    const struct kp_advice a = calls_advise(*state, SLEPT, "<built-in method block_until_ready of Array object>", NULL);
    const struct kp_finding *const f = found(&a, "waits-in-step");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 9e6, 2e5);
}

/* ---- steps that are calls ---- */

/* A window of a server: the step in which it starts is counted, and has no begin. */
#define SERVES "\"step_source\":\"call\",\"step\":\"call:server:Engine.answer\",\"steps\":20," SLEPT

static void between_two_calls_a_server_sleeps_at_no_cost(void **state)
{
    const struct kp_advice a = gaps_advise(*state, SERVES, 11000, 100);
    assert_int_equal(a.count, 0);
    assert_non_null(strstr(a.no_op, "before the first op of answer for 10.0 ms per step"));
}

static void steps_by_calls_of_a_model_may_wait_for_requests(void **state)
{
    const struct kp_advice a = gaps_advise(*state, "\"step_source\":\"module\"," SLEPT, 11000, 100);
    const struct kp_finding *const f = found(&a, "waits-in-step");
    assert_non_null(f);
    assert_false(f->is_critical);
    assert_non_null(strstr(f->change, "waits for requests is idle"));
}

static void the_step_in_which_the_program_starts_is_counted_and_not_looked_at(void **state)
{
    struct little *const t = *state;
    event(t, "user_annotation", "ProfilerStep#0", 1, -STEP_US, STEP_US, "\"partial\":\"start-up\"");
    head(t, "\"steps\":21," SLEPT);
    for (int i = 0; i < STEPS; i++) {
        numbered_step(t, i + 1, STEP_US * i, STEP_US);
        op(t, "aten::mm", STEP_US * i + 11000, 8000);
    }
    const struct kp_advice a = advise(t);
    assert_non_null(found(&a, "waits-in-step"));
}

static void a_wait_behind_a_call_of_a_step_is_its_own(void **state)
{
    const struct kp_advice a = gaps_advise(*state, SERVES, 100, 3600);
    assert_non_null(found(&a, "no-op-runs"));
}

static void only_a_wait_within_the_call_is_of_a_step(void **state)
{
    const struct kp_advice between = calls_advise(*state, SERVES, "<built-in function sleep>", NULL);
    assert_null(found(&between, "sleeps-in-step"));
    assert_null(found(&between, "no-op-runs"));
    assert_non_null(strstr(between.no_op, "between calls of answer for"));
    struct little *const t = calloc(1, sizeof *t);
    const struct kp_advice in = calls_advise(t, SERVES, "server.py(7): answer", "<built-in function sleep>");
    assert_non_null(found(&in, "sleeps-in-step"));
    little_forget(t);
    free(t);
}

/* ---- what is read ---- */

static void a_gap_of_which_the_thread_sleeps_a_part_is_one_cause(void **state)
{
    const struct kp_advice a =
        gaps_advise(*state, "\"core_had_us\":290000,\"core_waited_us\":10000", 11000, 100); /* slept 100 of 400 */
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "waits-in-step");
    assert_float_equal(a.findings[0].step_ns, 11e6, 2e5);
    assert_non_null(strstr(a.findings[0].what, "asleep for 5.00 ms of it"));
}

/* Two handlers end steps in turn. Each waits for a lock for 30 ms of 40, and the first thread for the handlers. */
static void handlers_that_run_steps_at_once_wait_between_steps_of_their_own(void **state)
{
    struct little *t = *state;
    head(t, SLEPT);
    python(t, "serve.py(9): main", 1, 1, 0, 0, STEPS * STEP_US);
    python(t, "threading.py(1132): _wait_for_tstate_lock", 1, 2, 1, 1, STEPS * STEP_US - 2);
    for (int i = 0; i < STEPS; i++) {
        const int tid = 2 + i % 2, at = STEP_US * i;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        event(t, "user_annotation", name, tid, at, STEP_US, "");
        if (i + 2 > STEPS) continue;
        python(t, "serve.py(3): answer", tid, 10 + 2 * i, 0, at, 2 * STEP_US - 10);
        event(t, "python_function", "<built-in method acquire of _thread.lock object at 0x7f00>", tid, at + 500, 30000,
              "\"Call stack\":\"serve.py(5): answer\"");
        event(t, "cpu_op", "aten::mm", tid, at + 31000, 8000, "");
    }
    const struct kp_advice a = advise(t);
    assert_true(a.count >= 1);
    assert_string_equal(a.findings[0].id, "lock-wait");
    assert_non_null(strstr(a.findings[0].what, "30.0 ms of the 40.0 ms that each of 2 threads takes for a step"));
    assert_string_equal(a.step_thread, "a thread of the steps");
    assert_string_equal(a.at_once,
                        "2 threads run steps at once: one ends each 20.0 ms, and a thread takes 40.0 ms from "
                        "one of its steps to its next");
    assert_non_null(strstr(a.most, "most of the time of the 2 threads that run steps: serve.py:5 answer 7"));
    assert_null(strstr(a.most, "serve.py:9"));
}

/* A server that starts a thread for each request: one after the other, each waits for a lock for 15 ms of 20. */
static void threads_that_end_with_their_request_do_not_run_at_once(void **state)
{
    struct little *t = *state;
    head(t, SLEPT);
    python(t, "serve.py(9): main", 1, 1, 0, 0, STEPS * STEP_US);
    for (int i = 0; i < STEPS; i++) {
        const int tid = 2 + i, at = STEP_US * i;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        event(t, "user_annotation", name, tid, at, STEP_US, "");
        python(t, "serve.py(3): answer", tid, 10 + 2 * i, 0, at, STEP_US - 10);
        event(t, "python_function", "<built-in method acquire of _thread.lock object at 0x7f00>", tid, at + 500, 15000,
              "\"Call stack\":\"serve.py(5): answer\"");
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.step_threads, 1);
    assert_non_null(strstr(a.at_once, " steps, about one each, as in a server that starts a thread for each request"));
    for (size_t i = 0; i < a.count; i++) assert_null(strstr(a.findings[i].what, "for a step of its own"));
}

/* The healthy twin: one thread beside the first runs all steps, and waits for nothing. */
static void one_thread_of_steps_beside_the_first_has_no_note_of_several(void **state)
{
    struct little *t = *state;
    head(t, "\"core_had_us\":380000,\"core_waited_us\":2000");
    python(t, "serve.py(9): main", 1, 1, 0, 0, STEPS * STEP_US);
    python(t, "threading.py(1132): _wait_for_tstate_lock", 1, 2, 1, 1, STEPS * STEP_US - 2);
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        event(t, "user_annotation", name, 2, STEP_US * i, STEP_US, "");
        event(t, "cpu_op", "aten::mm", 2, STEP_US * i + 500, 19000, "");
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 0);
    assert_string_equal(a.step_thread, "the thread of the steps");
    assert_null(a.at_once);
    assert_true(!a.most || !strstr(a.most, "serve.py:9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(one_gap_in_which_the_thread_sleeps_is_a_wait),
        LITTLE(sleep_of_each_fifth_step_is_said_with_them),
        LITTLE(what_waits_for_another_thread_in_one_place_waits_not_for_the_gil),
        LITTLE(many_gaps_beside_a_busy_thread_are_the_gil),
        LITTLE(a_thread_that_computes_between_ops_waits_for_nothing),
        cmocka_unit_test(a_named_call_tells_what_it_waits_for),
        LITTLE(a_pool_of_processes_is_told_to_send_less),
        LITTLE(waits_of_a_delayed_acknowledgement_have_their_cause),
        LITTLE(of_threads_that_fill_queues_the_slow_one_is_named),
        LITTLE(a_batch_that_nobody_can_add_to_waits_out_its_time),
        LITTLE(the_broadcast_of_buffers_is_said_beside_its_copies),
        cmocka_unit_test(what_a_collective_waits_for_is_communication_alone),
        LITTLE(a_call_that_computes_is_no_wait),
        LITTLE(a_call_without_a_name_in_which_the_thread_sleeps_is_a_wait),
        LITTLE(between_two_calls_a_server_sleeps_at_no_cost),
        LITTLE(steps_by_calls_of_a_model_may_wait_for_requests),
        LITTLE(the_step_in_which_the_program_starts_is_counted_and_not_looked_at),
        LITTLE(handlers_that_run_steps_at_once_wait_between_steps_of_their_own),
        LITTLE(threads_that_end_with_their_request_do_not_run_at_once),
        LITTLE(one_thread_of_steps_beside_the_first_has_no_note_of_several),
        LITTLE(a_wait_behind_a_call_of_a_step_is_its_own),
        LITTLE(only_a_wait_within_the_call_is_of_a_step),
        LITTLE(a_gap_of_which_the_thread_sleeps_a_part_is_one_cause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
