// SPDX-License-Identifier: Apache-2.0
/* test_crafted.c - traces in which each event would make all others be looked at: every command is through in
 * seconds */
#include "test/unit/cli/run_command.h"

#include <stdarg.h>
#include <time.h>
#include <zlib.h>

#include "export/write/names/shorten.h"

/* Of processor time: no command takes more than a third of a second; each event against each took minutes for twice as
 * many. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { MANY = 4000, SECONDS_MOST = 4 }; /* time is judged without one */
#else
enum { MANY = 25000, SECONDS_MOST = 2 };
#endif

static gzFile file;
static char path[400];

static void begin(const char *name)
{
    snprintf(path, sizeof path, "%s/%s.pt.trace.json.gz", kp_test_tmpdir(), name);
    file = gzopen(path, "wb1");
    assert_non_null(file);
    gzputs(file, "{\"profile_memory\":1,\"kprof\":{},\"baseTimeNanoseconds\":0,\"traceEvents\":[\n");
}

__attribute__((format(printf, 1, 2))) static void event(const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert_true(n < (int)sizeof line && gzwrite(file, line, (unsigned)n) == n);
}

static char *word(const char *text) { return (char *)(uintptr_t)text; }

static void run_all(void)
{
    static const struct {
        int (*run)(int, char **);
        const char *argv[4];
    } rows[] = {{kp_cmd_report, {"report", "--group-by-stack-n=3", NULL}},
                {kp_cmd_report, {"report", NULL}},
                {kp_cmd_report, {"report", "--json", "--within=*[!x]", NULL}},
                {kp_cmd_events, {"events", NULL, NULL}},
                {kp_cmd_advise, {"advise", NULL, NULL}},
                {kp_cmd_advise, {"advise", "--json", NULL}},
                {kp_cmd_stacks, {"stacks", NULL, NULL}},
                {kp_cmd_stacks, {"stacks", "--svg", NULL}},
                {kp_cmd_stacks, {"stacks", "--torch", NULL}},
                {kp_cmd_stacks, {"stacks", "--torch", "--svg", NULL}},
                {kp_cmd_stacks, {"stacks", "--backward-at=forward", "--threads", NULL}},
                {kp_cmd_stacks, {"stacks", "--metric=memory", NULL}},
                {kp_cmd_memory, {"memory", NULL, NULL}},
                {kp_cmd_memory, {"memory", "--json", NULL}}};
    gzputs(file, "{}]}");
    assert_int_equal(gzclose(file), Z_OK);
    setenv("KPROF_READ_LIMIT", "10", 1); /* time alone is what counts here */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *argv[6] = {0};
        int n = 0;
        for (; rows[i].argv[n]; n++) argv[n] = word(rows[i].argv[n]);
        argv[n] = path;
        struct ran ran = run_command(rows[i].run, 0, argv);
        if (ran.status != 0 && ran.status != KP_EXIT_BAD_INPUT)
            fail_msg("%s: status %d: %.300s", argv[0], ran.status, ran.err);
        if (ran.status && !strstr(ran.err, "no event of memory") && !strstr(ran.err, "no call stacks") &&
            !strstr(ran.err, "no memory in it"))
            fail_msg("%s: %.300s", argv[0], ran.err);
        if (ran.seconds > SECONDS_MOST) fail_msg("%s took %.1f s", argv[0], ran.seconds);
        ran_free(&ran);
    }
    unsetenv("KPROF_READ_LIMIT");
    unlink(path);
}

static void ops_of_one_sequence_number(void **state)
{
    (void)state;
    begin("sequence");
    for (int i = 0; i < MANY; i++) {
        event("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,\"args\":{"
              "\"Sequence number\":7,\"Call stack\":\"s;\"}},\n",
              2 * i);
        event("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"autograd::engine::evaluate_function: "
              "A\",\"pid\":1,\"tid\":2,\"ts\":%d,\"dur\":1,\"args\":{\"Sequence number\":7}},\n",
              2 * i);
        event("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"B\",\"pid\":1,\"tid\":3,\"ts\":%d,\"dur\":1,\"args\":{"
              "\"Sequence number\":7,\"Fwd thread id\":%d}},\n",
              2 * i, 1 + i % 3);
    }
    event("{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":5,\"args\":{"
          "\"Total Allocated\":8,\"Bytes\":8,\"Addr\":64,\"Device Type\":0,\"Device Id\":-1}},\n");
    run_all();
}

static void ops_and_kernels_of_one_id(void **state)
{
    (void)state;
    begin("ids");
    for (int i = 0; i < MANY; i++) {
        event("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,\"args\":{"
              "\"External id\":5}},\n",
              2 * i);
        event("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":1,\"args\":{"
              "\"External id\":5,\"correlation\":%d}},\n",
              2 * i, i + 10);
    }
    run_all();
}

/* CUPTI's numbers of calls lead to ops through the calls they were made in: here each lies in all before it. */
static void calls_deep_in_one_another(void **state)
{
    (void)state;
    begin("deep");
    event("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":900000,\"args\":{"
          "\"External id\":1,\"Sequence number\":1}},\n");
    for (int i = 0; i < MANY; i++) {
        event("{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":"
              "{\"correlation\":%d}},\n",
              i, 2 * (MANY - i), i + 1);
        event("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":1,\"args\":{"
              "\"External id\":%d,\"correlation\":%d}},\n",
              i, i + 1, i + 1);
        event("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":2,\"ts\":%d,\"dur\":%d,\"args\":{"
              "\"Sequence number\":%d}},\n",
              i, 2 * (MANY - i), i);
        event("{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":2,\"ts\":%d,"
              "\"args\":{\"Total Allocated\":8,\"Bytes\":8,\"Addr\":%d,\"Device Type\":0,\"Device Id\":-1}},\n",
              MANY, 64 + i);
    }
    run_all();
}

static void a_thread_and_a_device_for_each_event(void **state)
{
    (void)state;
    begin("threads");
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < MANY; i++) {
            event(
                "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"f\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":1},\n",
                i, turn * MANY + i);
            event("{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":%d,\"ts\":%d,"
                  "\"args\":{\"Total Allocated\":8,\"Bytes\":8,\"Addr\":%d,\"Device Type\":1,\"Device Id\":%d}},\n",
                  i, turn * MANY + i, 64 + i, i);
        }
    run_all();
}

static void a_frame_for_each_event(void **state)
{
    (void)state;
    begin("frames");
    for (int i = 0; i < MANY; i++)
        event("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,\"args\":{"
              "\"Call stack\":\"frame_%d_of_many;main;\"}},\n",
              2 * i, i);
    run_all();
}

/* No frame in a stack of millions of semicolons, which all events share. */
static void a_stack_without_a_frame_for_each_event(void **state)
{
    enum { LONG = 1 << 20 };
    char *stack = malloc(LONG + 1);
    (void)state;
    begin("empty");
    memset(stack, ';', LONG);
    stack[LONG] = 0;
    gzputs(file, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1,\"args\":{"
                 "\"External id\":5,\"Call stack\":\"");
    gzputs(file, stack);
    gzputs(file, "\"}},\n");
    for (int i = 0; i < MANY; i++)
        event("{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"c\",\"pid\":1,\"tid\":2,\"ts\":%d,\"dur\":1,\"args\":{"
              "\"External id\":5,\"correlation\":%d}},\n",
              2 * i, i + 10);
    run_all();
    free(stack);
}

/* Each bracket is one that a function's arguments may begin with, and none closes. */
static void a_name_of_brackets_that_do_not_close(void **state)
{
    enum { LONG = 60000 };
    char *name = malloc(LONG + 1), *out = malloc(LONG + 1);
    (void)state;
    for (int i = 0; i < LONG; i++) name[i] = "a(>"[i % 3];
    name[LONG] = 0;
    const clock_t before = clock();
    for (int turn = 0; turn < 50; turn++) (void)kp_symbol_short(name, out, LONG);
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 5);
    (void)kp_symbol_short("f(int, g(char))::{lambda(int)#1}::operator()(int) const", out, LONG);
    assert_string_equal(out, "f::{lambda(int)#1}::operator()");
    free(name);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_of_one_sequence_number),
        cmocka_unit_test(ops_and_kernels_of_one_id),
        cmocka_unit_test(calls_deep_in_one_another),
        cmocka_unit_test(a_thread_and_a_device_for_each_event),
        cmocka_unit_test(a_frame_for_each_event),
        cmocka_unit_test(a_stack_without_a_frame_for_each_event),
        cmocka_unit_test(a_name_of_brackets_that_do_not_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
