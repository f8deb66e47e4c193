// SPDX-License-Identifier: Apache-2.0
/* test_join.c - both halves of a spool: read as one (half.c), and brought together when the process is gone (join.c) */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/format/kp_half.h"
#include "test/unit/read/reader_spool.h"

static struct test_spool spool;
static char memory[600], disk[600];

static void write_at(const char *where, uint32_t chunk)
{
    const int fd = open(where, O_RDWR | O_CREAT, 0600);
    const off_t at = (off_t)chunk * KP_CHUNK_BYTES;
    assert_int_equal(pwrite(fd, spool.bytes + at, KP_CHUNK_BYTES, at), KP_CHUNK_BYTES);
    close(fd);
}

/* The golden spool of `pid`, whose header names the halves. Returns its number of chunks. */
static uint32_t spool_make(uint32_t pid, const char *process)
{
    char lines[1500], folder[100], host[65] = "";
    gethostname(host, sizeof host - 1);
    test_spool_training(&spool);
    snprintf(folder, sizeof folder, "%s%s%u", KP_HALF_ROOT, KP_HALF_FOLDER, (unsigned)geteuid());
    mkdir(folder, 0700);
    snprintf(disk, sizeof disk, "%s/%s_%u.1.kprof", kp_test_tmpdir(), host, pid);
    snprintf(memory, sizeof memory, "%s/%s_%u.1.kprof", folder, host, pid);
    snprintf(lines, sizeof lines, "memory=%s\nspool=%s\n%s", memory, disk, process);
    test_spool_text(&spool, lines);
    test_spool_head(&spool)->pid = pid;
    gethostname(test_spool_head(&spool)->host, sizeof test_spool_head(&spool)->host - 1);
    unlink(disk), unlink(memory);
    return spool.chunks;
}

static uint64_t events_of(const char *where)
{
    memset(&seen, 0, sizeof seen);
    assert_int_equal(test_reader_open(&r, where, why, sizeof why), 0);
    for (size_t i = 0; i < kp_reader_cycles(r); i++) {
        struct kp_cycle cycle;
        assert_int_equal(kp_reader_cycle(r, i, &cycle), 0);
        assert_int_equal(kp_reader_events(r, cycle.number, see, &seen), 0);
    }
    kp_reader_close(r);
    return seen.n;
}

static uint64_t whole(void)
{
    snprintf(why, sizeof why, "%s/whole.kprof", kp_test_tmpdir());
    char path_of_whole[512];
    snprintf(path_of_whole, sizeof path_of_whole, "%s", why);
    test_spool_save(&spool, path_of_whole, 0);
    return events_of(path_of_whole);
}

static void each_chunk_may_lie_in_either_half(void **state)
{
    (void)state;
    const uint32_t chunks = spool_make(4242, "");
    assert_true(chunks > 3 && chunks < 16);
    for (uint32_t in_memory = 0; in_memory < 1u << (chunks - 1); in_memory++) {
        unlink(disk), unlink(memory);
        write_at(disk, 0);
        write_at(memory, 0);
        for (uint32_t i = 1; i < chunks; i++) write_at(in_memory & 1u << (i - 1) ? memory : disk, i);
        assert_int_equal(events_of(disk), whole());
    }
    unlink(disk), unlink(memory);
    test_spool_free(&spool);
}

static void memory_counts_before_the_disk(void **state)
{
    (void)state;
    const uint32_t chunks = spool_make(4242, "");
    for (uint32_t i = 0; i < chunks; i++) write_at(disk, i);
    for (uint32_t i = 1; i < chunks; i++) /* recycled since */
        if (test_spool_at(&spool, i)->kind == KP_CHUNK_DATA) test_spool_at(&spool, i)->kind = KP_CHUNK_FREE;
    for (uint32_t i = 0; i < chunks; i++) write_at(memory, i);
    assert_true(events_of(memory) == 0);
    assert_int_equal(events_of(disk), 0);
    unlink(memory);
    assert_true(events_of(disk) > 0);
    unlink(disk);
    test_spool_free(&spool);
}

static void a_half_of_another_process_is_not_taken(void **state)
{
    char path_of_it[600];
    (void)state;
    const uint32_t chunks = spool_make(4242, "");
    for (uint32_t i = 0; i < chunks; i++) write_at(disk, i);
    test_spool_head(&spool)->start_real_ns++;
    write_at(memory, 0);
    int fd = open(disk, O_RDONLY);
    assert_int_equal(kp_half_find(fd, path_of_it, sizeof path_of_it), -ENOENT);
    unlink(memory);
    assert_int_equal(symlink(disk, memory), 0);
    assert_true(kp_half_find(fd, path_of_it, sizeof path_of_it) < 0);
    close(fd);
    assert_int_equal(events_of(disk), whole());
    unlink(memory), unlink(disk);
    test_spool_free(&spool);
}

/* A number that no process has. */
static uint32_t dead_pid(void)
{
    int status;
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return (uint32_t)pid;
}

static void what_a_dead_process_left_comes_to_its_spool(void **state)
{
    struct stat st;
    (void)state;
    for (int has_file = 0; has_file < 2; has_file++) {
        const uint32_t chunks = spool_make(dead_pid(), "");
        if (has_file) write_at(disk, 0);
        if (has_file) write_at(disk, 2);
        for (uint32_t i = 0; i < chunks; i++)
            if (!has_file || i != 2) write_at(memory, i);
        kp_join_dead("/nowhere", false);
        assert_int_equal(stat(memory, &st), 0);
        kp_join_dead(kp_test_tmpdir(), false);
        assert_int_equal(stat(memory, &st), -1);
        assert_int_equal(events_of(disk), whole());
        unlink(disk);
        test_spool_free(&spool);
    }
}

static void what_may_be_in_use_stays(void **state)
{
    static const char *const hosts[] = {NULL, "elsewhere"};
    char process[100], space[64] = "";
    struct stat st;
    (void)state;
    assert_true(readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0);
    for (int i = 0; i < 4; i++) {
        const uint64_t start = kp_io_process_start(0) + (i == 2);
        snprintf(process, sizeof process, "process_start=%lu %s boot\n", (unsigned long)start,
                 i == 3 ? "pid:[1]" : space);
        const uint32_t chunks = spool_make(i == 1 ? dead_pid() : (uint32_t)getpid(), process);
        if (hosts[i == 1]) snprintf(test_spool_head(&spool)->host, 64, "%s", hosts[1]);
        for (uint32_t c = 0; c < chunks; c++) write_at(memory, c);
        kp_join_dead(kp_test_tmpdir(), false);
        assert_int_equal(stat(memory, &st), i == 2 ? -1 : 0); /* 2: another process had this number */
        unlink(memory), unlink(disk);
        test_spool_free(&spool);
    }
}

static void age(const char *path, int64_t seconds)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    const struct timespec old[2] = {{.tv_sec = st.st_mtim.tv_sec - seconds}, {.tv_sec = st.st_mtim.tv_sec - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

/* Joins what lies in memory until it is gone. Programs of other tests look there as well, and hold it meanwhile. */
static bool goes_from(const char *folder)
{
    struct stat st;
    for (int i = 0; i < 200; i++) {
        kp_join_dead(folder, false); /* a brief look may see others first */
        if (stat(memory, &st) != 0) return true;
        usleep(5000);
    }
    return false;
}

/* A user may remove the folder of a run that was killed: its memory comes back, but not while it may be looked for. */
static void what_lies_in_no_folder_goes_after_an_hour(void **state)
{
    struct stat st;
    (void)state;
    const uint32_t chunks = spool_make(dead_pid(), "");
    char *const folder = memmem(spool.bytes, KP_CHUNK_BYTES, "spool=/", 7);
    memcpy(folder, "spool=/nowhere-", 15); /* of the same length */
    for (uint32_t i = 0; i < chunks; i++) write_at(memory, i);
    kp_join_dead(kp_test_tmpdir(), true);
    assert_int_equal(stat(memory, &st), 0);
    age(memory, 3700);
    assert_true(goes_from(kp_test_tmpdir()));
    test_spool_free(&spool);
}

/* The user may never look into that folder again, and memory is what a machine has the least of. */
static void what_is_left_for_minutes_comes_to_its_spool_from_any_folder(void **state)
{
    struct stat st;
    (void)state;
    const uint32_t chunks = spool_make(dead_pid(), "");
    for (uint32_t i = 0; i < chunks; i++) write_at(memory, i);
    kp_join_dead("/nowhere", false);
    assert_int_equal(stat(memory, &st), 0);
    age(memory, 700);
    kp_join_dead("/nowhere", true); /* a program that exits does not wait for another's disk */
    assert_int_equal(stat(memory, &st), 0);
    assert_true(goes_from("/nowhere"));
    assert_int_equal(events_of(disk), whole());
    unlink(disk);
    test_spool_free(&spool);
}

static void what_was_killed_before_its_header_goes_after_an_hour(void **state)
{
    struct stat st;
    (void)state;
    for (int is_alive = 0; is_alive < 2; is_alive++) {
        (void)spool_make(is_alive ? (uint32_t)getpid() : dead_pid(), "");
        close(open(memory, O_RDWR | O_CREAT, 0600));
        kp_join_dead(kp_test_tmpdir(), true);
        assert_int_equal(stat(memory, &st), 0);
        age(memory, 3700);
        if (!is_alive) assert_true(goes_from(kp_test_tmpdir()));
        kp_join_dead(kp_test_tmpdir(), false);
        assert_int_equal(stat(memory, &st), is_alive ? 0 : -1);
        unlink(memory);
        test_spool_free(&spool);
    }
}

static void a_full_disk_leaves_it_in_memory(void **state)
{
    struct stat st;
    (void)state;
    const uint32_t chunks = spool_make(dead_pid(), "");
    write_at(disk, 0);
    for (uint32_t i = 0; i < chunks; i++) write_at(memory, i);
    kp_fail_set("pwrite:2+:28");
    kp_join_dead(kp_test_tmpdir(), false);
    kp_fail_set(NULL);
    assert_int_equal(stat(memory, &st), 0);
    assert_int_equal(events_of(disk), whole());
    const int fd = open(disk, O_RDWR);
    assert_int_equal(kp_join_half(fd), 0);
    assert_int_equal(stat(memory, &st), -1);
    assert_int_equal(kp_join_half(fd), 0); /* nothing is left to bring */
    close(fd);
    assert_int_equal(events_of(disk), whole());
    unlink(disk);
    test_spool_free(&spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chunk_may_lie_in_either_half),
        cmocka_unit_test(memory_counts_before_the_disk),
        cmocka_unit_test(a_half_of_another_process_is_not_taken),
        cmocka_unit_test(what_a_dead_process_left_comes_to_its_spool),
        cmocka_unit_test(what_may_be_in_use_stays),
        cmocka_unit_test(what_lies_in_no_folder_goes_after_an_hour),
        cmocka_unit_test(what_is_left_for_minutes_comes_to_its_spool_from_any_folder),
        cmocka_unit_test(what_was_killed_before_its_header_goes_after_an_hour),
        cmocka_unit_test(a_full_disk_leaves_it_in_memory),
    };
    return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}
