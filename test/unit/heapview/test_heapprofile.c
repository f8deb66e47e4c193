// SPDX-License-Identifier: Apache-2.0
/* test_heapprofile.c - NAME.heap.gz is read and played: sums, leaks, the peak; damaged files end the reading */
#include "export/answers/heapview/heapview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/parse/kineto_parse.h"
#include "test/support/support.h"

/* main calls f and g. f: 100 bytes, freed at once; 10, left. g: 50, there at the peak and freed. One of no stack. */
#define HEAD                                                                 \
    "v 10400 2\n# kprof\nX prog\ns /bin/prog\n# 1 build abcd\ns main\ns f\n" \
    "s g;h\ni 10 1 2 0 0\ni 20 1 3 0 0\ni 30 1 4 0 0 3 0 7\ni 40 0\n"        \
    "t 1 0\nt 2 1\nt 3 1\nt 4 1\na 64 2\na a 2\na 32 3\na 5 0\n"
#define MOVES "+ 0\n- 0\nc a\n+ 1\n+ 2\n+ 2\n- 2\n+ 3\n- 2\nc 14\n"

#define FILE_AT(path) ((const struct kp_texts){kp_text_file_each, path})

static char path[4096], why[512];

static struct kp_profile *read_text(const char *text)
{
    struct kp_profile *p;
    snprintf(path, sizeof path, "%s/x.heap.gz", kp_test_tmpdir());
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return kp_profile_read(&p, &FILE_AT(path), path, why, sizeof why) ? NULL : p;
}

static const char *written(const struct kp_profile *p, enum kp_profile_by by)
{
    static char text[4096];
    FILE *out = fmemopen(text, sizeof text, "w");
    kp_profile_folded(p, out, by);
    fclose(out);
    return text;
}

static void a_profile_without_a_place_has_no_line_of_its_own(void **state)
{
    struct kp_profile *p = read_text("v 10400 2\nX a\ns /lib/a\n# 1 build ab\ns f\ni 10 1\nt 1 0\na 64 1\n+ 0\n");
    (void)state;
    assert_non_null(p);
    assert_int_equal(p->places_n, 0);
    assert_null(kp_profile_own_line(p, 1));
    kp_profile_close(p);
}

static void blocks_are_played(void **state)
{
    struct kp_profile *p = read_text(HEAD MOVES);
    (void)state;
    assert_non_null(p);
    assert_int_equal(p->sites_n, 3);
    assert_int_equal(p->ms, 20);
    assert_int_equal(p->total.allocations, 5);
    assert_int_equal(p->total.bytes, 100 + 10 + 50 + 50 + 5);
    assert_int_equal(p->total.temporary, 2); /* and the second 50, as heaptrack counts: nothing was between */
    assert_int_equal(p->total.live_blocks, 2);
    assert_int_equal(p->total.live_bytes, 15);
    assert_int_equal(p->total.peak_bytes, 110);
    assert_int_equal(p->sites[0].temporary_bytes, 100);
    assert_int_equal(p->sites[0].peak_bytes, 10);
    assert_int_equal(p->sites[0].live_bytes, 10);
    assert_int_equal(p->sites[1].peak_blocks, 2);
    assert_int_equal(p->sites[1].live_blocks, 0);
    kp_profile_close(p);
}

static void stacks_are_folded_by_each_measure(void **state)
{
    struct kp_profile *p = read_text(HEAD MOVES);
    (void)state;
    assert_string_equal(written(p, KP_BY_PEAK), "main;f 10\nmain;f;g,h 100\n");
    assert_string_equal(written(p, KP_BY_LEAKED), "main;f 10\n(no call stack) 5\n");
    assert_string_equal(written(p, KP_BY_ALLOCATED), "main;f 110\nmain;f;g,h 100\n(no call stack) 5\n");
    assert_string_equal(written(p, KP_BY_TEMPORARY), "main;f 100\nmain;f;g,h 50\n");
    kp_profile_close(p);
}

/* Sizes of a step follow its comment; what is there when the step ends, and when the last one begins. */
static void each_step_has_what_it_left(void **state)
{
    struct kp_profile *p = read_text(HEAD "+ 1\n# step 7\na 8 2\na 8 3\n+ 4\n+ 4\n+ 5\n# step\n- 5\n# step 8\na 8 2\na "
                                          "9 2\n+ 6\n+ 7\n# step\n- 7\n+ 3\n");
    size_t n;
    (void)state;
    assert_non_null(p);
    assert_int_equal(p->steps_n, 2);
    assert_int_equal(p->steps[0].number, 7);
    assert_int_equal(p->steps[0].left_bytes, 24);
    assert_int_equal(p->steps[0].still_bytes, 16);
    assert_int_equal(p->steps[0].still_blocks, 2);
    assert_int_equal(p->steps[1].number, 8);
    assert_int_equal(p->steps[1].left_bytes, 17);
    assert_int_equal(p->steps[1].still_bytes, 8);
    struct kp_profile_leak *of = kp_profile_leaks(p, 0, 2, &n);
    assert_int_equal(n, 2); /* one call stack, two steps */
    assert_int_equal(of[0].site, of[1].site);
    assert_int_equal(of[0].bytes, 16);
    assert_int_equal(of[1].step, 1);
    assert_int_equal(of[1].bytes, 8);
    free(of);
    of = kp_profile_leaks(p, 1, 9, &n);
    assert_int_equal(n, 1);
    free(of);
    kp_profile_close(p);
}

/* Steps by the clock go on while Python gives back what the program kept. */
static void no_step_begins_while_python_ends(void **state)
{
    struct kp_profile *p = read_text(HEAD "# step 1\na 8 2\n+ 4\n# step 2\na 8 2\n+ 5\n# python ends\n- 4\n- 5\n"
                                          "# step 3\na 8 2\n+ 6\n");
    (void)state;
    assert_non_null(p);
    assert_int_equal(p->steps_n, 2);
    assert_int_equal(p->steps[0].still_bytes, 8);
    kp_profile_close(p);
}

/* A function that returns behind its last step gives back what its locals kept; a list is emptied between steps. */
static void what_the_last_step_found_was_kept(void **state)
{
    struct kp_profile *p = read_text(HEAD "# step 1\na 8 2\n+ 4\n+ 4\n# step 2\na 8 2\n+ 5\n- 4\n# step 3\na 8 2\n+ 6\n"
                                          "- 4\n- 5\n- 6\n# step\n# python ends\n");
    size_t n;
    (void)state;
    assert_non_null(p);
    assert_int_equal(p->total.kept_bytes, 0);
    assert_int_equal(p->steps[0].still_bytes, 8);
    assert_int_equal(p->steps[1].still_bytes, 8);
    assert_int_equal(p->steps[2].still_bytes, 0); /* what it has is in use */
    struct kp_profile_leak *of = kp_profile_leaks(p, 0, 2, &n);
    assert_int_equal(n, 2);
    assert_int_equal(of[0].blocks, 1);
    free(of);
    kp_profile_close(p);
}

/* What Python gives back while it ends, the program had kept. */
static void what_is_there_when_python_ends_was_kept(void **state)
{
    struct kp_profile *p =
        read_text(HEAD "+ 1\n# step 7\na 8 2\n+ 4\n+ 4\n# step\n# python ends\n- 4\n- 1\n# python ends\n+ 3\n");
    size_t n;
    (void)state;
    assert_non_null(p);
    assert_true(p->is_python_over);
    assert_int_equal(p->total.live_bytes, 13);
    assert_int_equal(p->total.kept_bytes, 26);
    assert_int_equal(p->total.kept_blocks, 3);
    assert_int_equal(p->steps[0].still_bytes, 16);
    struct kp_profile_leak *of = kp_profile_leaks(p, 0, 1, &n);
    assert_int_equal(n, 1);
    assert_int_equal(of[0].blocks, 2);
    free(of);
    kp_profile_close(p);
    p = read_text(HEAD MOVES);
    assert_false(p->is_python_over);
    assert_int_equal(p->total.kept_bytes, p->total.live_bytes);
    kp_profile_close(p);
}

/* Python's arenas: in which step each came, by which frame, and whether it is still there. */
static void arenas_are_no_blocks(void **state)
{
    struct kp_profile *p = read_text(HEAD "# arena + 1000 100000 2\n# step 7\n# arena + 2000 100000 1\n# arena - 1000\n"
                                          "# step\n# arena - 9999\n# arena + 3000 40000 99\n# arena +\n# arena\n"
                                          "# python ends\n# arena - 2000\n");
    (void)state;
    assert_non_null(p);
    assert_int_equal(p->total.allocations, 0);
    assert_int_equal(p->arenas_n, 2);
    assert_int_equal(p->arenas[0].step, UINT32_MAX);
    assert_int_equal(p->arenas[0].frame, 2);
    assert_true(p->arenas[0].is_unmapped);
    assert_int_equal(p->arenas[1].bytes, 1 << 20);
    assert_int_equal(p->arenas[1].step, 0);
    assert_false(p->arenas[1].is_unmapped); /* it was there when Python began to end */
    kp_profile_close(p);
}

static const char *leak_rows_written(const struct kp_profile *p, long rows, long first, long last)
{
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_true(kp_leakview_write(out, p, rows, NULL, first, last));
    fclose(out);
    return text;
}

static const char *leaks_written(const struct kp_profile *p, long first, long last)
{
    return leak_rows_written(p, 5, first, last);
}

/* f leaks in step 0 and its g alone a lot there; main leaks in each step. */
static void the_start_up_is_one_row_behind_what_steps_left(void **state)
{
    struct kp_profile *p =
        read_text(HEAD "# step 0\na 9999 2\na 5 1\n+ 4\n+ 5\n# step 1\na 5 1\n+ 6\n# step 2\na 5 1\n+ 7\n"
                       "# arena + 1000 100000 1\n# step 3\na 7 3\n+ 8\n# step\n");
    (void)state;
    assert_non_null(p);
    const char *text = leaks_written(p, -1, -1);
    const char *main = strstr(text, "10 B in 2 blocks: step 1 5 B, step 2 5 B\n"),
               *last = strstr(text, "still in use by step 3, the last: 7 B in 1 block of 1 call stack; --step 3 has "
                                    "them\n");
    const char *start = strstr(text, "start-up (step 0, with imports): 38.40 KiB in 2 blocks of 2 call stacks;");
    assert_true(strncmp(text, "steps 1-2 left 10 B in 2 blocks on the host's heap, 5 B a step\n", 63) == 0);
    assert_non_null(strstr(text, ": 1 arena, 1.0 MiB\n1 of the arenas (1.0 MiB) came in steps"));
    assert_non_null(strstr(text, "PYTHONMALLOC=malloc kprof run --malloc trace"));
    assert_true(main && last && start && main < last && last < start);
    assert_null(strstr(text, "step 3 7"));
    assert_non_null(strstr(leaks_written(p, 3, 3), "7 B in 1 block: step 3 7 B\n"));
    text = leaks_written(p, 0, 0);
    assert_null(strstr(text, "start-up"));
    assert_non_null(strstr(text, "38.40 KiB in 1 block: step 0 38.40 KiB\n"));
    kp_profile_close(p);
}

/* main leaks 5 bytes in each step, f 9 in two, and g more in the start-up alone. */
static void the_largest_leak_is_the_first_row_and_the_rest_has_a_sum(void **state)
{
    struct kp_profile *p =
        read_text(HEAD "# step 0\na 5 1\na 99 3\n+ 4\n+ 5\n# step 1\na 5 1\n+ 6\n# step 2\na 5 1\na 9 2\n+ 7\n"
                       "+ 8\n# step 3\na 5 1\na 9 2\n+ 9\n+ a\n# step 4\na 5 1\n+ b\n# step\n");
    (void)state;
    assert_non_null(p);
    const char *text = leak_rows_written(p, 1, -1, -1);
    assert_memory_equal(text, "steps 1-3 left 33 B in 5 blocks on the host's heap, 11 B a step\n", 64);
    assert_non_null(strstr(text, "first:\n    18 B in 2 blocks: step 2 9 B, step 3 9 B\n"));
    assert_non_null(strstr(text, "    and 1 more call stack, 15 B of that sum: -n 0 shows all\n"));
    text = leak_rows_written(p, 2, -1, -1);
    const char *const second = strstr(text, "    15 B in 3 blocks: step 1 5 B, step 2 5 B, step 3 5 B\n");
    assert_non_null(second);
    assert_true(strstr(text, "    18 B in") < second);
    assert_null(strstr(text, "of that sum"));
    kp_profile_close(p);
}

/* A program does little behind its last step, and what that step has is in use still: its gradients. */
static void what_comes_behind_the_last_step_is_not_the_last(void **state)
{
    struct kp_profile *p =
        read_text(HEAD "# step 0\na 9 1\n+ 4\n# step 1\na 5 1\n+ 5\n# step 2\na 5 1\na 7 3\n+ 6\n+ 7\n+ 7\n+ 7\n"
                       "# step 3\na 9 2\n+ 8\n# step\n");
    (void)state;
    assert_non_null(p);
    const char *text = leaks_written(p, -1, -1);
    assert_memory_equal(text, "step 1 left 5 B in 1 block on", 29);
    assert_non_null(strstr(text, "    5 B in 1 block: step 1 5 B\n"));
    assert_null(strstr(text, "step 2 21"));
    assert_non_null(strstr(text, "still in use by step 2, the last: 35 B in 5 blocks of 3 call stacks; --step 2 "));
    kp_profile_close(p);
}

/* g has a block of the start-up and one of the last step. */
static void two_steps_have_no_growth_to_tell(void **state)
{
    struct kp_profile *p = read_text(HEAD "# step 0\na 7 3\n+ 4\n# step 1\na 7 3\n+ 5\n# step\n");
    (void)state;
    assert_non_null(p);
    const char *text = leaks_written(p, -1, -1);
    assert_memory_equal(text, "no step between the start-up and the last: record more steps", 60);
    assert_non_null(strstr(text, "    none\n    still in use by step 1, the last: 7 B in 1 block of 1 call stack;"));
    assert_non_null(strstr(text, "    start-up (step 0, with imports): 7 B in 1 block of 1 call stack;"));
    kp_profile_close(p);
}

/* An arena of the start-up, one that was given back, and no other: nothing to record anew for. */
static void arenas_that_did_not_grow_are_one_line_behind_the_leaks(void **state)
{
    struct kp_profile *p =
        read_text(HEAD "# step 0\n# arena + 1000 100000 1\na 5 1\n+ 4\n# step 1\n# arena + 2000 100000 1\n"
                       "# arena - 2000\na 5 1\n+ 5\n# step 2\na 5 1\n+ 6\n# step\n");
    (void)state;
    assert_non_null(p);
    const char *text = leaks_written(p, -1, -1), *line = strstr(text, "Python's objects of ");
    assert_null(strstr(text, "PYTHONMALLOC"));
    assert_non_null(line);
    assert_true(line > strstr(text, "where, most bytes first:\n"));
    const char *wanted = "Python's objects of up to 512 bytes: no arena of theirs (1, 1.0 MiB) came in these steps\n";
    assert_true(strncmp(line, wanted, strlen(wanted)) == 0);
    assert_null(strstr(line + 1, "Python's objects"));
    kp_profile_close(p);
}

static const char *viewed(const struct kp_profile *p)
{
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    kp_heapview_profile(out, p, 1, NULL);
    fclose(out);
    return text;
}

/*
 * From outside: two calls by the interpreter, or one by a line of Python, and its loop; torch; two calls; a list that
 * Python makes.
 */
static struct kp_profile *read_calls(bool has_python)
{
    char text[1024];
    snprintf(text, sizeof text,
             "v 10400 2\n# kprof\nX prog\ns /usr/lib/libpython3.11.so.1.0\n# 1 build abcd\n"
             "s /opt/libtorch_python.so\n# 2 build abce\ns PyList_New\ns _PyEval_EvalFrameDefault\n"
             "s THPVariable_add\ns PyObject_Call\ns Python\ns step\ns train.py\n"
             "i 10 1 3 0 0\ni 20 1 4 0 0\ni 30 2 5 0 0\ni 40 1 6 0 0\ni 50 7 8 9 5\n"
             "t 4 0\nt %d 1\nt 2 2\nt 3 3\nt 4 4\nt 2 5\nt 1 6\na 64 7\n+ 0\n",
             has_python ? 5 : 4);
    return read_text(text);
}

static void calls_of_the_interpreter_are_folded(void **state)
{
    (void)state;
    struct kp_profile *p = read_calls(false);
    assert_non_null(p);
    const char *text = viewed(p);
    const char *list = strstr(text, "python3.11.so.1.0+0x10\n"),
               *calls = strstr(text, "        [interpreter, 2 frames]\n");
    const char *torch = strstr(text, "        /opt/libtorch_python.so+0x30\n"),
               *rest = strstr(text, "        [interpreter, 3 frames]\n");
    assert_true(list && list < calls && calls < torch && torch < rest);
    assert_null(strstr(text, "python3.11.so.1.0+0x20"));
    assert_null(strstr(text, "left out"));
    kp_profile_close(p);
    p = read_calls(true);
    assert_non_null(p);
    text = viewed(p);
    assert_non_null(strstr(text, "        step at train.py:5 in Python\n"));
    assert_non_null(strstr(text, "python3.11.so.1.0+0x10\n"));
    assert_null(strstr(text, "interpreter"));
    assert_null(strstr(text, "python3.11.so.1.0+0x20"));
    kp_profile_close(p);
}

/* What Python itself made stays: the list. Without a line of Python all stay, since they alone tell that it called. */
static void folded_stacks_leave_out_what_lines_of_python_stand_for(void **state)
{
    (void)state;
    struct kp_profile *p = read_calls(true);
    assert_non_null(p);
    assert_string_equal(written(p, KP_BY_PEAK), "train.py(5): step;THPVariable_add;PyList_New 100\n");
    p->all_frames = true;
    assert_string_equal(written(p, KP_BY_PEAK),
                        "PyObject_Call;train.py(5): step;_PyEval_EvalFrameDefault;THPVariable_add;"
                        "PyObject_Call;_PyEval_EvalFrameDefault;PyList_New 100\n");
    kp_profile_close(p);
    p = read_calls(false);
    assert_non_null(p);
    assert_string_equal(written(p, KP_BY_PEAK), "PyObject_Call;PyObject_Call;_PyEval_EvalFrameDefault;THPVariable_add;"
                                                "PyObject_Call;_PyEval_EvalFrameDefault;PyList_New 100\n");
    kp_profile_close(p);
}

/* A package that no list of well-known ones has. */
static void the_programs_own_line_is_the_callers_of_an_installed_package(void **state)
{
    static const char stack[] = "X a\ns Python\ns remember\ns leaky/__init__.py\ns step\ns train.py\n"
                                "i 10 1 2 3 4\ni 20 1 4 5 6\nt 2 0\nt 1 1\na 64 2\n+ 0\n";
    char text[512];
    (void)state;
    snprintf(text, sizeof text, "v 10400 2\n# installed torch,leaky\n%s", stack);
    struct kp_profile *p = read_text(text);
    assert_non_null(p);
    assert_string_equal(p->installed, "torch,leaky");
    const char *shown = viewed(p);
    assert_non_null(strstr(shown, "        your line: step at train.py:6\n        remember at leaky/__init__.py:4 in"));
    kp_profile_close(p);
    snprintf(text, sizeof text, "v 10400 2\n%s", stack); /* of kprof until now */
    p = read_text(text);
    assert_non_null(p);
    assert_non_null(strstr(viewed(p), "        your line: remember at leaky/__init__.py:4\n"));
    kp_profile_close(p);
}

static void the_flame_graph_has_the_same_stacks(void **state)
{
    struct kp_profile *p = read_text(HEAD MOVES);
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    (void)state;
    kp_profile_flame(p, out, KP_BY_PEAK, "peak");
    fclose(out);
    assert_non_null(strstr(text, "<svg"));
    assert_non_null(strstr(text, "g,h"));
    assert_null(strstr(text, "no call stack")); /* not there at the peak */
    free(text);
    kp_profile_close(p);
}

static void what_heaptrack_gets_is_read_again_as_the_same(void **state)
{
    struct kp_profile *p = read_text(HEAD MOVES), *again;
    char copy[4096];
    (void)state;
    snprintf(copy, sizeof copy, "%s/y.heap.gz", kp_test_tmpdir());
    FILE *out = fopen(copy, "w");
    assert_int_equal(kp_profile_heaptrack(p, out, &FILE_AT(path), why, sizeof why), 0);
    fclose(out);
    assert_int_equal(kp_profile_read(&again, &FILE_AT(copy), copy, why, sizeof why), 0);
    assert_memory_equal(&again->total, &p->total, sizeof p->total);
    assert_memory_equal(again->sites, p->sites, p->sites_n * sizeof *p->sites);
    assert_string_equal(written(again, KP_BY_PEAK), "main;f 10\nmain;f;g,h 100\n");
    assert_string_equal(again->program, "prog");
    kp_profile_close(again);
    kp_profile_close(p);
}

static void heaptracks_sized_texts_are_read(void **state)
{
    struct kp_profile *p = read_text("v 10500 3\ns 4 a b \ni 1 1\nS leak\nR 5\nt 1 0\na 1 1\n+ 0\n");
    (void)state;
    assert_non_null(p);
    assert_string_equal(kp_profile_text(p, 1), "a b ");
    assert_int_equal(p->total.live_bytes, 1);
    kp_profile_close(p);
}

static void numbers_that_lead_nowhere_end_the_reading(void **state)
{
    static const char *const bad[] = {"",
                                      "s x\n",
                                      "{\"traceEvents\": []}\n",
                                      "v 10400 9\n",
                                      HEAD "+ 4\n",
                                      HEAD "- 0\n",
                                      HEAD "- \n",
                                      HEAD "t 1 9\n",
                                      HEAD "t 0 1\n",
                                      HEAD "t 5 1\n",
                                      HEAD "a 1 9\n",
                                      HEAD "i 1 9\n",
                                      HEAD "i 1 1 9 0 0\n",
                                      "v 10400 2\nx /bin/true\n"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(read_text(bad[i]));
        assert_true(strlen(why) > 0);
    }
}

static void a_profile_is_found_beside_its_trace(void **state)
{
    char found[4096], trace[4096];
    (void)state;
    kp_profile_close(read_text(HEAD));
    snprintf(trace, sizeof trace, "%s/x.pt.trace.json.gz", kp_test_tmpdir());
    assert_true(kp_profile_find(found, sizeof found, trace));
    assert_string_equal(found, path);
    snprintf(trace, sizeof trace, "%s/z.pt.trace.json", kp_test_tmpdir());
    assert_false(kp_profile_find(found, sizeof found, trace));
    assert_true(kp_profile_find(found, sizeof found, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_played),
        cmocka_unit_test(a_profile_without_a_place_has_no_line_of_its_own),
        cmocka_unit_test(each_step_has_what_it_left),
        cmocka_unit_test(what_the_last_step_found_was_kept),
        cmocka_unit_test(no_step_begins_while_python_ends),
        cmocka_unit_test(what_is_there_when_python_ends_was_kept),
        cmocka_unit_test(stacks_are_folded_by_each_measure),
        cmocka_unit_test(arenas_are_no_blocks),
        cmocka_unit_test(the_start_up_is_one_row_behind_what_steps_left),
        cmocka_unit_test(what_comes_behind_the_last_step_is_not_the_last),
        cmocka_unit_test(two_steps_have_no_growth_to_tell),
        cmocka_unit_test(the_largest_leak_is_the_first_row_and_the_rest_has_a_sum),
        cmocka_unit_test(arenas_that_did_not_grow_are_one_line_behind_the_leaks),
        cmocka_unit_test(calls_of_the_interpreter_are_folded),
        cmocka_unit_test(folded_stacks_leave_out_what_lines_of_python_stand_for),
        cmocka_unit_test(the_programs_own_line_is_the_callers_of_an_installed_package),
        cmocka_unit_test(the_flame_graph_has_the_same_stacks),
        cmocka_unit_test(what_heaptrack_gets_is_read_again_as_the_same),
        cmocka_unit_test(heaptracks_sized_texts_are_read),
        cmocka_unit_test(numbers_that_lead_nowhere_end_the_reading),
        cmocka_unit_test(a_profile_is_found_beside_its_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
