// SPDX-License-Identifier: Apache-2.0
/* test_budget.c - small files made to be large: each command ends soon, takes a bounded part of memory and disk, and
 * says what it was */
#include "test/unit/cli/run_command.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <zlib.h>

#include "export/read/files/budget.h"
#include "test/support/spool.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { MEMORY_MOST = 1 << 20, SECONDS_MOST = 200, FEW = 1 }; /* MB: shadow memory is counted, too */
#else
enum { MEMORY_MOST = 300, SECONDS_MOST = 40, FEW = 0 }; /* some 2 s on a machine of its own */
#endif
#define DISK_MOST ((size_t)200 << 20)

#define MUCH_TEXT "MiB of text come out of it"
static char folder[300], temporary[400], out[400];

static char *word(const char *text) { return (char *)(uintptr_t)text; }

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/budget-XXXXXX", kp_test_tmpdir());
    if (!mkdtemp(folder)) return -1;
    snprintf(temporary, sizeof temporary, "%s/tmp", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    if (mkdir(temporary, 0700) || mkdir(out, 0700)) return -1;
    unsetenv("KPROF_READ_LIMIT");
    return setenv("TMPDIR", temporary, 1);
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n - 2;
}

/* ---- the files ---- */

static char *path_of(const char *name)
{
    static char path[500];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static char *spool_save(struct test_spool *s, const char *name)
{
    test_spool_save(s, path_of(name), 0);
    test_spool_free(s);
    return path_of(name);
}

static void window(struct test_spool *s)
{
    test_spool_init(s);
    const uint32_t meta = test_spool_chunk(s, KP_CHUNK_META, 0, 4242, 1, "python");
    test_spool_clock(s, meta, 1000, 1790857026000000000u, 5000);
    test_spool_cycle(s, meta, 1, 2000, 5000000, 0);
}

/* A ring of 1,024 frames, each with a name of 3,000 letters; ops that all have the whole ring for a stack. */
static char *ring_of_frames(uint32_t ops)
{
    enum { FRAMES = 1024, NAME = 3000 };
    struct test_spool s;
    char name[NAME + 8];
    uint32_t data = 0;
    window(&s);
    test_spool_text(&s, "KPROF_WITH_STACK=native\n");
    memset(name, 'f', sizeof name);
    memcpy(name + NAME, "\0- 0 0 9", 8);
    const uint32_t module = test_spool_name(&s, name, sizeof name), op_name = test_spool_name(&s, "op", 2),
                   chunk = test_spool_chunk(&s, KP_CHUNK_FRAMES, 0, 0, 0, "");
    const uint32_t first =
        (uint32_t)((chunk * (uint64_t)KP_CHUNK_BYTES + test_spool_at(&s, chunk)->used) / KP_STR_CELL);
    for (uint32_t i = 0; i < FRAMES; i++) {
        struct kp_rec_frame f = {.head = {.kind = KP_KIND_FRAME, .size = sizeof f, .name = module},
                                 .offset = 0x1000 + i,
                                 .around = first + (i + 1) % FRAMES};
        f.check = kp_frame_check(&f);
        assert_true(test_spool_put(&s, chunk, &f, sizeof f));
    }
    for (uint32_t i = 0; i < ops; i++) {
        struct {
            struct kp_rec_op op;
            uint32_t python, native;
        } r = {.op = {.head = {.kind = KP_KIND_OP, .flags = KP_OP_STACK, .size = sizeof r, .name = op_name},
                      .start = 3000 + i * 2000,
                      .ticks = 1500},
               .native = first + i % FRAMES};
        if (!data || !test_spool_put(&s, data, &r, sizeof r)) {
            data = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 4242, 1, "python");
            test_spool_put(&s, data, &r, sizeof r);
        }
    }
    struct kp_rec_cycle *cycle =
        (void *)((uint8_t *)test_spool_at(&s, 1) + sizeof(struct kp_chunk_head) + sizeof(struct kp_rec_clock));
    cycle->end = 4000 + ops * 2000u;
    return spool_save(&s, "frames.kprof");
}

static char *long_names(uint32_t ops)
{
    static char name[60000];
    struct test_spool s;
    uint32_t data = 0;
    window(&s);
    memset(name, 'n', sizeof name);
    const uint32_t id = test_spool_name(&s, name, sizeof name);
    for (uint32_t i = 0; i < ops; i++) {
        const struct test_op op = {.name = id, .start = 3000 + i, .ticks = 1, .seq = -1};
        if (data && test_spool_op(&s, data, &op)) continue;
        data = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 4242, 1, "python");
        test_spool_op(&s, data, &op);
    }
    return spool_save(&s, "names.kprof");
}

static char *zipped(const char *name, const char *begin, const char *piece, size_t piece_bytes, uint32_t times,
                    const char *end)
{
    gzFile file = gzopen(path_of(name), "wb6");
    assert_non_null(file);
    gzputs(file, begin);
    for (uint32_t i = 0; i < times; i++) assert_int_equal(gzwrite(file, piece, (unsigned)piece_bytes), piece_bytes);
    gzputs(file, end);
    assert_int_equal(gzclose(file), Z_OK);
    return path_of(name);
}

static char *many_events(uint32_t events)
{
    static const char event[] =
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},\n";
    return zipped("events.pt.trace.json.gz", "{\"traceEvents\":[\n", event, sizeof event - 1, events, "{}]}");
}

static char *long_string(void)
{
    static char piece[1 << 20];
    memset(piece, 's', sizeof piece);
    return zipped("string.pt.trace.json.gz", "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"", piece, sizeof piece, 100,
                  "\"}]}");
}

/* ---- the commands ---- */

struct command {
    int (*run)(int, char **);
    char *argv[8];
};

/* Runs it over a file: in time, memory and disk, nothing left in TMPDIR; `part` is in what it says. */
static void assert_bounded(const struct command *c, char *path, const char *part)
{
    char *argv[10] = {0};
    int n = 0;
    for (; c->argv[n]; n++) argv[n] = c->argv[n];
    argv[n] = path;
    struct ran ran = run_command(c->run, DISK_MOST, argv);
    if (ran.status != KP_EXIT_BAD_INPUT) fail_msg("%s: status %d: %.300s", argv[0], ran.status, ran.err);
    if (!strstr(ran.err, part)) fail_msg("%s: %s\nis not in: %.600s", argv[0], part, ran.err);
    if (ran.seconds > SECONDS_MOST || ran.megabytes > MEMORY_MOST)
        fail_msg("%s took %.1f s and %ld MB", argv[0], ran.seconds, ran.megabytes);
    assert_int_equal(entries(temporary), 0);
    assert_int_equal(entries(out), 0);
    ran_free(&ran);
}

static struct command reading[] = {
    {kp_cmd_report, {0}}, {kp_cmd_events, {0}}, {kp_cmd_stacks, {0}},
    {kp_cmd_memory, {0}}, {kp_cmd_export, {0}}, {kp_cmd_recover, {0}},
};
enum { OF_TRACES = 4, ALL = sizeof reading / sizeof *reading };

static void reading_init(void)
{
    static const char *const names[] = {"report", "events", "stacks", "memory", "export", "recover"};
    for (size_t i = 0; i < ALL; i++) {
        reading[i].argv[0] = word(names[i]);
        if (i >= OF_TRACES) reading[i].argv[1] = word("--dir"), reading[i].argv[2] = out;
    }
    reading[5].argv[3] = word("--force");
}

/* Memory has no limit under a sanitizer, and how a command ends at one of the others is seen in fewer tests. */
static void skip_if_few(void)
{
    if (FEW) KP_SKIP("a sanitizer sees this limit reached in the other tests of this file");
}

static void stacks_that_lead_round_fill_no_disk(void **state)
{
    char *path = ring_of_frames(1000);
    (void)state;
    for (size_t i = FEW ? 4 : 0; i < ALL; i++) assert_bounded(&reading[i], path, "KPROF_READ_LIMIT=0");
    assert_int_equal(access(path, F_OK), 0); /* recover keeps what it could not read */
}

static void names_of_any_length_fill_no_disk(void **state)
{
    skip_if_few();
    char *path = long_names(10500);
    (void)state;
    for (size_t i = 0; i < ALL; i++) assert_bounded(&reading[i], path, i == 1 ? "temporary files" : MUCH_TEXT);
}

static void a_spool_chooses_no_unpacked_trace_beyond_that(void **state)
{
    struct test_spool s;
    struct command export = {kp_cmd_export, {word("export"), word("--dir"), out}};
    (void)state;
    long_names(10500);
    FILE *file = fopen(path_of("names.kprof"), "r+");
    assert_non_null(file);
    s.bytes = calloc(1, KP_CHUNK_BYTES);
    assert_int_equal(fread(s.bytes, KP_CHUNK_BYTES, 1, file), 1);
    test_spool_text(&s, "KPROF_GZIP=0\n");
    rewind(file);
    assert_int_equal(fwrite(s.bytes, KP_CHUNK_BYTES, 1, file), 1);
    fclose(file);
    free(s.bytes);
    assert_bounded(&export, path_of("names.kprof"), MUCH_TEXT);
}

static void events_that_pack_well_take_no_gigabyte(void **state)
{
    skip_if_few();
    char *path = many_events(3000000);
    (void)state;
    for (size_t i = 0; i < OF_TRACES; i++)
        assert_bounded(&reading[i], path,
                       i == 1 ? "temporary files are needed to put its events in order" : "MiB of memory");
}

/* Names of 4,000 letters: as much text in a fiftieth of the events, as to read those is what takes time. */
static char *long_events(uint32_t events)
{
    static const char begin[] = "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"",
                      end[] = "\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},\n";
    static char piece[4000 + sizeof begin + sizeof end];
    memset(piece, 'n', sizeof piece);
    memcpy(piece, begin, sizeof begin - 1);
    memcpy(piece + sizeof piece - sizeof end, end, sizeof end);
    return zipped("events.pt.trace.json.gz", "{\"traceEvents\":[\n", piece, sizeof piece - 1, events, "{}]}");
}

/* What is asked for is a file, too: 300 MB of events from 1 MB of gzip are not written, nor is a part of them. */
static void a_file_that_is_asked_for_is_no_larger_than_a_temporary_one(void **state)
{
    char made[500], *path = long_events(75000);
    const struct command lines = {kp_cmd_export, {word("export"), word("--format"), word("ndjson"), word("-o"), made}},
                         part = {kp_cmd_slice, {word("slice"), word("--from"), word("0"), word("-o"), made}};
    (void)state;
    snprintf(made, sizeof made, "%s/made", out);
    assert_bounded(&lines, path, MUCH_TEXT);
    assert_bounded(&part, path, MUCH_TEXT);
}

static void a_string_of_a_hundred_megabytes_is_refused_with_its_place(void **state)
{
    char *path = long_string();
    (void)state;
    for (size_t i = 0; i < OF_TRACES; i++)
        assert_bounded(&reading[i], path, "a string, a number or a gap of more than 16 MB begins near here");
}

/* A string that goes on for many pieces is read once, not from its beginning with each of them. */
static void strings_of_some_megabytes_are_read(void **state)
{
    enum { LONG = 15 << 20, TIMES = 3 };
    static const char begin[] = "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"",
                      end[] = "\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},\n";
    char *piece = malloc(LONG + sizeof end), *argv[] = {word("report"), word("--max-name-column-width=10"), NULL, NULL};
    (void)state;
    memset(piece, 'x', LONG);
    memcpy(piece, begin, sizeof begin - 1);
    memcpy(piece + LONG, end, sizeof end);
    argv[2] = zipped("long.pt.trace.json.gz", "{\"traceEvents\":[\n", piece, LONG + sizeof end - 1, TIMES, "{}]}");
    struct ran ran = run_command(kp_cmd_report, 0, argv);
    if (ran.status) fail_msg("%s", ran.err);
    assert_non_null(strstr(ran.out, "xxxxxxx..."));
    assert_true(ran.seconds < SECONDS_MOST);
    ran_free(&ran);
    free(piece);
}

/* ---- who trusts a file ---- */

static void a_limit_can_be_raised_and_lifted(void **state)
{
    skip_if_few();
    char *argv[] = {word("export"), word("--dir"), out, long_names(10500), NULL}; /* 630 MB of text */
    static const struct {
        const char *limit;
        bool good;
    } rows[] = {{NULL, false}, {"4", true}, {"0", true}};
    struct ran ran;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].limit) setenv("KPROF_READ_LIMIT", rows[i].limit, 1);
        else unsetenv("KPROF_READ_LIMIT");
        ran = run_command(kp_cmd_export, 0, argv);
        if (ran.status != (rows[i].good ? 0 : 1))
            fail_msg("KPROF_READ_LIMIT=%s: %d: %.300s", rows[i].limit ? rows[i].limit : "", ran.status, ran.err);
        ran_free(&ran);
    }
    unsetenv("KPROF_READ_LIMIT");
}

static void budgets_grow_with_the_file(void **state)
{
    static const char *const no_limit[] = {"1", "bad", "-1", ""};
    struct kp_budget small, large, more, none, same;
    (void)state;
    kp_budget_make(&small, 1 << 20, NULL);
    kp_budget_make(&large, (uint64_t)1 << 30, NULL);
    kp_budget_make(&more, 1 << 20, "3");
    assert_true(small.memory <= (uint64_t)300 << 20 && small.disk <= (uint64_t)200 << 20 &&
                small.text <= (uint64_t)1 << 30 && small.seconds <= 120);
    assert_true(large.memory >= (uint64_t)64 << 30 && large.disk >= (uint64_t)32 << 30 &&
                large.text >= (uint64_t)500 << 30 && large.seconds >= 3600);
    for (size_t i = 0; i < sizeof no_limit / sizeof *no_limit; i++) {
        kp_budget_make(&same, 1 << 20, no_limit[i]);
        assert_true(same.memory == small.memory && same.disk == small.disk && same.text == small.text &&
                    same.seconds == small.seconds);
    }
    assert_true(more.memory == 3 * small.memory && more.disk == 3 * small.disk && more.text == 3 * small.text &&
                more.seconds == 3 * small.seconds);
    kp_budget_make(&none, 1 << 20, "0");
    assert_true(!none.memory && !none.disk && !none.text && !none.seconds);
    kp_budget_make(&none, UINT64_MAX, NULL); /* a pipe */
    assert_true(!none.memory && !none.disk && !none.text && !none.seconds);
    kp_budget_make(&more, (uint64_t)1 << 60, "18446744073709551615"); /* no product wraps round */
    assert_true(!more.memory && !more.disk && !more.text && !more.seconds);
}

static void a_hole_adds_nothing_to_the_budget_of_a_file(void **state)
{
    char path[4200];
    struct kp_budget data, hole;
    (void)state;
    snprintf(path, sizeof path, "%s/hole", folder);
    const int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_true(fd >= 0 && pwrite(fd, path, sizeof path, 0) == sizeof path &&
                pwrite(fd, path, sizeof path, (off_t)1 << 32) == sizeof path);
    assert_true(kp_budget_data(fd, ((uint64_t)1 << 32) + sizeof path) < 1 << 20);
    kp_budget_make(&data, 1 << 20, NULL);
    kp_budget_begin("report", path);
    hole = *kp_budget_now();
    kp_budget_end();
    assert_true(hole.memory <= data.memory && hole.text <= data.text && hole.disk <= data.disk &&
                hole.seconds <= data.seconds);
    assert_int_equal(ftruncate(fd, 0) + ftruncate(fd, (off_t)1 << 40), 0); /* a hole to its end */
    assert_int_equal(kp_budget_data(fd, (uint64_t)1 << 40), 0);
    close(fd);
    unlink(path);
}

/* What is made of several files may cost what all of them may, and not what the last one does. */
static void files_together_have_the_budget_of_all(void **state)
{
    char paths[2][4200];
    struct kp_budget all, sum;
    uint64_t bytes = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/part%d", folder, i);
        FILE *f = fopen(paths[i], "w");
        assert_non_null(f);
        for (int n = 0; n < (i ? 10 : 100000); n++) fputs("0123456789", f);
        assert_int_equal(fclose(f), 0);
    }
    kp_budget_begin("advise", paths[0]);
    kp_budget_begin_all();
    all = *kp_budget_now();
    kp_budget_begin("advise", paths[1]);
    bytes = kp_budget_now()->memory;
    kp_budget_begin_all();
    sum = *kp_budget_now();
    kp_budget_end();
    assert_true(sum.memory > all.memory && all.memory > bytes + 100 * 1000000);
    for (int i = 0; i < 2; i++) unlink(paths[i]);
}

/* ---- time and signals ---- */

static int spin(int argc, char **argv)
{
    const struct itimerval soon = {.it_value.tv_usec = 50000};
    (void)argc;
    kp_budget_begin("report", argv[1]);
    snprintf(kp_budget_part(), 4096, "%s/x.part", folder);
    if (close(open(kp_budget_part(), O_CREAT | O_WRONLY, 0600)) || setitimer(ITIMER_PROF, &soon, NULL)) return 77;
    for (;;) __asm__ volatile("");
}

static void time_ends_a_command_with_a_message_and_without_a_part(void **state)
{
    char path[500], *argv[] = {word("report"), path, NULL};
    (void)state;
    snprintf(path, sizeof path, "%s/\x1b.json", folder);
    fclose(fopen(path, "w"));
    struct ran ran = run_command(spin, 0, argv);
    assert_int_equal(ran.status, KP_EXIT_BAD_INPUT);
    assert_non_null(strstr(ran.err,
                           "\\x1b.json: more than 60 s of processor time is too much for a file of its size; if "
                           "you trust it, KPROF_READ_LIMIT=0"));
    snprintf(path, sizeof path, "%s/x.part", folder);
    assert_int_not_equal(access(path, F_OK), 0);
    ran_free(&ran);
}

static bool has_part(void)
{
    DIR *dir = opendir(out);
    bool found = false;
    for (struct dirent *e; dir && (e = readdir(dir));) found |= strstr(e->d_name, ".part") != NULL;
    if (dir) closedir(dir);
    return found;
}

static void signals_leave_neither_a_part_nor_a_temporary_file(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    char *argv[] = {word("export"), word("--dir"), out, ring_of_frames(16000), NULL};
    (void)state;
    setenv("KPROF_READ_LIMIT", "0", 1);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        int status;
        const pid_t child = fork();
        assert_true(child >= 0); /* kill(-1) is everybody */
        if (child == 0) _exit(kp_cmd_export(4, argv));
        for (int wait_ms = 0; !has_part() && wait_ms < 60000; wait_ms++) usleep(1000);
        assert_true(has_part());
        assert_int_equal(kill(child, signals[i]), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        assert_int_equal(entries(out), 0);
        assert_int_equal(entries(temporary), 0);
    }
    unsetenv("KPROF_READ_LIMIT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(stacks_that_lead_round_fill_no_disk, setup),
        cmocka_unit_test_setup(names_of_any_length_fill_no_disk, setup),
        cmocka_unit_test_setup(a_spool_chooses_no_unpacked_trace_beyond_that, setup),
        cmocka_unit_test_setup(events_that_pack_well_take_no_gigabyte, setup),
        cmocka_unit_test_setup(a_file_that_is_asked_for_is_no_larger_than_a_temporary_one, setup),
        cmocka_unit_test_setup(a_string_of_a_hundred_megabytes_is_refused_with_its_place, setup),
        cmocka_unit_test_setup(strings_of_some_megabytes_are_read, setup),
        cmocka_unit_test_setup(a_limit_can_be_raised_and_lifted, setup),
        cmocka_unit_test(budgets_grow_with_the_file),
        cmocka_unit_test_setup(a_hole_adds_nothing_to_the_budget_of_a_file, setup),
        cmocka_unit_test_setup(files_together_have_the_budget_of_all, setup),
        cmocka_unit_test_setup(time_ends_a_command_with_a_message_and_without_a_part, setup),
        cmocka_unit_test_setup(signals_leave_neither_a_part_nor_a_temporary_file, setup),
    };
    reading_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
