// SPDX-License-Identifier: Apache-2.0
/* test_pywait.c - what a thread waits for, by the name of a function of Python */
#include "export/read/facts/pywait.h"

#include "test/support/support.h"

static void functions_in_c_are_known_by_their_word_and_their_object(void **state)
{
    (void)state;
    assert_int_equal(kp_pywait_of("<built-in function sleep>"), KP_PYWAIT_SLEEP);
    assert_int_equal(kp_pywait_of("<built-in method acquire of _thread.lock object at 0x7f00>"), KP_PYWAIT_LOCK);
    assert_int_equal(kp_pywait_of("<method 'acquire' of '_thread.lock' objects>"), KP_PYWAIT_LOCK);
    assert_int_equal(kp_pywait_of("<built-in method get of _queue.SimpleQueue object at 0x7f00>"), KP_PYWAIT_QUEUE);
    assert_int_equal(kp_pywait_of("<built-in method get of dict object at 0x7f00>"), KP_PYWAIT_NONE);
    assert_int_equal(kp_pywait_of("<built-in method recv_into of socket object>"), KP_PYWAIT_NETWORK);
    assert_int_equal(kp_pywait_of("<built-in method recv of socket object at 0x7f00>"), KP_PYWAIT_NETWORK);
    assert_int_equal(kp_pywait_of("<built-in function select>"), KP_PYWAIT_NETWORK);
    assert_int_equal(kp_pywait_of("<built-in function sleepless>"), KP_PYWAIT_NONE);
    assert_int_equal(kp_pywait_of("<built-in function waitpid>"), KP_PYWAIT_PROCESS);
}

static void files_are_told_from_memory(void **state)
{
    (void)state;
    assert_int_equal(kp_pywait_of("<built-in method read of _io.BufferedReader object at 0x7f00>"), KP_PYWAIT_FILE);
    assert_int_equal(kp_pywait_of("<method 'readlines' of '_io._IOBase' objects>"), KP_PYWAIT_FILE);
    assert_int_equal(kp_pywait_of("<built-in method read of _io.BytesIO object at 0x7f00>"), KP_PYWAIT_NONE);
    assert_int_equal(kp_pywait_of("<built-in method write of _io.StringIO object at 0x7f00>"), KP_PYWAIT_NONE);
    assert_int_equal(kp_pywait_of("<built-in function fromfile>"), KP_PYWAIT_FILE);
    assert_int_equal(kp_pywait_of("<built-in method commit of sqlite3.Connection object at 0x7fcffa665210>"),
                     KP_PYWAIT_FILE);
    assert_int_equal(kp_pywait_of("torch/serialization.py(1316): load"), KP_PYWAIT_FILE);
    assert_int_equal(kp_pywait_of("pandas/io/parsers/readers.py(868): read_csv"), KP_PYWAIT_FILE);
}

static void functions_of_python_are_known_by_their_file(void **state)
{
    (void)state;
    assert_int_equal(kp_pywait_of("queue.py(154): get"), KP_PYWAIT_QUEUE);
    assert_int_equal(kp_pywait_of("/usr/lib/python3.11/queue.py(154): get"), KP_PYWAIT_QUEUE);
    assert_int_equal(kp_pywait_of("myqueue.py(154): get"), KP_PYWAIT_NONE);
    assert_int_equal(kp_pywait_of("queue.py(154): get_nowait"), KP_PYWAIT_NONE);
    assert_int_equal(kp_pywait_of("threading.py(604): wait"), KP_PYWAIT_LOCK);
    assert_int_equal(kp_pywait_of("concurrent/futures/_base.py(428): result"), KP_PYWAIT_PROCESS);
    assert_int_equal(kp_pywait_of("torch/distributed/distributed_c10d.py(4079): all_reduce"), KP_PYWAIT_COMM);
    assert_int_equal(kp_pywait_of("torch/distributed/checkpoint/filesystem.py(90): write"), KP_PYWAIT_FILE);
    assert_int_equal(kp_pywait_of("<built-in method wait of PyCapsule object at 0x7f00>"), KP_PYWAIT_COMM);
    assert_int_equal(kp_pywait_of("train.py(12): main"), KP_PYWAIT_NONE);
    assert_int_equal(kp_pywait_of(""), KP_PYWAIT_NONE);
}

/* What a file does, and what runs below a function of a queue, is no idleness of the function itself. */
static void a_thread_is_idle_in_the_call_that_waits(void **state)
{
    (void)state;
    assert_true(kp_pywait_is_idle("<built-in function sleep>"));
    assert_true(kp_pywait_is_idle("threading.py(288): wait"));
    assert_false(kp_pywait_is_idle("<built-in method read of _io.BufferedReader object at 0x7f00>"));
    assert_false(kp_pywait_is_idle("queue.py(154): get"));
    assert_false(kp_pywait_is_idle("train.py(12): main"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_in_c_are_known_by_their_word_and_their_object),
        cmocka_unit_test(files_are_told_from_memory),
        cmocka_unit_test(functions_of_python_are_known_by_their_file),
        cmocka_unit_test(a_thread_is_idle_in_the_call_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
