// SPDX-License-Identifier: Apache-2.0
/* test_kineto_processes.c - of files of several ranks that were merged into one, ids are by process */
#include "export/read/kineto/kineto_processes.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/read/tree/tree.h"
#include "test/support/kineto_text.h"
#include "test/support/support.h"

struct merged {
    char text[16384];
    size_t used;
};

static void put(struct merged *m, const char *cat, const char *name, int pid, int tid, int ts, int dur, int id,
                int correlation)
{
    m->used +=
        (size_t)snprintf(m->text + m->used, sizeof m->text - m->used,
                         "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%d,\"dur\":%d,"
                         "\"args\":{\"External id\":%d,\"correlation\":%d,\"stream\":%d}}",
                         m->used ? "," : "{\"traceEvents\":[", cat, name, pid, tid, ts, dur, id, correlation, tid);
    assert_true(m->used < sizeof m->text);
}

/* A process asks a device for three kernels of `dur`. Ids are the same in each. */
static void process_put(struct merged *m, int pid, int device, int late, int dur)
{
    for (int i = 0; i < 3; i++) {
        const int at = 1000 * i + late;
        put(m, "cpu_op", "aten::mm", pid, pid, at, 20, 2 + i, 0);
        put(m, "cuda_runtime", "cudaLaunchKernel", pid, pid, at + 2, 5, 2 + i, 100 + i);
        put(m, "kernel", "gemm", device, 7, at + 30, dur, 2 + i, 100 + i);
    }
}

/* Fills in the device time of all ops of a process, and of all. */
static void times_of(struct merged *m, int pid, double *of, double *all, size_t *processes)
{
    struct kp_kineto *t;
    struct kp_tree tree;
    char why[256];
    snprintf(m->text + m->used, sizeof m->text - m->used, "]}");
    assert_int_equal(kineto_text_read(&t, m->text, m->used + 2, false, why, sizeof why), 0);
    assert_int_equal(kp_tree_build(&tree, t), 0);
    *of = *all = 0;
    *processes = t->processes;
    for (size_t i = 0; i < tree.count; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(&tree, i);
        if (e->kind != KP_KINETO_OP) continue;
        *all += kp_tree_work(&tree, i).device_us;
        if (e->pid == pid) *of += kp_tree_work(&tree, i).device_us;
    }
    kp_tree_fini(&tree);
    kp_kineto_close(t);
}

static void work_is_its_processs_and_counts_once(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) { /* the devices begin at the same time, or the second is late */
        struct merged m = {.used = 0};
        double of, all;
        size_t processes;
        process_put(&m, 10, 0, 0, 100);
        process_put(&m, 20, 100000, order ? 300 : 0, 200);
        times_of(&m, 20, &of, &all, &processes);
        assert_int_equal(processes, 2);
        assert_true(of == 600 && all == 900);
    }
}

static void two_processes_of_one_device_count_once(void **state)
{
    struct merged m = {.used = 0};
    double of, all;
    size_t processes;
    (void)state;
    process_put(&m, 10, 0, 0, 100);
    process_put(&m, 20, 0, 300, 200);
    times_of(&m, 20, &of, &all, &processes);
    assert_true(all == 900);
}

static void one_process_on_two_devices_stays_one(void **state)
{
    struct merged m = {.used = 0};
    double of, all;
    size_t processes;
    (void)state;
    process_put(&m, 10, 0, 0, 100);
    put(&m, "cpu_op", "aten::add", 10, 10, 5000, 20, 50, 0);
    put(&m, "cuda_runtime", "cudaLaunchKernel", 10, 10, 5002, 5, 50, 150);
    put(&m, "kernel", "add", 1, 7, 5030, 40, 50, 150);
    times_of(&m, 10, &of, &all, &processes);
    assert_int_equal(processes, 1);
    assert_true(of == 340 && all == 340);
}

/* Any file may be read: ids that leave no room for those of another process stay as they are. */
static void ids_at_the_end_of_their_range_stay(void **state)
{
    static const char text[] =
        "{\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,"
        "\"args\":{\"Fwd thread id\":9223372036854775807,\"Sequence number\":1}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":2,\"tid\":2,\"ts\":1,\"dur\":1,\"args\":{}}]}";
    struct kp_kineto *t;
    char why[256];
    (void)state;
    assert_int_equal(kineto_text_read(&t, text, sizeof text - 1, false, why, sizeof why), 0);
    assert_int_equal(t->processes, 2);
    assert_true(t->events[0].fwd_tid == INT64_MAX);
    kp_kineto_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_its_processs_and_counts_once),
        cmocka_unit_test(two_processes_of_one_device_count_once),
        cmocka_unit_test(one_process_on_two_devices_stays_one),
        cmocka_unit_test(ids_at_the_end_of_their_range_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
