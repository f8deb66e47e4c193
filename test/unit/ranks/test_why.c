// SPDX-License-Identifier: Apache-2.0
/* test_why.c - which rank ended a job, and which followed */
#include "export/answers/ranks/why.h"

#include "test/unit/tree/little_trace.h"

#define OTHERS "\"complete\":true,\"exception\":\"RuntimeError\",\"exception_at\":\"train.py:70 iterate\""
#define CAUSE "\"complete\":true,\"exception\":\"ValueError\",\"exception_at\":\"train.py:44 fails\""
#define KILLED "\"complete\":false,\"ended_by\":\"SIGKILL\""
#define TERMED "\"complete\":false,\"ended_by\":\"SIGTERM\""

static struct kp_why why;
static struct kp_why_known known;

/* A rank whose last op ended so many us after the begin. `within`: it began one that ended before that; NULL: none. */
static void add_within(int rank, const char *ended, int last_us, const char *last, const char *within)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *const t = state;
    snprintf(t->head, sizeof t->head, "\"kprof\":{%s},\"distributedInfo\":{\"rank\":%d,\"world_size\":4},", ended,
             rank);
    numbered_step(t, 4, 0, 1000);
    op(t, "aten::mm", 0, 900);
    op(t, last, 1000, last_us - 1000);
    if (within) op(t, within, 1100, last_us - 1200);
    assert_int_equal(choose(t, &everything), 0);
    kp_why_add(&why, &t->tree, &t->chosen, &known);
    assert_int_equal(little_teardown(&state), 0);
}

static void add_after(int rank, const char *ended, int last_us, const char *last)
{
    add_within(rank, ended, last_us, last, NULL);
}

static void add(int rank, const char *ended, int last_us) { add_after(rank, ended, last_us, "aten::add"); }

static const char *told(void)
{
    static char text[4096];
    kp_why_settle(&why);
    FILE *const f = fmemopen(text, sizeof text, "w");
    kp_why_print(f, &why);
    fclose(f);
    kp_why_fini(&why);
    return text;
}

static void the_rank_that_went_first_is_told_first(void **state)
{
    (void)state;
    add(0, OTHERS, 9000);
    add(1, CAUSE, 2000);
    add(2, TERMED, 1500);
    assert_string_equal(told(), "rank 1 ended by ValueError at train.py:44 fails, after step 4; others followed\n"
                                "  then rank 0 ended by RuntimeError at train.py:70 iterate, after step 4\n"
                                "  then rank 2 ended by SIGTERM after step 4\n");
}

/* As timeout ends a job: the order in which the ranks go tells nothing. */
static void no_rank_is_accused_where_all_were_ended_from_outside_at_once(void **state)
{
    (void)state;
    add(0, TERMED, 2000);
    add(1, TERMED, 9000);
    assert_string_equal(told(),
                        "2 processes were ended by SIGTERM within 1 s, from outside: none of them failed first\n"
                        "  then rank 0 ended by SIGTERM after step 4\n"
                        "  then rank 1 ended by SIGTERM after step 4\n");
    add(0, TERMED, 3000000);
    add(1, TERMED, 9000);
    assert_string_equal(told(), "rank 1 ended by SIGTERM after step 4; others followed\n"
                                "  then rank 0 ended by SIGTERM after step 4\n");
}

static bool stands(void)
{
    kp_why_settle(&why);
    const bool does = kp_why_stand(&why, "rank 0 waits");
    assert_string_equal(why.stood, does ? "rank 0 waits" : "");
    kp_why_fini(&why);
    why = (struct kp_why){0};
    return does;
}

/* A rank that failed, or went alone long before, is the cause, however long the others waited for it. */
static void a_job_stood_that_was_ended_from_outside_as_a_whole(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        int until_us; /* of the second; the first ends at 9 ms */
        bool stands;
    } cases[] = {
        {TERMED, TERMED, 9000, true},     {KILLED, KILLED, 9000, true},
        {TERMED, TERMED, 6000000, false}, {KILLED, TERMED, 9000, false},
        {CAUSE, TERMED, 9000, false},     {TERMED, "\"complete\":false,\"ended_by\":\"SIGINT\"", 9000, true},
        {KILLED, KILLED, 6000000, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        add(0, cases[i].first, 9000);
        add(1, cases[i].second, cases[i].until_us);
        assert_int_equal(stands(), cases[i].stands);
    }
    add(-1, KILLED, 9000); /* the kernel may have lacked memory */
    assert_false(stands());
}

static void a_rank_that_was_in_a_collective_missed_one_that_was_not(void **state)
{
    (void)state;
    add_after(0, OTHERS, 1900, "c10d::allreduce_");
    add(1, "\"complete\":false,\"ended_by\":\"SIGABRT\"", 2000);
    assert_string_equal(told(), "rank 1 ended by SIGABRT after step 4; others followed\n"
                                "  no call of abort() was seen: if the C library ended it, its standard error has the "
                                "cause\n"
                                "  then rank 0 ended by RuntimeError at train.py:70 iterate, after step 4\n");
}

static void a_signal_that_programs_seldom_get_says_who_sends_it(void **state)
{
    (void)state;
    add(0, "\"complete\":false,\"ended_by\":\"SIGALRM\"", 2000);
    assert_non_null(strstr(told(), "ended by SIGALRM after step 4\n  a timer (alarm(), setitimer()) of the program or "
                                   "of a library ran out, and nothing handled it\n"));
}

/* As DDP's. The rank missed one that failed in its next forward pass. */
static void a_collective_that_an_op_began_is_waited_for_behind_that(void **state)
{
    (void)state;
    add_within(1, OTHERS, 1900, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
               "c10d::allreduce_");
    add(0, CAUSE, 2000);
    assert_string_equal(told(), "rank 0 ended by ValueError at train.py:44 fails, after step 4; others followed\n"
                                "  then rank 1 ended by RuntimeError at train.py:70 iterate, after step 4\n");
}

/* Its last op ended long before: the other one loaded data for seconds, and failed then. */
static void an_exception_of_a_lost_rank_is_no_cause(void **state)
{
    (void)state;
    add(1, OTHERS ",\"lost_peer\":true", 1900);
    add(0, CAUSE, 9000000);
    add(2, TERMED, 1500);
    assert_string_equal(told(), "rank 0 ended by ValueError at train.py:44 fails, after step 4; others followed\n"
                                "  then rank 1 ended by RuntimeError at train.py:70 iterate, after step 4\n"
                                "  then rank 2 ended by SIGTERM after step 4\n");
}

static void a_killed_rank_is_the_cause_of_exceptions(void **state)
{
    (void)state;
    add(0, OTHERS, 9000);
    add(3, KILLED, 2000);
    assert_string_equal(told(), "rank 3 was killed by SIGKILL after step 4; others followed\n"
                                "  then rank 0 ended by RuntimeError at train.py:70 iterate, after step 4\n");
}

static void a_rank_that_ended_by_itself_comes_last(void **state)
{
    (void)state;
    add(0, "\"complete\":true", 1100);
    add(1, TERMED, 2000);
    assert_string_equal(told(), "rank 1 ended by SIGTERM after step 4\n  before that rank 0 ended by itself\n");
    add(0, "\"complete\":true", 2100);
    add(1, TERMED, 2000);
    assert_string_equal(told(), "rank 1 ended by SIGTERM after step 4\n  rank 0 ended by itself\n");
}

/* A handler of SIGTERM may give the status of a shell. */
static void an_exit_status_is_told_and_one_of_sigterm_is_no_cause(void **state)
{
    (void)state;
    add(0, "\"complete\":true,\"exit_status\":\"143\"", 1500);
    add(1, "\"complete\":true,\"exit_status\":\"3\"", 2000);
    add(2, CAUSE ",\"exit_status\":\"1\"", 9000);
    assert_string_equal(told(), "rank 1 ended by exit status 3 after step 4; others followed\n"
                                "  then rank 2 ended by ValueError at train.py:44 fails, after step 4\n"
                                "  then rank 0 ended by exit status 143 after step 4\n");
}

#define ENDED_WELL "all processes ended by themselves\n"

static void a_job_that_ended_well_has_no_cause(void **state)
{
    (void)state;
    add(0, "\"complete\":true", 1100);
    add(1, "\"complete\":true", 1200);
    assert_string_equal(told(), ENDED_WELL);
}

static void what_stood_before_it_ended_is_the_cause(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        add(0, KILLED, 9000);
        add(1, TERMED, 2000);
        const int64_t begun = why.of[0].begun_ns; /* an op that began after the file was written: it went on */
        const long pid = why.of[0].pid;
        assert_false(kp_why_stood(&why, pid + 1, INT64_MAX, 0));
        assert_int_equal(kp_why_stood(&why, pid, begun - later, 0), !later);
        if (!later) snprintf(why.stood, sizeof why.stood, "rank 1 is at train.py:44 fetch");
        static const char first[] = "it was stuck: rank 1 is at train.py:44 fetch\n  then rank 0 was killed by";
        const bool is_first = strncmp(told(), first, sizeof first - 1) == 0;
        assert_int_equal(is_first, !later);
    }
}

static void what_lacked_memory_says_so_once(void **state)
{
    (void)state;
    for (int is_told = 0; is_told < 2; is_told++) {
        add(0, is_told ? CAUSE ",\"out_of_memory\":\"cpu ran out\"" : CAUSE, 9000);
        kp_why_settle(&why);
        kp_why_oom(&why, why.of[0].pid + 1, 0, "another ran out");
        kp_why_oom(&why, why.of[0].pid, -70000, "ran out long before");
        kp_why_oom(&why, why.of[0].pid, 0, "cpu ran out");
        assert_string_equal(told(),
                            is_told ? "rank 0 ended by ValueError at train.py:44 fails, after step 4; cpu ran out\n"
                                    : "rank 0 ended by ValueError at train.py:44 fails, after step 4\n  cpu ran out\n");
    }
}

static void without_a_trace_the_last_that_is_told_is_kept(void **state)
{
    (void)state;
    kp_why_oom(&why, 8, 2000, "cuda:1 ran out");
    kp_why_oom(&why, 7, 1000, "cuda:0 ran out");
    assert_string_equal(told(), "cuda:0 ran out\n");
}

static void a_process_that_runs_has_not_ended(void **state)
{
    (void)state;
    known.is_running = true;
    add(0, "\"complete\":false", 9000);
    known.is_running = false;
    assert_string_equal(told(), "rank 0 still runs\n");
}

static void told_by(int rank, const char *ended, int last_us, const char *by, int64_t gone_ms)
{
    known = (struct kp_why_known){.by = by, .gone_ns = 1000000 * gone_ms, .step = -1};
    add(rank, ended, last_us);
    known = (struct kp_why_known){0};
}

static void what_the_launcher_was_told_names_the_cause(void **state)
{
    (void)state;
    told_by(0, OTHERS, 1500, "exit status 1", 1000);
    told_by(1, "\"complete\":false", 2000, "SIGSEGV", 1050);
    told_by(2, "\"complete\":false", 1400, "SIGTERM", 1100);
    told_by(3, "\"complete\":true", 3000, "exit status 3", 1000);
    assert_string_equal(told(), "rank 1 ended by SIGSEGV after step 4; others followed\n"
                                "  then rank 0 ended by RuntimeError at train.py:70 iterate, after step 4\n"
                                "  then rank 3 ended by exit status 3 after step 4\n"
                                "  then rank 2 ended by SIGTERM after step 4\n");
}

/* A launcher kills the ranks that SIGTERM did not end. */
static void a_kill_long_behind_an_exception_is_no_cause(void **state)
{
    (void)state;
    told_by(0, CAUSE, 1500, "exit status 1", 1000);
    told_by(1, "\"complete\":false", 1400, "SIGKILL", 31000);
    assert_int_equal(strncmp(told(), "rank 0 ended by ValueError", 26), 0);
}

/* A pipe that breaks is of a process that was gone before; a fault is the cause, also where an exception came first. */
static void a_crash_comes_before_an_exception_and_another_signal_behind(void **state)
{
    (void)state;
    told_by(0, CAUSE, 1500, "exit status 1", 1000);
    told_by(1, "\"complete\":false", 1600, "SIGPIPE", 1050);
    assert_int_equal(strncmp(told(), "rank 0 ended by ValueError", 26), 0);
    told_by(0, CAUSE, 1500, "exit status 1", 1000);
    told_by(1, "\"complete\":false", 1600, "SIGTRAP", 1050);
    assert_int_equal(strncmp(told(), "rank 1 ended by SIGTRAP", 23), 0);
    told_by(0, CAUSE, 1500, "exit status 1", 1000);
    told_by(1, "\"complete\":false", 1600, "SIGABRT at train.py:41 main", 1050);
    assert_int_equal(strncmp(told(), "rank 1 ended by SIGABRT at train.py:41 main after step 4", 56), 0);
}

/* Torch's threads abort in a process that SIGTERM ends, as it has waited for the one that was gone first. */
static void an_abort_behind_an_exit_is_no_cause(void **state)
{
    (void)state;
    told_by(0, "\"complete\":false", 1400, "SIGABRT", 1326);
    told_by(1, "\"complete\":true", 1500, "exit status 1", 1000);
    assert_int_equal(strncmp(told(), "rank 1 ended by exit status 1", 29), 0);
    told_by(0, "\"complete\":false", 1400, "SIGABRT", 1100);
    told_by(1, "\"complete\":true", 1300, "exit status 1", 1000);
    assert_int_equal(strncmp(told(), "rank 0 ended by SIGABRT", 23), 0);
}

/* The trace was written behind its window, so it has no end; lines a step may have one. */
static void behind_a_window_lines_a_step_tell_the_end(void **state)
{
    static const char *const texts[] = {
        [KP_WHY_UNSEEN] = "rank 0 went on after its recording (step 4); how it ended is not known\n",
        [KP_WHY_EXITED] = "the program ended by itself\n",
        [KP_WHY_GONE] = "rank 0 ended without an exit (killed, or by os._exit) after step 39 or later\n"
                        "  only its parent knows the signal: kprof run notes it with --advise, with --json or on a "
                        "terminal; with --ring or --hang a program notes its own crash, and the line\n"};
    (void)state;
    for (int end = KP_WHY_UNSEEN; end <= KP_WHY_GONE; end++) {
        known = (struct kp_why_known){.step = 39};
        if (end == KP_WHY_EXITED) known.end = KP_WHY_EXITED;
        if (end == KP_WHY_GONE) known.end = KP_WHY_GONE;
        add(0, "\"complete\":true,\"went_on\":true", 1100);
        known = (struct kp_why_known){.step = -1};
        assert_string_equal(told(), texts[end]);
    }
}

static void of_a_ring_the_last_seconds_are_told(void **state)
{
    (void)state;
    add(0, KILLED ",\"ended_after_us\":400000,\"last_us\":30800000", 9000);
    assert_string_equal(told(), "rank 0 was killed by SIGKILL after step 4; recorded is the last 31.2 s before it "
                                "ended\n");
}

#define SINCE_LAST "some time after step 4, the last that was recorded"

static void a_ring_that_was_kept_tells_of_no_end(void **state)
{
    (void)state;
    add(0, "\"complete\":true,\"went_on\":true,\"kept\":true,\"last_us\":30000000", 9000);
    assert_string_equal(told(), "rank 0 went on when its ring was kept, and left nothing more\n");
    told_by(0, "\"complete\":true,\"went_on\":true,\"kept\":true", 9000, "SIGKILL", 100);
    assert_string_equal(told(), "rank 0 was killed by SIGKILL " SINCE_LAST "\n");
}

/* The launcher was told by which signal, and the window was over long before. */
static void the_last_step_of_a_window_is_not_that_of_the_program(void **state)
{
    (void)state;
    static const char *const ends[] = {SINCE_LAST, "after step 39 or later"};
    for (int has_lines = 0; has_lines < 2; has_lines++) {
        char text[128];
        known = (struct kp_why_known){.by = "SIGKILL", .step = has_lines ? 39 : -1};
        add(0, "\"complete\":true,\"went_on\":true", 1100);
        known = (struct kp_why_known){.step = -1};
        snprintf(text, sizeof text, "rank 0 was killed by SIGKILL %s\n", ends[has_lines]);
        assert_string_equal(told(), text);
    }
}

/* It was written at the exit, and the window was over long before: the exception is of another step. */
static void behind_a_window_the_word_of_the_process_tells_its_end(void **state)
{
    (void)state;
    known = (struct kp_why_known){.step = 5000, .is_last_step = true, .gone_ns = 4000};
    add(0, CAUSE ",\"went_on\":true", 1100);
    known = (struct kp_why_known){.step = 6000, .is_last_step = true, .gone_ns = 3000};
    add(1, OTHERS ",\"went_on\":true", 1500);
    known = (struct kp_why_known){0};
    kp_why_settle(&why);
    assert_false(kp_why_stood(&why, why.of[0].pid, INT64_MAX, 5000)); /* a step ended since it stood */
    assert_true(kp_why_stood(&why, why.of[0].pid, INT64_MAX, 6001));
    assert_string_equal(told(),
                        "rank 1 ended by RuntimeError at train.py:70 iterate, after step 6000; others followed\n"
                        "  then rank 0 ended by ValueError at train.py:44 fails, after step 5000\n");
}

static void what_left_no_trace_is_told_by_its_own_word(void **state)
{
    (void)state;
    struct kp_jobend e = {.pid = 7, .rank = 5, .step = 39, .at_ns = 1000, .by = "exit status 1"};
    snprintf(e.exception, sizeof e.exception, "ValueError");
    snprintf(e.place, sizeof e.place, "train.py:44 fails");
    kp_why_add_untraced(&why, &e);
    e = (struct kp_jobend){.pid = 8, .rank = 6, .step = -1, .at_ns = 900, .by = "SIGTERM"};
    kp_why_add_untraced(&why, &e);
    e = (struct kp_jobend){.pid = 9, .rank = 7, .step = 39, .at_ns = 2000};
    kp_why_add_untraced(&why, &e);
    assert_true(kp_why_has(&why, 5, 0) && kp_why_has(&why, -1, 8) && !kp_why_has(&why, -1, 10));
    assert_string_equal(told(), "rank 5 ended by ValueError at train.py:44 fails, after step 39; others followed\n"
                                "  then rank 6 ended by SIGTERM before its first step\n"
                                "  rank 7 ended by itself\n");
}

/* Of torch 2.15's texts, on a file system without room: the path's own, and that of a file of Python. */
static void add_of_attempt(long rank, long pid, int64_t at_ns, const char *exception)
{
    struct kp_jobend e = {.rank = rank, .pid = pid, .at_ns = at_ns, .step = 4};
    snprintf(e.exception, sizeof e.exception, "%s", exception);
    if (!*exception) snprintf(e.by, sizeof e.by, "SIGTERM");
    kp_why_add_untraced(&why, &e);
}

/* torchrun --max-restarts 1: what ended the first ranks did not end the job. */
static void of_ranks_that_were_started_once_more_the_last_tell_why(void **state)
{
    (void)state;
    for (int is_bad = 0; is_bad < 2; is_bad++) {
        add_of_attempt(1, 11, 1000, "ValueError");
        add_of_attempt(0, 10, 1200, "");
        add_of_attempt(0, 20, 9000, "KeyError");
        add_of_attempt(1, 21, 9200, "");
        for (int i = 2; i < 4; i++) why.of[i].is_bad = is_bad;
        assert_string_equal(told(), is_bad ? "rank 0 ended by KeyError after step 4; others followed\n"
                                             "  then rank 1 ended by SIGTERM after step 4\n"
                                             "  before a restart rank 1 ended by ValueError after step 4\n"
                                             "  before a restart rank 0 ended by SIGTERM after step 4\n"
                                           : ENDED_WELL "  before a restart rank 1 ended by ValueError after step 4\n"
                                                        "  before a restart rank 0 ended by SIGTERM after step 4\n");
    }
}

static void a_text_of_torch_save_that_hides_a_full_disk_has_a_remark(void **state)
{
    (void)state;
#define HIDES "[enforce fail at inline_container.cc:671] . unexpected pos 576 vs 534"
    add(0, "\"complete\":true,\"exception\":\"RuntimeError\",\"exception_text\":\"" HIDES "\"", 9000);
#define FULL "(torch could not write its file: is the disk full?)"
    assert_string_equal(told(), "rank 0 ended by RuntimeError \"" HIDES "\" " FULL " after step 4\n");
    struct kp_jobend e = {.pid = 7, .rank = 5, .step = 39, .at_ns = 1000, .by = "exit status 1"};
    snprintf(e.exception, sizeof e.exception, "RuntimeError");
    snprintf(e.text, sizeof e.text, "basic_ios::clear: iostream error");
    kp_why_add_untraced(&why, &e);
    assert_string_equal(told(),
                        "rank 5 ended by RuntimeError \"basic_ios::clear: iostream error\" " FULL " after step 39\n");
    snprintf(e.text, sizeof e.text, "[enforce fail at inline_container.cc:145] . file not found");
    kp_why_add_untraced(&why, &e);
    assert_null(strstr(told(), "disk"));
}

static void a_program_that_became_another_one_says_so(void **state)
{
    (void)state;
    add(0, "\"complete\":false,\"exec\":\"exec of sh\"", 9000);
    assert_string_equal(told(), "rank 0 ended by exec of sh after step 4\n");
    told_by(0, "\"complete\":false,\"exec\":\"exec of sh\"", 9000, "SIGKILL", 100);
    assert_string_equal(told(), "rank 0 was killed by SIGKILL after step 4\n");
}

#define WATCHED "\"complete\":false,\"ended_by\":\"SIGABRT\",\"exec\":\"SIGABRT of NCCL's watchdog\""
#define TIMED "\"complete\":true,\"exception\":\"DistBackendError\",\"lost_peer\":true"

/* A rank that called so many collectives behind step 4, and did nothing for so long then. */
static void add_silent(int rank, const char *ended, int collectives, int silent_ms)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *const t = state;
    snprintf(t->head, sizeof t->head, "\"kprof\":{%s},\"distributedInfo\":{\"rank\":%d,\"world_size\":4},", ended,
             rank);
    numbered_step(t, 4, 0, 1000);
    op(t, "c10d::allreduce_", 100, 900);
    op(t, "aten::mm", 1000, 100);
    for (int i = 0; i < collectives; i++) op(t, "c10d::allreduce_", 1200 + 100 * i, 50);
    for (int i = 0; i < collectives; i++) op(t, "record_param_comms", 1210 + 100 * i, 30);
    event(t, "Trace", "PyTorch Profiler (0)", 1, 0, 1500 + 1000 * silent_ms, "");
    assert_int_equal(choose(t, &everything), 0);
    kp_why_add(&why, &t->tree, &t->chosen, &known);
    assert_int_equal(little_teardown(&state), 0);
}

#define MISSED "rank 2 ended by SIGTERM after step 4, and others had waited for it in c10d::allreduce_ for "

static void a_rank_for_which_the_others_waited_until_they_ended_is_the_cause(void **state)
{
    (void)state;
    static const char *const ends[] = {WATCHED, TIMED, "\"complete\":false,\"ended_by\":\"SIGABRT\""};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        add_silent(0, ends[i], 1, 5000);
        add_silent(1, TERMED, 1, 5000); /* it waited, too */
        add_silent(2, TERMED, 0, 6000);
        const char *const text = told();
        assert_ptr_equal(strstr(text, MISSED "5.0 s; others followed\n"), text);
    }
}

/* The one that was gone first is on another machine, and rank 2 would have come in time. */
static void a_rank_is_not_the_cause_where_nobody_waited_long_or_one_has_a_cause_of_its_own(void **state)
{
    (void)state;
    add_silent(0, TIMED, 1, 1000);
    add_silent(2, TERMED, 0, 1000);
    assert_int_equal(strncmp(told(), "rank 0 ended by DistBackendError", 32), 0);
    add_silent(0, WATCHED, 1, 5000);
    add_silent(1, CAUSE, 1, 0);
    add_silent(2, TERMED, 0, 6000);
    assert_int_equal(strncmp(told(), "rank 1 ended by ValueError", 26), 0);
    add_silent(0, WATCHED, 1, 5000);
    add_silent(2, TERMED, 1, 5000);
    assert_int_equal(strncmp(told(), "rank 0 ended by SIGABRT of NCCL's watchdog after step 4;", 56), 0);
}

/* Of a ring without a step the first collectives are lost: nobody knows how far the rank came. */
static void how_far_a_rank_came_is_not_known_where_steps_are_not(void **state)
{
    (void)state;
    add_silent(0, WATCHED, 1, 5000);
    add_silent(2, TERMED ",\"went_on\":true", 0, 6000);
    assert_int_equal(strncmp(told(), "rank 0 ended by SIGABRT of NCCL's watchdog", 42), 0);
}

/* Its launcher was told of a signal alone; an abort of another thread is a crash. */
static void the_watchdog_s_abort_follows_whatever_the_launcher_was_told(void **state)
{
    (void)state;
    add_silent(0, WATCHED, 1, 0);
    told_by(1, CAUSE, 9000, "exit status 1", 1000);
    assert_int_equal(strncmp(told(), "rank 1 ended by ValueError", 26), 0);
    struct kp_jobend e = {.pid = 7, .rank = 0, .step = 3, .at_ns = 1000, .by = "SIGABRT of NCCL's watchdog"};
    kp_why_add_untraced(&why, &e);
    told_by(1, CAUSE, 9000, "exit status 1", 1000);
    assert_int_equal(strncmp(told(), "rank 1 ended by ValueError", 26), 0);
    snprintf(e.by, sizeof e.by, "SIGABRT");
    kp_why_add_untraced(&why, &e);
    told_by(1, CAUSE, 9000, "exit status 1", 0);
    assert_int_equal(strncmp(told(), "rank 0 ended by SIGABRT after step 3", 36), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rank_that_went_first_is_told_first),
        cmocka_unit_test(no_rank_is_accused_where_all_were_ended_from_outside_at_once),
        cmocka_unit_test(a_job_stood_that_was_ended_from_outside_as_a_whole),
        cmocka_unit_test(a_rank_that_was_in_a_collective_missed_one_that_was_not),
        cmocka_unit_test(a_signal_that_programs_seldom_get_says_who_sends_it),
        cmocka_unit_test(a_collective_that_an_op_began_is_waited_for_behind_that),
        cmocka_unit_test(an_exception_of_a_lost_rank_is_no_cause),
        cmocka_unit_test(a_killed_rank_is_the_cause_of_exceptions),
        cmocka_unit_test(a_rank_that_ended_by_itself_comes_last),
        cmocka_unit_test(an_exit_status_is_told_and_one_of_sigterm_is_no_cause),
        cmocka_unit_test(a_job_that_ended_well_has_no_cause),
        cmocka_unit_test(what_stood_before_it_ended_is_the_cause),
        cmocka_unit_test(what_lacked_memory_says_so_once),
        cmocka_unit_test(without_a_trace_the_last_that_is_told_is_kept),
        cmocka_unit_test(a_process_that_runs_has_not_ended),
        cmocka_unit_test(what_the_launcher_was_told_names_the_cause),
        cmocka_unit_test(a_ring_that_was_kept_tells_of_no_end),
        cmocka_unit_test(the_last_step_of_a_window_is_not_that_of_the_program),
        cmocka_unit_test(a_crash_comes_before_an_exception_and_another_signal_behind),
        cmocka_unit_test(an_abort_behind_an_exit_is_no_cause),
        cmocka_unit_test(behind_a_window_lines_a_step_tell_the_end),
        cmocka_unit_test(of_a_ring_the_last_seconds_are_told),
        cmocka_unit_test(behind_a_window_the_word_of_the_process_tells_its_end),
        cmocka_unit_test(what_left_no_trace_is_told_by_its_own_word),
        cmocka_unit_test(of_ranks_that_were_started_once_more_the_last_tell_why),
        cmocka_unit_test(a_text_of_torch_save_that_hides_a_full_disk_has_a_remark),
        cmocka_unit_test(a_program_that_became_another_one_says_so),
        cmocka_unit_test(a_kill_long_behind_an_exception_is_no_cause),
        cmocka_unit_test(a_rank_for_which_the_others_waited_until_they_ended_is_the_cause),
        cmocka_unit_test(a_rank_is_not_the_cause_where_nobody_waited_long_or_one_has_a_cause_of_its_own),
        cmocka_unit_test(how_far_a_rank_came_is_not_known_where_steps_are_not),
        cmocka_unit_test(the_watchdog_s_abort_follows_whatever_the_launcher_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
