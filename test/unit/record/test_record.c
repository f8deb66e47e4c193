// SPDX-License-Identifier: Apache-2.0
/* test_record.c - the spool's life: made, described, ticked, closed, lost fds, children */
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "test/unit/record/walk.h"

static atomic_uint ticks;
static void tick(void) { atomic_fetch_add(&ticks, 1); }

static void the_header_says_who_wrote_it(void **state)
{
    struct stat st;
    struct walk w;
    char host[65] = "";
    (void)state;
    uint64_t count;
    assert_int_equal(kp_loss_most(&count), KP_LOSS_N);
    kp_loss_count(KP_KIND_OP, KP_LOSS_NO_SLOT); /* before there is a file */
    open_spool(64, tick);
    open_spool(64, NULL); /* idempotent */
    assert_int_equal(stat(kp_record_path(), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    gethostname(host, 64);
    walk_open(&w, kp_record_path());
    assert_int_equal(w.head->version, KP_FORMAT_VERSION);
    assert_int_equal(w.head->chunk_bytes, KP_CHUNK_BYTES);
    assert_int_equal(w.head->head_bytes, sizeof *w.head);
    assert_int_equal(w.head->pid, getpid());
    assert_int_equal(w.head->ppid, getppid());
    assert_int_equal(w.head->clock_kind, kp_load_relaxed(&kp_clock_is_tsc) ? KP_CLOCK_TSC : KP_CLOCK_MONO);
    assert_string_equal(w.head->program, "test_record");
    assert_memory_equal(w.head->host, host, strlen(host) < 63 ? strlen(host) : 63);
    assert_int_equal(w.head->loss[KP_KIND_OP][KP_LOSS_NO_SLOT], 1);
    assert_int_equal(kp_loss_most(&count), KP_LOSS_NO_SLOT);
    assert_int_equal(count, 1);
    assert_int_equal(w.head->closed, 0);
    struct kp_halves halves;
    kp_record_reopen(&halves);
    assert_int_equal(fstat(halves.memory, &st), 0);
    assert_true(st.st_blocks * 512 >= (blkcnt_t)w.chunks * KP_CHUNK_BYTES); /* no hole a hook could fall into */
    close(halves.memory);
    walk_close(&w);
}

static void notes_are_lines_of_the_header(void **state)
{
    struct walk w;
    static char big[KP_CHUNK_BYTES];
    (void)state;
    assert_int_equal(kp_record_note("torch", "2.15.0\nand more"), 0);
    memset(big, 'x', sizeof big - 1);
    assert_int_equal(kp_record_note("big", big), -E2BIG); /* left out */
    assert_int_equal(kp_record_note("rank", "3"), 0);
    walk_open(&w, kp_record_path());
    char halves[2000];
    const int n = snprintf(halves, sizeof halves, "memory=%s\nspool=%s\n",
                           kp_record_memory()[0] ? kp_record_memory() : "-", kp_record_path());
    assert_int_equal(w.head->text_bytes, n + 7 + 22 + 7);
    assert_memory_equal(w.head->text, halves, (size_t)n);
    assert_memory_equal(w.head->text + n, "test=1\ntorch=2.15.0 and more\nrank=3\n", 36);
    walk_close(&w);
}

/* A program that notes its epoch for a year: the header has room for some thousand lines. */
static void notes_beyond_the_header_are_records(void **state)
{
    struct walk w;
    char number[16];
    (void)state;
    for (int i = 0; i < 20000; i++) {
        snprintf(number, sizeof number, "%d", i);
        assert_int_equal(kp_record_note("meta.epoch", number), 0);
    }
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_in_range(w.head->text_bytes, KP_FILE_TEXT_MAX - 100, KP_FILE_TEXT_MAX);
    assert_true(w.records[KP_KIND_NOTE] > 15000);
    walk_close(&w);
}

static void the_settings_are_cut_between_two_lines(void **state)
{
    struct walk w;
    static char text[80000];
    (void)state;
    for (size_t n = 0; n + 12 < sizeof text;) n += (size_t)snprintf(text + n, sizeof text - n, "line=%05zu\n", n);
    struct kp_record_options o = {.dir = kp_test_tmpdir(), .max_bytes = 4 << 20, .text = text};
    spool_forget(true);
    assert_int_equal(kp_record_open(&o), 0);
    walk_open(&w, kp_record_path());
    assert_in_range(w.head->text_bytes, KP_FILE_TEXT_MAX - 11, KP_FILE_TEXT_MAX);
    assert_int_equal(w.head->text[w.head->text_bytes - 1], '\n');
    walk_close(&w);
    spool_forget(true);
    open_spool(64, tick);
}

static void it_ticks_and_the_writer_samples_the_clock(void **state)
{
    gate_record(1);
    const unsigned before = atomic_load(&ticks);
    const uint64_t from_ns = kp_clock_ns(CLOCK_MONOTONIC);
    uint64_t samples = 0, passed_ms = 0;
    (void)state;
    for (int i = 0; i < 40 && (samples < 2 || atomic_load(&ticks) - before < 5);
         i++) { /* a busy machine needs longer */
        struct walk w;
        usleep(1600000);
        walk_open(&w, kp_record_path());
        walk_all(&w);
        samples = w.records[KP_KIND_CLOCK];
        walk_close(&w);
        passed_ms = (kp_clock_ns(CLOCK_MONOTONIC) - from_ns) / 1000000;
    }
    assert_in_range(atomic_load(&ticks) - before, 5, passed_ms / 25);
    assert_in_range(samples, 2, passed_ms / 1000 + 3); /* at open, and one a second */
}

/* It ticks every 50 ms by itself: six pokes in a row, each answered within five, are no chance. */
static void a_poke_makes_it_tick_at_once(void **state)
{
    int answered = 0;
    (void)state;
    for (int i = 0; i < 3000 && answered < 6; i++) {
        const unsigned before = atomic_load(&ticks);
        kp_ticker_wake();
        usleep(5000);
        answered = atomic_load(&ticks) > before ? answered + 1 : 0;
    }
    assert_int_equal(answered, 6);
}

static void meta_records_are_kept_and_checked(void **state)
{
    struct kp_rec_cycle c = {.head = {.kind = KP_KIND_CYCLE, .size = sizeof c}, .cycle = 1};
    struct walk w;
    (void)state;
    assert_int_equal(kp_record_meta(&c, sizeof c), 0);
    assert_int_equal(kp_record_meta(&c, sizeof c - 8), -EINVAL);
    assert_int_equal(kp_record_meta(&c, 4), -EINVAL);
    for (int i = 0; i < 3000; i++) assert_int_equal(kp_record_meta(&c, sizeof c), 0); /* more than two chunks */
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_int_equal(w.records[KP_KIND_CYCLE], 3001);
    assert_in_range(w.by_kind[KP_CHUNK_META], 4, 6);
    walk_close(&w);
}

/* Beside a writer that uses it: by the system call, which TSan does not know. */
static void host_close(int fd) { assert_int_equal(syscall(SYS_close, fd), 0); }

static void the_host_may_close_every_fd(void **state)
{
    struct stat after;
    char other[600];
    const uint32_t chunks = kp_load_relaxed(&kp_spool.chunks);
    (void)state;
    snprintf(other, sizeof other, "%s/other", kp_test_tmpdir());
    int spool_fd = kp_spool.fd;
    assert_true(spool_fd >= 100);
    host_close(spool_fd);
    int fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(dup2(fd, spool_fd), spool_fd); /* the number is somebody else's now */
    gate_record(1);
    stock_wait(100);
    for (uint64_t i = 0; i < 600000; i += 10) {
        if (i % 60000 == 0) stock_wait(100);
        assert_int_equal(hook_put(i, 10), 10);
    }
    assert_true(kp_load_relaxed(&kp_spool.chunks) > chunks);
    assert_int_equal(fstat(fd, &after), 0);
    assert_int_equal(after.st_size, 0);            /* never touched */
    assert_int_equal(fcntl(spool_fd, F_GETFD), 0); /* nor closed */
    close(spool_fd);
    close(fd);
    assert_int_equal(spool_check(kp_record_path(), 1), 600000);
}

static bool reopens_as(ino_t ino)
{
    struct stat st;
    struct kp_halves halves;
    kp_record_reopen(&halves);
    const bool is = halves.disk >= 0 && fstat(halves.disk, &st) == 0 && st.st_ino == ino;
    if (halves.disk >= 0) close(halves.disk);
    if (halves.memory >= 0) close(halves.memory);
    return is;
}

/* Where others may write to the folder, they may put a file of theirs there; or a script empties it. */
static void what_stands_in_the_spools_place_is_not_read(void **state)
{
    char aside[1100], path[1024];
    struct stat st;
    (void)state;
    snprintf(path, sizeof path, "%s", kp_record_path());
    snprintf(aside, sizeof aside, "%s.aside", path);
    assert_int_equal(stat(path, &st), 0);
    for (int i = 0; i < 60000 && !kp_disk_has_chunks(); i++) usleep(1000); /* of the many records of the test before */
    assert_true(kp_disk_has_chunks());
    assert_true(kp_record_is_in_place());
    assert_true(reopens_as(st.st_ino));
    assert_int_equal(rename(path, aside), 0);
    assert_false(kp_record_is_in_place());
    assert_true(reopens_as(st.st_ino));
    close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    assert_false(kp_record_is_in_place());
    assert_true(reopens_as(st.st_ino)); /* by the descriptor that kprof-disk keeps */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(aside, path), 0); /* to the file itself: a link is not followed all the same */
    assert_true(reopens_as(st.st_ino));
    assert_int_equal(rename(aside, path), 0);
    assert_true(reopens_as(st.st_ino));
}

static int run_child(void)
{
    struct kp_thread *mine = kp_thread_self;
    uint64_t parents = kp_record_events(1);
    char path[1024];
    if (hook_put(0, 1) != 0 || kp_gate_get() != 0) return 1; /* the wiped gate */
    if (kp_record_is_open()) return 2;
    kp_record_note("from", "child");
    struct kp_rec_cycle c = {.head = {.kind = KP_KIND_CYCLE, .size = sizeof c}};
    if (kp_record_meta(&c, sizeof c) != -EBADF) return 3;
    snprintf(path, sizeof path, "%s", kp_record_path());
    (void)kp_record_close(true, 10000); /* not ours: nothing happens */
    if (access(path, F_OK) != 0) return 4;
    kp_record_forget();
    if (kp_thread_self || kp_thread_first() || kp_loss_total() || parents) return 5;
    open_spool(64, NULL);
    if (strcmp(path, kp_record_path()) == 0) return 6;
    gate_record(1);
    if (hook_put(0, 100) != 100 || kp_thread_get() == mine || kp_record_events(1) != 100) return 7;
    if (spool_check(kp_record_path(), 1) != 100) return 8;
    kp_gate_set(0);
    (void)kp_record_close(true, 10000);
    return 0;
}

static void a_forked_child_leaves_the_file_alone_and_may_have_its_own(void **state)
{
    int status;
    (void)state;
#if defined(__SANITIZE_THREAD__)
    KP_SKIP("TSan ends a forked child that starts a thread");
#endif
    uint64_t before = spool_check(kp_record_path(), 1);
    pid_t pid = fork();
    if (pid == 0) _exit(run_child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(spool_check(kp_record_path(), 1), before);
    assert_int_equal(hook_put(600000, 10), 10); /* the parent goes on */
    assert_true(kp_record_is_open());
}

static void a_closed_spool_takes_no_more_chunks(void **state)
{
    struct walk w;
    struct kp_record_options o = {.dir = kp_test_tmpdir(), .max_bytes = 64 << 20};
    (void)state;
    (void)kp_record_close(false, 10000);
    (void)kp_record_close(false, 10000);
    assert_false(kp_record_is_open());
    uint64_t kept = 0; /* hooks that come late must not crash: the mapping stays */
    for (int i = 0; i < 10000; i++) kept += hook_put(0, 1);
    assert_in_range(kept, 0, KP_CHUNK_BYTES / sizeof(struct test_rec));
    assert_int_equal(kp_record_open(&o), -ESHUTDOWN);
    walk_open(&w, kp_record_path());
    assert_int_equal(w.head->closed, 1);
    walk_close(&w);
    spool_forget(false);
}

static void close_from_tick(void) { (void)kp_record_close(true, 10000); }

static void the_tick_itself_may_close(void **state)
{
    char path[1024];
    (void)state;
    open_spool(64, close_from_tick);
    snprintf(path, sizeof path, "%s", kp_record_path());
    for (int i = 0; i < 60000 && (kp_record_is_open() || kp_io_helpers()); i++) usleep(1000);
    assert_false(kp_record_is_open());
    assert_int_equal(kp_io_helpers(),
                     0); /* the writer has left: forgetting a spool while it runs is not for a living process */
    assert_int_equal(access(path, F_OK), -1);
    spool_forget(false);
}

static pthread_mutex_t loader_lock = PTHREAD_MUTEX_INITIALIZER; /* stands for what a tick may wait for */
static void waiting_tick(void)
{
    tick();
    pthread_mutex_lock(&loader_lock);
    pthread_mutex_unlock(&loader_lock);
}

static void await_tick(unsigned before)
{
    for (int i = 0; i < 60000 && atomic_load(&ticks) == before; i++) usleep(1000);
    assert_true(atomic_load(&ticks) > before);
}

/* A thread that holds a lock for which the tick waits may wait for chunks itself. */
static void chunks_come_while_the_tick_waits(void **state)
{
    const unsigned before = atomic_load(&ticks);
    (void)state;
    pthread_mutex_lock(&loader_lock);
    open_spool(64, waiting_tick);
    await_tick(before);
    assert_int_equal(kp_io_helpers(), 3);
    stock_wait(200);
    pthread_mutex_unlock(&loader_lock);
    spool_forget(true);
}

static void without_a_second_thread_the_writer_ticks(void **state)
{
    const unsigned before = atomic_load(&ticks);
    (void)state;
    for (int i = 0; i < 5000 && kp_io_helpers(); i++) usleep(1000); /* those of the test before end on their own */
    assert_int_equal(kp_io_helpers(), 0);
    kp_fail_set("thread:3:11"); /* kprof-disk, kprof-writer, kprof-tick */
    open_spool(64, tick);
    kp_fail_set(NULL);
    assert_int_equal(kp_io_helpers(), 2);
    await_tick(before);
    a_poke_makes_it_tick_at_once(NULL);
    stock_wait(200);
    spool_forget(true);
    assert_false(kp_record_is_open());
    const unsigned after = atomic_load(&ticks);
    usleep(120000);
    assert_int_equal(atomic_load(&ticks), after);
}

static void a_relative_folder_is_found_again_after_chdir(void **state)
{
    char cwd[1024];
    struct kp_record_options o = {.dir = "rel/deep", .max_bytes = 64 << 20};
    (void)state;
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(kp_test_tmpdir()), 0);
    assert_int_equal(kp_record_open(&o), 0);
    assert_int_equal(chdir(cwd), 0);
    assert_int_equal(kp_record_path()[0], '/');
    assert_int_equal(access(kp_record_path(), F_OK), 0);
    spool_forget(true);
}

static void a_program_without_words_has_the_kernels_name(void **state)
{
    struct kp_record_options o = {.dir = kp_test_tmpdir(), .max_bytes = 64 << 20};
    char *const usual = program_invocation_short_name, nothing[] = ""; /* what setproctitle leaves of it */
    struct walk w;
    (void)state;
    program_invocation_short_name = nothing;
    assert_int_equal(kp_record_open(&o), 0);
    program_invocation_short_name = usual;
    walk_open(&w, kp_record_path());
    assert_string_equal(w.head->program, "test_record");
    walk_close(&w);
    spool_forget(true);
}

/* As forked children do, one after another in this process: each makes a spool and is forgotten like a dead one. */
static void those_that_share_a_limit_stay_below_it(void **state)
{
    struct kp_record_share share = {0};
    struct kp_record_options o = {.dir = kp_test_tmpdir(), .max_bytes = 12 << 20, .share = &share};
    (void)state;
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(kp_record_open(&o), 0);
        assert_int_equal(share.bytes, i * kp_record_taken());
        assert_int_equal(kp_record_taken(), 64 * KP_CHUNK_BYTES);
        spool_forget(false);
    }
    assert_int_equal(kp_record_open(&o), -ENOBUFS);
    assert_int_equal(share.refused, 1);
    kp_record_share_give(&share, 64 * KP_CHUNK_BYTES); /* as the parent does that removed one */
    assert_int_equal(kp_record_open(&o), 0);
    (void)kp_record_close(true, 10000); /* its own exit */
    assert_int_equal(share.bytes, 2 * 64 * KP_CHUNK_BYTES);
    spool_forget(false);
    kp_record_share_give(&share, UINT64_MAX); /* never below nothing */
    assert_int_equal(share.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_says_who_wrote_it),
        cmocka_unit_test(notes_are_lines_of_the_header),
        cmocka_unit_test(notes_beyond_the_header_are_records),
        cmocka_unit_test(the_settings_are_cut_between_two_lines),
        cmocka_unit_test(it_ticks_and_the_writer_samples_the_clock),
        cmocka_unit_test(a_poke_makes_it_tick_at_once),
        cmocka_unit_test(meta_records_are_kept_and_checked),
        cmocka_unit_test(the_host_may_close_every_fd),
        cmocka_unit_test(what_stands_in_the_spools_place_is_not_read),
        cmocka_unit_test(a_forked_child_leaves_the_file_alone_and_may_have_its_own),
        cmocka_unit_test(a_closed_spool_takes_no_more_chunks),
        cmocka_unit_test(the_tick_itself_may_close),
        cmocka_unit_test(chunks_come_while_the_tick_waits),
        cmocka_unit_test(without_a_second_thread_the_writer_ticks),
        cmocka_unit_test(those_that_share_a_limit_stay_below_it),
        cmocka_unit_test(a_program_without_words_has_the_kernels_name),
        cmocka_unit_test(a_relative_folder_is_found_again_after_chdir),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
