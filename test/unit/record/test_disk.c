// SPDX-License-Identifier: Apache-2.0
/* test_disk.c - the cap, a full disk, and system calls that fail: what is there is kept, the rest is counted */
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "test/unit/record/walk.h"

/*
 * Records until nothing fits any more (or `most`): how many were kept; *lost counts the others. It waits for the
 * writer: what is lost is lost for the reason under test, on a busy machine too.
 */
static uint64_t fill(uint64_t most, uint64_t *lost)
{
    uint64_t kept = 0;
    *lost = 0;
    for (uint64_t i = 0; i < most && *lost < 5000; i++) {
        kp_put_wait(kp_thread_get(), kp_gate_get(), sizeof(struct test_rec), 5000);
        uint32_t one = hook_put(kept, 1);
        kept += one;
        *lost += !one;
    }
    return kept;
}

static uint64_t lost_for(enum kp_loss reason) { return kp_file_loss(kp_spool_head(), KP_KIND_OP, (int)reason); }

/* They have chunks of their own, which end later; what does not fit then is counted for the same reason. */
static void names_and_frames_are_lost_for(enum kp_loss reason)
{
    char name[20000];
    uint32_t at = 0;
    memset(name, 'x', sizeof name);
    do memcpy(name, &at, sizeof at);
    while (kp_name_intern(kp_thread_get(), name, sizeof name) && at++ < 1000);
    assert_int_equal(kp_spool_head()->loss[0][reason], 1);
    assert_int_equal(kp_spool_head()->loss[0][KP_LOSS_NAME], 0);
    for (at = 1; kp_frame_put(0, at, 0) && at < 1000000; at++) {}
    assert_int_equal(kp_spool_head()->loss[KP_KIND_FRAME][reason], 1);
}

static void the_cap_holds_and_is_counted(void **state)
{
    struct stat st;
    struct kp_rec_cycle c = {.head = {.kind = KP_KIND_CYCLE, .size = sizeof c}};
    uint64_t lost;
    (void)state;
    open_spool(8, NULL);
    grow_error_wait(KP_LOSS_CAP);
    gate_record(1);
    uint64_t kept = fill(1000000, &lost);
    assert_int_equal(lost, 5000);
    assert_int_equal(lost_for(KP_LOSS_CAP) + lost_for(KP_LOSS_NO_CHUNK), lost);
    assert_true(lost_for(KP_LOSS_CAP) > 0);
    assert_int_equal(stat(kp_record_path(), &st), 0);
    assert_true(st.st_size <= 8 << 20);
    names_and_frames_are_lost_for(KP_LOSS_CAP);
    assert_true(kept > (6u << 20) / sizeof(struct test_rec));
    assert_int_equal(spool_check(kp_record_path(), 1), kept);
    assert_int_equal(kp_record_meta(&c, sizeof c), 0); /* the end of the cycle still finds room */
    kp_gate_set(kp_gate_make(1, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(1, 1000), 0);
    kp_record_recycle(1);
    gate_record(2);
    assert_int_equal(hook_put(0, 1000), 1000); /* and recycling makes room again */
    spool_forget(true);
}

static void the_smallest_cap_still_works(void **state)
{
    uint64_t lost;
    (void)state;
    open_spool(0, NULL);
    gate_record(1);
    fill(20000, &lost);
    assert_true(lost > 0);
    spool_forget(true);
}

static void memory_that_is_short_for_a_while(void **state)
{
    uint64_t lost;
    (void)state;
    kp_fail_set("fallocate:3+"); /* header and first stock, then no more */
    open_spool(256, NULL);
    grow_error_wait(KP_LOSS_NO_SLOT);
    gate_record(1);
    uint64_t kept = fill(1000000, &lost);
    assert_int_equal(lost, 5000);
    assert_int_equal(lost_for(KP_LOSS_NO_SLOT), lost);
    assert_int_equal(spool_check(kp_record_path(), 1), kept);
    kp_gate_set(kp_gate_make(1, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(1, 1000), 0);
    kp_record_recycle(1);
    gate_record(2);
    assert_int_equal(hook_put(0, 1000), 1000); /* what was recycled serves again */
    kp_fail_set(NULL);
    kp_record_recycle(1);
    kp_writer_wake();
    stock_wait(120); /* and the file grows again */
    spool_forget(true);
}

static void a_mapping_that_fails(void **state)
{
    uint64_t lost;
    (void)state;
    open_spool(256, NULL);
    kp_fail_set("mmap:1+:12"); /* the first segment is there already */
    grow_error_wait(KP_LOSS_NO_SLOT);
    gate_record(1);
    uint64_t kept = fill(1000000, &lost);
    assert_int_equal(lost, 5000);
    assert_true(lost_for(KP_LOSS_NO_SLOT) > 0);
    assert_int_equal(spool_check(kp_record_path(), 1), kept);
    kp_fail_set(NULL);
    spool_forget(true);
}

static unsigned files_in(const char *dir)
{
    char command[700];
    unsigned n = 0;
    snprintf(command, sizeof command, "ls %s | grep -c kprof$", dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &n), 1);
    pclose(f);
    return n;
}

/* The table of failing calls is set here after threads have ended that looked at it; TSan knows no order of that. */
static void skip_under_tsan(void)
{
#if defined(__SANITIZE_THREAD__)
    KP_SKIP("TSan sees the table of failing calls, which is set beside threads here");
#endif
}

static void an_open_that_fails_leaves_nothing_and_may_be_tried_again(void **state)
{
    const struct {
        const char *spec;
        int rc;
    } rows[] = {
        {"mkdir:1+:13", -EACCES},    {"open:1+:30", -EROFS},       {"open:1+:24", -EMFILE},
        {"fallocate:1:28", -ENOSPC}, {"fallocate:2+:28", -ENOSPC}, {"mmap:1+:12", -ENOMEM},
        {"thread:1+:11", -EAGAIN},   {"populate:1:14", -ENOSPC},   {"pwrite:1+:28", -ENOSPC},
        {"pwrite:1+:122", -EDQUOT},
    };
    struct kp_record_options o = {.dir = kp_test_tmpdir(), .max_bytes = 64 << 20};
    (void)state;
    skip_under_tsan();
    unsigned before = files_in(kp_test_tmpdir());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kp_fail_set(rows[i].spec);
        int rc = kp_record_open(&o);
        kp_fail_set(NULL);
        assert_int_equal(rc, rows[i].rc);
        assert_false(kp_record_is_open());
        gate_record(1);
        assert_int_equal(hook_put(0, 1), 0);
        kp_gate_set(0);
        assert_int_equal(files_in(kp_test_tmpdir()), before);
    }
    open_spool(64, NULL);
    gate_record(1);
    assert_int_equal(hook_put(0, 10), 10);
    spool_forget(true);
}

/* One mapping after the other, until none is left that the opening needs. */
static void an_open_that_misses_one_mapping_leaves_nothing(void **state)
{
    struct kp_record_options o = {.dir = kp_test_tmpdir(), .max_bytes = 64 << 20};
    unsigned before = files_in(kp_test_tmpdir()), failed = 0;
    (void)state;
    for (char spec[32] = "mmap:1:12"; failed < 20; snprintf(spec, sizeof spec, "mmap:%u:12", failed + 1)) {
        kp_fail_set(spec);
        int rc = kp_record_open(&o);
        kp_fail_set(NULL);
        if (rc == 0) break;
        assert_true(rc == -ENOMEM || rc == -ENOSPC);
        assert_false(kp_record_is_open());
        assert_int_equal(files_in(kp_test_tmpdir()), before);
        failed++;
    }
    assert_in_range(failed, 3, 8); /* at least a piece of addresses, two segments, the table of texts */
    gate_record(1);
    assert_int_equal(hook_put(0, 10), 10);
    spool_forget(true);
}

static void a_folder_that_cannot_be_made(void **state)
{
    struct kp_record_options o = {.dir = "/proc/kprof-cannot", .max_bytes = 64 << 20};
    (void)state;
    assert_true(kp_record_open(&o) < 0);
    assert_false(kp_record_is_open());
}

static void addresses_may_be_short(void **state)
{
    (void)state;
    open_spool(64, NULL);
    kp_fail_set("mmap:1+:12"); /* as under ulimit -v: no addresses for the next piece */
    grow_error_wait(KP_LOSS_NO_SLOT);
    assert_int_equal(kp_load_relaxed(&kp_spool.chunks), KP_PIECE_CHUNKS);
    assert_false(kp_spool.is_broken);
    kp_fail_set(NULL);
    kp_spool_retry();
    stock_wait(120); /* and there are some again */
    assert_true(kp_load_relaxed(&kp_spool.chunks) > KP_PIECE_CHUNKS);
    spool_forget(true);
}

static uint64_t addresses_taken(void)
{
    uint64_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%lu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * 4096;
}

/* 0: fine; 77: this program has more addresses than a limit can be set to (a sanitizer's). In a process of its own. */
static int grow_under_a_limit(void)
{
    const struct rlimit limit = {256 << 20, 256 << 20};
    const uint64_t before = addresses_taken();
    uint64_t lost;
    if (before > 100 << 20) return 77;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    open_spool(4096, NULL);
    if (addresses_taken() - before > 24 << 20) return 2; /* not what the cap would allow */
    gate_record(1);
    uint64_t kept = fill(4000000, &lost);
    if (lost != 5000 || lost_for(KP_LOSS_CAP) == 0) return 3;
    if (kp_load_relaxed(&kp_spool.chunks) != 512) return 4; /* an eighth */
    if (spool_check(kp_record_path(), 1) != kept) return 5;
    (void)kp_record_close(true, 10000);
    return 0;
}

/* As above, for a program that goes to its limit by itself. */
static int grow_beside_a_large_host(void)
{
    const struct rlimit limit = {256 << 20, 256 << 20};
    uint64_t lost;
    if (addresses_taken() > 100 << 20) return 77;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    open_spool(4096, NULL);
    const size_t bytes = limit.rlim_cur - addresses_taken() - (42 << 20); /* two pieces more than an eighth */
    if (mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return 2;
    gate_record(1);
    (void)fill(4000000, &lost);
    if (lost != 5000 || lost_for(KP_LOSS_CAP) == 0) return 3;
    if (kp_load_relaxed(&kp_spool.chunks) != 3 * KP_PIECE_CHUNKS) return 4;
    if (limit.rlim_cur - addresses_taken() < limit.rlim_cur / 8) return 5;
    return 0;
}

static void assert_in_child(int (*run)(void))
{
    int status;
    assert_non_null(kp_test_tmpdir());
    pid_t pid = fork();
    if (pid == 0) _exit(run());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) KP_SKIP("no limit on addresses can be set in a program of this size");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_limit_on_addresses_leaves_the_host_the_most_of_them(void **state)
{
    (void)state;
    assert_in_child(grow_under_a_limit);
}

static void a_host_near_its_limit_on_addresses_keeps_room_to_grow(void **state)
{
    (void)state;
    assert_in_child(grow_beside_a_large_host);
}

/* More than the pieces that are taken one by one: chunks of both kinds are found by number and number by chunk, and the
 * file reads whole. */
static void pieces_lie_anywhere(void **state)
{
    uint64_t lost;
    (void)state;
    open_spool(150, NULL);
    gate_record(1);
    uint64_t kept = fill(8000000, &lost);
    assert_true(kept * sizeof(struct test_rec) > 120u << 20);
    assert_true(kp_load_relaxed(&kp_spool.chunks) > 30 * KP_PIECE_CHUNKS);
    for (uint32_t i = 0; i < kp_load_relaxed(&kp_spool.chunks); i++)
        assert_int_equal(kp_spool_index(kp_spool_chunk(i)), i);
    assert_int_equal(spool_check(kp_record_path(), 1), kept);
    spool_forget(true);
}

static void an_older_kernel_is_served_by_hand(void **state)
{
    (void)state;
    kp_fail_set("populate:1+:22"); /* EINVAL: no MADV_POPULATE_WRITE */
    open_spool(64, NULL);
    gate_record(1);
    assert_int_equal(hook_put(0, 1000), 1000);
    assert_int_equal(spool_check(kp_record_path(), 1), 1000);
    kp_fail_set(NULL);
    spool_forget(true);
}

/* 0: fine; 77: no tmpfs to be had here. Runs in a process and a mount namespace of its own. */
static int fill_small_disk(void)
{
    char dir[600];
    uint64_t lost;
    snprintf(dir, sizeof dir, "%s/small", kp_test_tmpdir());
    mkdir(dir, 0700);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", dir, "tmpfs", 0, "size=6m") != 0)
        return 77;
    open_spool_in(dir, 64, 8, NULL);
    gate_record(1);
    uint64_t kept = fill(4000000, &lost);
    if (lost != 5000 || lost_for(KP_LOSS_RESERVE) == 0) return 2;
    struct statfs fs;
    if (statfs(dir, &fs) != 0 || fs.f_bavail * (uint64_t)fs.f_bsize < 2u << 20) return 3; /* half of it stays free */
    if (kept < (9u << 20) / sizeof(struct test_rec)) return 6; /* the memory and a part of the disk were used */
    if (spool_check(kp_record_path(), 1) != kept) return 4;
    (void)kp_record_close(true, 10000);
    return umount2(dir, MNT_DETACH) == 0 ? 0 : 5;
}

static void a_really_full_disk_sends_no_signal(void **state)
{
    int status;
    (void)state;
    assert_non_null(kp_test_tmpdir());
    pid_t pid = fork();
    if (pid == 0) _exit(fill_small_disk());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status)); /* not by SIGBUS */
    if (WEXITSTATUS(status) == 77) KP_SKIP("no small file system can be mounted here");
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- the disk behind the memory ---- */

/* As fill, but a busy machine whose disk seems to stand is waited for: it is no loss then. */
static uint64_t fill_slowly(uint64_t most)
{
    uint64_t kept = 0;
    for (uint64_t naps = 0; kept < most && naps < 60000;) {
        kp_put_wait(kp_thread_get(), kp_gate_get(), sizeof(struct test_rec), 5000);
        if (hook_put(kept, 1)) kept++;
        else usleep(1000), naps++;
    }
    assert_int_equal(kept, most);
    return kept;
}

static void memory_wait(uint32_t chunks)
{
    for (int i = 0; i < 60000 && kp_load_relaxed(&kp_spool.resident) - kp_chunk_ready() > chunks; i++) usleep(1000);
    assert_true(kp_load_relaxed(&kp_spool.resident) - kp_chunk_ready() <= chunks);
}

static void what_memory_does_not_hold_is_on_the_disk(void **state)
{
    (void)state;
    open_spool_in(kp_test_tmpdir(), 64, 8, NULL);
    gate_record(1);
    uint64_t kept = fill_slowly(1000000); /* 32 MB */
    assert_true(kp_load_relaxed(&kp_spool.resident) <= 8u << 20 >> 16);
    assert_int_equal(spool_check(kp_record_path(), 1), kept);
    assert_int_equal(kp_record_events(1), kept);
    spool_forget(true);
}

/* The program may rely on the disk's room: what was exported takes none. */
static void recycled_chunks_leave_the_disk(void **state)
{
    struct stat st;
    (void)state;
    open_spool_in(kp_test_tmpdir(), 64, 8, NULL);
    for (uint32_t cycle = 1; cycle < 8; cycle++) { /* 7 cycles of 16 MB: more than the cap */
        gate_record(cycle);
        uint64_t kept = fill_slowly(500000);
        kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
        assert_int_equal(kp_record_quiesce(cycle, 1000), 0);
        assert_int_equal(spool_check(kp_record_path(), cycle), kept);
        kp_record_recycle(cycle);
        memory_wait(8);
    }
    for (int i = 0; i < 60000; i++) {
        assert_int_equal(stat(kp_record_path(), &st), 0);
        if (st.st_blocks * 512 <= 5 * (blkcnt_t)KP_CHUNK_BYTES) break; /* the header, names, notes */
        usleep(1000);
    }
    assert_true(st.st_blocks * 512 <= 5 * (blkcnt_t)KP_CHUNK_BYTES);
    spool_forget(true);
}

static void an_open_range_stays_in_memory_until_it_ends(void **state)
{
    struct walk w;
    (void)state;
    open_spool_in(kp_test_tmpdir(), 64, 8, NULL);
    gate_record(1);
    struct kp_thread *t = kp_thread_get();
    struct kp_rec_op *op = kp_put_reserve(t, kp_gate_get(), sizeof *op, KP_KIND_OP);
    *op = (struct kp_rec_op){.head = {.kind = KP_KIND_OP, .size = sizeof *op}, .start = 1};
    struct kp_rec_op *const open_op = op;
    const uint32_t chunk = kp_spool_index(t->chunk);
    kp_put_commit(t, sizeof *op);
    (void)fill_slowly(500000);
    memory_wait(64);
    assert_int_equal(kp_spool_chunk(chunk)->magic, KP_CHUNK_MAGIC);
    kp_put_end(&open_op->ticks, 1, 778);
    for (int i = 0; i < 60000 && kp_load_relaxed(&kp_spool.resident) - kp_chunk_ready() > 40; i++) {
        (void)fill_slowly(5000);
        usleep(1000);
    }
    walk_open(&w, kp_record_path());
    op = (struct kp_rec_op *)(w.base + (size_t)chunk * KP_CHUNK_BYTES + sizeof(struct kp_chunk_head));
    assert_int_equal(op->ticks, 777);
    walk_close(&w);
    spool_forget(true);
}

static void a_closed_spool_is_whole_on_the_disk(void **state)
{
    char path[1024], memory[600];
    (void)state;
    open_spool_in(kp_test_tmpdir(), 64, 8, NULL);
    gate_record(1);
    uint64_t kept = fill_slowly(300000);
    snprintf(path, sizeof path, "%s", kp_record_path());
    snprintf(memory, sizeof memory, "%s", kp_record_memory());
    kp_gate_set(0);
    assert_true(kp_record_close(false, 10000));
    kp_record_forget();
    assert_true(memory[0] == 0 || access(memory, F_OK) != 0);
    assert_int_equal(spool_check(path, 1), kept);
    unlink(path);
}

static void a_disk_that_refuses_costs_records_and_no_time(void **state)
{
    static const struct {
        const char *spec;
        enum kp_loss reason;
    } rows[] = {{"pwrite:2+:28", KP_LOSS_DISK},
                {"pwrite:2+:5", KP_LOSS_DISK},
                {"pwrite:2+:122", KP_LOSS_QUOTA},
                {"pwrite:2+:27", KP_LOSS_LIMIT}};
    uint64_t lost;
    (void)state;
    skip_under_tsan();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kp_fail_set(rows[i].spec); /* the first writes the header */
        open_spool_in(kp_test_tmpdir(), 64, 8, NULL);
        gate_record(1);
        uint64_t kept = fill(4000000, &lost);
        assert_int_equal(lost, 5000);
        assert_true(lost_for(rows[i].reason) > 0);
        assert_true(kept >= (7u << 20) / sizeof(struct test_rec));
        assert_int_equal(spool_check(kp_record_path(), 1), kept);
        kp_gate_set(0);
        assert_false(kp_record_close(false, 1000)); /* it stays in memory */
        assert_int_equal(spool_check(kp_record_path(), 1), kept);
        kp_fail_set(NULL);
        if (kp_record_memory()[0]) unlink(kp_record_memory());
        unlink(kp_record_path());
        kp_record_forget();
    }
}

/* The records of cycle 1 that a reader finds on the disk alone, once the process is gone. */
static uint64_t on_disk_alone(void)
{
    char path[1024], command[3000];
    char first[KP_CHUNK_BYTES];
    snprintf(path, sizeof path, "%s.copy", kp_record_path());
    snprintf(command, sizeof command, "cp %s %s", kp_record_path(), path);
    assert_int_equal(system(command), 0);
    const int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, first, sizeof first, 0), sizeof first);
    ((struct kp_file_head *)(void *)first)->pid = 1;
    char *const line = memmem(first, sizeof first, "\nmemory=", 8);
    if (line) line[1] = 'M'; /* the half in memory is not looked for */
    assert_int_equal(pwrite(fd, first, sizeof first, 0), sizeof first);
    close(fd);
    const uint64_t found = spool_check(path, 1);
    unlink(path);
    return found;
}

/* /dev/shm ends with a container or a job, a file without a path with the process. */
static void memory_that_may_end_is_copied_to_the_disk(void **state)
{
    (void)state;
    skip_under_tsan();
    for (int has_path = 0; has_path < 2; has_path++) {
        uint64_t found = 0;
        if (!has_path) kp_fail_set("shm:1");
        open_spool_in(kp_test_tmpdir(), 64, 8, NULL);
        kp_fail_set(NULL);
        if (!has_path) assert_int_equal(kp_record_memory()[0], 0);
        gate_record(1);
        assert_int_equal(hook_put(0, 100), 100);
        for (int i = 0; i < 3000 && found < 100; i++, usleep(20000)) found = on_disk_alone();
        assert_int_equal(found, 100);
        spool_forget(true);
    }
}

static int setup(void **state)
{
    (void)state;
    kp_clock_init();
    return kp_gate_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_really_full_disk_sends_no_signal),
        cmocka_unit_test(the_cap_holds_and_is_counted),
        cmocka_unit_test(the_smallest_cap_still_works),
        cmocka_unit_test(memory_that_is_short_for_a_while),
        cmocka_unit_test(a_mapping_that_fails),
        cmocka_unit_test(an_open_that_fails_leaves_nothing_and_may_be_tried_again),
        cmocka_unit_test(a_folder_that_cannot_be_made),
        cmocka_unit_test(an_open_that_misses_one_mapping_leaves_nothing),
        cmocka_unit_test(addresses_may_be_short),
        cmocka_unit_test(a_limit_on_addresses_leaves_the_host_the_most_of_them),
        cmocka_unit_test(a_host_near_its_limit_on_addresses_keeps_room_to_grow),
        cmocka_unit_test(pieces_lie_anywhere),
        cmocka_unit_test(an_older_kernel_is_served_by_hand),
        cmocka_unit_test(what_memory_does_not_hold_is_on_the_disk),
        cmocka_unit_test(recycled_chunks_leave_the_disk),
        cmocka_unit_test(an_open_range_stays_in_memory_until_it_ends),
        cmocka_unit_test(a_closed_spool_is_whole_on_the_disk),
        cmocka_unit_test(a_disk_that_refuses_costs_records_and_no_time),
        cmocka_unit_test(memory_that_may_end_is_copied_to_the_disk),
    };
    return cmocka_run_group_tests_name("disk", tests, setup, NULL);
}
