// SPDX-License-Identifier: Apache-2.0
/* test_memview.c - blocks of memory: what for, the peak, what stays from step to step, on traces written by hand */
#include "export/answers/memory/memblocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"
#include "test/support/kineto_text.h"

struct world {
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_memview view;
    char json[32768];
    size_t used;
    const char *keys; /* members behind the events */
};

static void add(struct world *w, const char *cat, const char *name, int tid, int ts, int dur, const char *args)
{
    w->used += (size_t)snprintf(
        w->json + w->used, sizeof w->json - w->used,
        "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{%s}}",
        w->used ? "," : "", cat, name, tid, ts, dur, args);
}

static void op(struct world *w, const char *name, int ts, int dur) { add(w, "cpu_op", name, 1, ts, dur, ""); }

static void op_with(struct world *w, const char *name, int ts, int dur, const char *args)
{
    add(w, "cpu_op", name, 1, ts, dur, args);
}

static void range(struct world *w, const char *name, int ts, int dur)
{
    add(w, "user_annotation", name, 1, ts, dur, "");
}

/* A node of autograd with its op inside, one microsecond further in at each end. */
static void node(struct world *w, const char *name, int seq, int ts, int dur)
{
    char args[64], engine[128];
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", seq);
    snprintf(engine, sizeof engine, "autograd::engine::evaluate_function: %s", name);
    op_with(w, engine, ts, dur, args);
    op_with(w, name, ts + 1, dur - 2, args);
}

static void memory_at(struct world *w, int type, int device, int ts, long address, long bytes, long allocated)
{
    w->used += (size_t)snprintf(
        w->json + w->used, sizeof w->json - w->used,
        ",{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%d,"
        "\"args\":{\"Total Reserved\":0,\"Total Allocated\":%ld,\"Bytes\":%ld,\"Device Id\":%d,\"Device Type\":%d,"
        "\"Addr\":%ld,\"finished\":false}}",
        ts, allocated, bytes, device, type, address);
}

static void memory(struct world *w, int ts, long address, long bytes) { memory_at(w, 0, -1, ts, address, bytes, 0); }

static void build(struct world *w)
{
    static char text[33000];
    char why[256];
    snprintf(text, sizeof text, "{\"profile_memory\":1,\"traceEvents\":[%s]%s}", w->json, w->keys ? w->keys : "");
    assert_int_equal(kineto_text_read(&w->trace, text, strlen(text), false, why, sizeof why), 0);
    assert_int_equal(kp_tree_build(&w->tree, w->trace), 0);
    assert_int_equal(kp_memview_build(&w->view, &w->tree), 0);
}

/* The category of the block that was taken at a microsecond. */
static const char *taken(const struct world *w, int ts)
{
    for (size_t i = 0; i < w->view.block_count; i++)
        if (w->view.blocks[i].from_ns == ts * INT64_C(1000)) return kp_mem_category_name(w->view.blocks[i].category);
    return "no such block";
}

/* The category of the block of before the window that went at a microsecond. */
static const char *gone(const struct world *w, int ts)
{
    for (size_t i = 0; i < w->view.block_count; i++)
        if (w->view.blocks[i].from_ns == INT64_MIN && w->view.blocks[i].to_ns == ts * INT64_C(1000))
            return kp_mem_category_name(w->view.blocks[i].category);
    return "no such block";
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct world));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;
    kp_memview_fini(&w->view);
    kp_tree_fini(&w->tree);
    kp_kineto_close(w->trace);
    free(w);
    return 0;
}

static const char with_seq[] = "\"Sequence number\":7", with_later_seq[] = "\"Sequence number\":8";

/* One step of a training, 1000 microseconds from `t` on; addresses from `at` on. */
static void step(struct world *w, int number, int t, long at, const char *seq, int seq_number)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    range(w, name, t, 1000);
    op(w, "aten::randn", t + 10, 20);
    memory(w, t + 15, at + 16, 100); /* the batch */
    op_with(w, "aten::linear", t + 100, 50, seq);
    op_with(w, "aten::addmm", t + 110, 30, seq);
    memory(w, t + 115, at + 32, 200); /* the output */
    memory(w, t + 120, at + 48, 10);  /* and something in between */
    memory(w, t + 125, at + 48, -10);
    op(w, "aten::ones_like", t + 160, 10);
    memory(w, t + 165, at + 64, 4); /* where backward begins */
    node(w, "AddmmBackward0", seq_number, t + 200, 100);
    op(w, "aten::mm", t + 210, 20);
    memory(w, t + 215, at + 80, 50); /* a gradient */
    op(w, "aten::mm", t + 240, 20);
    memory(w, t + 245, at + 96, 60); /* what autograd hands on */
    memory(w, t + 290, at + 32, -200);
    node(w, "torch::autograd::AccumulateGrad", seq_number - 1, t + 310, 20);
    memory(w, t + 325, at + 96, -60);
    memory(w, t + 340, at + 64, -4);
    range(w, "Optimizer.step#Adam.step", t + 400, 100);
    op(w, "aten::zeros_like", t + 410, 10);
    memory(w, t + 415, at + 112, 50); /* its state */
    op(w, "aten::sqrt", t + 430, 10);
    memory(w, t + 435, at + 128, 50); /* what it needs for a moment */
    memory(w, t + 445, at + 128, -50);
    op(w, "aten::full", t + 600, 10);
    memory(w, t + 605, at + 144, 1000); /* nobody knows what for */
    memory(w, t + 700, at + 80, -50);
    memory(w, t + 1020, at + 16, -100);
}

static void a_step_of_a_training_has_torchs_categories(void **state)
{
    struct world *w = *state;
    step(w, 3, 1000, 1000, with_seq, 7);
    build(w);
    assert_string_equal(taken(w, 1015), "Input");
    assert_string_equal(taken(w, 1115), "Activation");
    assert_string_equal(taken(w, 1120), "Temporary");
    assert_string_equal(taken(w, 1165), "Activation");
    assert_string_equal(taken(w, 1215), "Gradient");
    assert_string_equal(taken(w, 1245), "Autograd detail");
    assert_string_equal(taken(w, 1415), "Optimizer state");
    assert_string_equal(taken(w, 1435), "Temporary");
    assert_string_equal(taken(w, 1605), "Unknown");
}

static void what_is_there_before_and_has_a_gradient_of_its_size_is_a_parameter(void **state)
{
    struct world *w = *state;
    op(w, "aten::empty", 10, 10);
    memory(w, 12, 16, 50); /* as large as the gradient */
    memory(w, 14, 32, 50); /* so is this, but there was one gradient */
    memory(w, 16, 48, 70);
    step(w, 3, 1000, 1000, with_seq, 7);
    build(w);
    assert_string_equal(taken(w, 12), "Parameter");
    assert_string_equal(taken(w, 14), "Unknown");
    assert_string_equal(taken(w, 16), "Unknown");
}

/* The batch of the first step may be as large as a gradient, too. */
static void what_goes_before_the_last_backward_pass_is_no_parameter(void **state)
{
    struct world *w = *state;
    op(w, "aten::empty", 1004, 4);
    memory(w, 1005, 16, 50); /* as large as the gradients: labels */
    memory(w, 1006, 32, 50);
    step(w, 3, 1000, 1000, with_seq, 7);
    memory(w, 2001, 16, -50);
    step(w, 4, 2000, 2000, with_later_seq, 8);
    build(w);
    assert_string_equal(taken(w, 1005), "Input");
    assert_string_equal(taken(w, 1006), "Parameter");
}

/* zero_grad() in the first step of a window frees the gradients of the step before. */
static void what_goes_before_a_gradient_of_its_size_comes_is_an_older_gradient(void **state)
{
    struct world *w = *state;
    range(w, "ProfilerStep#3", 1000, 10);
    memory(w, 1002, 16, -50);
    memory(w, 1003, 32, -50); /* there is one gradient of this size */
    memory(w, 1004, 48, -70); /* and none of this */
    memory(w, 1350, 64, -50); /* it was there when that came */
    step(w, 4, 1010, 2000, with_seq, 7);
    step(w, 5, 3000, 3000, with_later_seq, 8);
    build(w);
    assert_string_equal(gone(w, 1002), "Gradient");
    assert_string_equal(gone(w, 1003), "Before recording");
    assert_string_equal(gone(w, 1004), "Before recording");
    assert_string_equal(gone(w, 1350), "Before recording");
}

static void a_few_blocks_of_a_gradients_size_are_none(void **state)
{
    struct world *w = *state;
    range(w, "ProfilerStep#3", 890, 100);
    memory(w, 900, 16, -50);
    step(w, 4, 1000, 2000, with_seq, 7);
    memory(w, 1216, 4096, 5000); /* another gradient, of which the step before left none */
    memory(w, 1900, 4096, -5000);
    build(w);
    assert_string_equal(taken(w, 1216), "Gradient");
    assert_string_equal(gone(w, 900), "Before recording");
}

static void without_a_backward_pass_only_temporaries_are_told(void **state)
{
    struct world *w = *state;
    op_with(w, "aten::linear", 100, 50, with_seq);
    memory(w, 110, 16, 100);
    memory(w, 120, 32, 100);
    memory(w, 130, 32, -100);
    build(w);
    assert_string_equal(taken(w, 110), "Unknown");
    assert_string_equal(taken(w, 120), "Temporary");
}

static void a_model_called_by_its_optimizer_has_activations(void **state)
{
    struct world *w = *state;
    range(w, "Optimizer.step#LBFGS.step", 50, 500);
    op_with(w, "aten::linear", 100, 50, with_seq);
    memory(w, 110, 16, 100);
    node(w, "AddmmBackward0", 7, 200, 100);
    memory(w, 250, 16, -100);
    op(w, "aten::clone", 400, 20);
    memory(w, 410, 32, 100);
    memory(w, 600, 16, 1);
    build(w);
    assert_string_equal(taken(w, 110), "Activation");
    assert_string_equal(taken(w, 410), "Optimizer state");
}

/* Lightning: the batch is fetched before the optimizer's step, which calls the model. */
static void a_batch_of_a_model_called_by_its_optimizer_is_an_input(void **state)
{
    struct world *w = *state;
    range(w, "ProfilerStep#3", 0, 1000);
    op(w, "aten::stack", 10, 20);
    memory(w, 15, 16, 100);
    range(w, "Optimizer.step#Adam.step", 50, 500);
    op_with(w, "aten::linear", 100, 50, with_seq);
    memory(w, 110, 32, 100);
    node(w, "AddmmBackward0", 7, 200, 100);
    memory(w, 250, 32, -100);
    memory(w, 600, 16, -100);
    build(w);
    assert_string_equal(taken(w, 15), "Input");
}

/* accelerate: the loader has the next step's batch ready, and the program holds a batch until it has the one after. */
static void a_batch_fetched_a_step_ahead_is_an_input_and_what_stays_longer_is_not(void **state)
{
    struct world *w = *state;
    op(w, "aten::stack", 1004, 5);
    memory(w, 1006, 16, 700);
    memory(w, 1007, 32, 700);
    step(w, 3, 1000, 1000, with_seq, 7);
    step(w, 4, 2000, 2000, with_later_seq, 8);
    step(w, 5, 3000, 3000, "\"Sequence number\":9", 9);
    memory(w, 3002, 16, -700);
    step(w, 6, 4000, 4000, "\"Sequence number\":10", 10);
    memory(w, 4002, 32, -700);
    build(w);
    assert_string_equal(taken(w, 1006), "Input");
    assert_string_equal(taken(w, 1007), "Unknown");
}

/* With Python calls recorded, the range of an optimizer ends inside the call of __exit__, and so does the step. */
static void a_step_that_begins_inside_a_call_that_outlives_the_optimizer_is_not_in_it(void **state)
{
    struct world *w = *state;
    range(w, "Optimizer.step#AdamW.step", 0, 50);
    add(w, "python_function", "torch/autograd/profiler.py(955): __exit__", 1, 40, 20, "");
    step(w, 3, 50, 1000, with_seq, 7);
    range(w, "ProfilerStep#4", 1050, 1000);
    build(w);
    assert_string_equal(taken(w, 165), "Activation");
    assert_string_equal(taken(w, 655), "Unknown");
    assert_string_equal(taken(w, 465), "Optimizer state");
}

/* On a GPU nothing else runs on autograd's thread: only the numbers tell where a pass ends. */
static void a_second_pass_begins_where_the_numbers_rise(void **state)
{
    struct world *w = *state;
    node(w, "AddmmBackward0", 7, 200, 50);
    memory(w, 210, 16, 100);
    node(w, "TBackward0", 6, 260, 30);
    memory(w, 270, 32, 100);
    node(w, "AddmmBackward0", 9, 300, 50);
    memory(w, 310, 16, -100);
    memory(w, 320, 32, -100);
    build(w);
    assert_int_equal(w->view.pass_count, 2);
    assert_string_equal(taken(w, 210), "Gradient");
    assert_string_equal(taken(w, 270), "Gradient");
}

static void blocks_of_before_count_from_the_beginning(void **state)
{
    struct world *w = *state;
    op(w, "aten::mul", 10, 100);
    memory_at(w, 1, 0, 20, 512, 100, 1100);  /* a thousand were there */
    memory_at(w, 1, 0, 30, 1024, -400, 700); /* of which these go */
    memory_at(w, 1, 1, 40, 512, 64, 64);
    memory(w, 50, 16, 5);
    build(w);
    assert_int_equal(w->view.device_count, 3);
    assert_string_equal(w->view.devices[0].name, "CPU");
    assert_string_equal(w->view.devices[2].name, "GPU 1");
    struct kp_mem_curve c;
    kp_mem_curve_build(&c, &w->view, 1, w->view.begin_ns, w->view.end_ns);
    assert_int_equal(c.begin.total, 1000);
    assert_int_equal(c.begin.of[KP_MEM_BEFORE], 1000);
    assert_int_equal(c.peak.total, 1100);
    assert_int_equal(c.peak_ns, 20000);
    assert_int_equal(c.end.total, 700);
    kp_mem_curve_fini(&c);
    kp_mem_curve_build(&c, &w->view, 2, w->view.begin_ns, w->view.end_ns);
    assert_int_equal(c.begin.total, 0);
    assert_int_equal(c.peak.total, 64);
    kp_mem_curve_fini(&c);
}

static void an_address_taken_twice_ends_the_first_block(void **state)
{
    struct world *w = *state;
    op(w, "aten::mul", 10, 100);
    memory(w, 20, 16, 100);
    memory(w, 30, 16, 70);
    memory(w, 40, 16, -70);
    build(w);
    struct kp_mem_curve c;
    kp_mem_curve_build(&c, &w->view, 0, w->view.begin_ns, w->view.end_ns);
    assert_int_equal(c.peak.total, 100);
    assert_int_equal(c.end.total, 0);
    kp_mem_curve_fini(&c);
}

static void the_peak_is_told_by_op(void **state)
{
    struct world *w = *state;
    struct kp_mem_groups g;
    op(w, "aten::linear", 10, 50);
    op(w, "aten::addmm", 20, 30);
    memory(w, 25, 16, 100);
    memory(w, 26, 32, 100);
    op(w, "aten::relu", 100, 10);
    memory(w, 105, 48, 150);
    memory(w, 120, 16, -100);
    memory(w, 130, 64, 40); /* outside any op */
    build(w);
    kp_mem_groups_live(&g, &w->view, 0, 105000);
    assert_int_equal(g.count, 2);
    assert_string_equal(kp_kineto_text(w->trace, g.rows[0].op), "aten::addmm");
    assert_string_equal(kp_kineto_text(w->trace, g.rows[0].top), "aten::linear");
    assert_int_equal(g.rows[0].bytes, 200);
    assert_int_equal(g.rows[0].count, 2);
    assert_string_equal(kp_kineto_text(w->trace, g.rows[1].op), "aten::relu");
    kp_mem_groups_fini(&g);
    kp_mem_groups_live(&g, &w->view, 0, 130000);
    assert_int_equal(g.rows[2].op, 0);
    kp_mem_groups_fini(&g);
}

static void what_each_step_leaves_behind_grows_and_what_the_last_leaves_does_not(void **state)
{
    struct world *w = *state;
    struct kp_mem_groups g;
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i + 2);
        range(w, name, 1000 * i, 990);
        op(w, "aten::full", 1000 * i + 10, 10);
        memory(w, 1000 * i + 15, 16 * (i + 1), 100);
        op(w, "aten::clone", 1000 * i + 30, 10);
        memory(w, 1000 * i + 35, 4096, 7);
        if (i < 3) memory(w, 1000 * i + 900, 4096, -7);
    }
    op(w, "aten::ones", 500, 10);
    memory(w, 505, 8192, 5000); /* once is no leak, however large */
    build(w);
    kp_mem_groups_leaks(&g, &w->view, 0);
    assert_int_equal(g.count, 1);
    assert_string_equal(kp_kineto_text(w->trace, g.rows[0].op), "aten::full");
    assert_int_equal(g.rows[0].bytes, 300);
    assert_int_equal(g.rows[0].steps, 3);
    assert_int_equal(w->view.steps[g.rows[0].first_step].number, 2);
    kp_mem_groups_fini(&g);
}

static void without_marks_steps_end_with_the_optimizers(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++) {
        op(w, "aten::full", 1000 * i + 10, 10);
        memory(w, 1000 * i + 15, 16 * (i + 1), 100);
        range(w, "Optimizer.step#SGD.step", 1000 * i + 500, 100);
    }
    build(w);
    assert_int_equal(w->view.step_count, 3);
    assert_string_equal(w->view.step_source, "Optimizer.step");
    assert_int_equal(w->view.blocks[2].step, 2);
}

static char *shown(const struct world *w, void (*write)(FILE *, const struct kp_memview *, const struct kp_mem_show *))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    const struct kp_mem_show show = {
        .device = -1, .row_limit = 10, .from_ns = w->view.begin_ns, .to_ns = w->view.end_ns, .label = "a <b> & \"c\""};
    write(out, &w->view, &show);
    fclose(out);
    return text;
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++) n++;
    return n;
}

static void the_drawing_stands_alone(void **state)
{
    struct world *w = *state;
    step(w, 3, 1000, 1000, with_seq, 7);
    step(w, 4, 3000, 5000, with_later_seq, 8);
    build(w);
    char *svg = shown(w, kp_memsvg_write);
    assert_non_null(strstr(svg, "a &lt;b&gt; &amp; &quot;c&quot;"));
    assert_non_null(strstr(svg, ">CPU: peak "));
    assert_non_null(strstr(svg, "\"steps\":[[3,"));
    assert_int_equal(count_of(svg, "http"), 2); /* the name of SVG itself, in the file and in its script */
    assert_null(strstr(svg, "href"));
    assert_null(strstr(svg, "nan"));
    free(svg);
}

static void a_single_step_and_a_single_block_are_told_as_one(void **state)
{
    struct world *w = *state;
    range(w, "ProfilerStep#5", 0, 990);
    op(w, "aten::full", 10, 10);
    memory(w, 15, 16, -1000);
    build(w);
    struct kp_mem_show show = {.device = -1,
                               .row_limit = 10,
                               .is_part = true,
                               .first_step = 5,
                               .last_step = 5,
                               .to_ns = w->view.end_ns,
                               .label = "a"};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    kp_memtable_write(out, &w->view, &show);
    kp_mempage_write(out, &w->view, &show, NULL);
    fclose(out);
    assert_memory_equal(text, "Step 5: ", 8);
    assert_non_null(strstr(text, "1 block recorded"));
    assert_non_null(strstr(text, "Growth from step to step is unknown: "));
    assert_non_null(strstr(text, "  Before recording: "));
    assert_non_null(strstr(text, "<p>Shown: step 5, "));
    assert_non_null(strstr(text, "; 1 block recorded"));
    free(text);
}

static void page(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show)
{
    kp_mempage_write(out, view, show, "title:\n    a site\n        a <frame>\n");
}

static void the_page_stands_alone_and_names_what_occurs(void **state)
{
    struct world *w = *state;
    step(w, 3, 1000, 1000, with_seq, 7);
    step(w, 4, 3000, 5000, with_later_seq, 8);
    build(w);
    char *html = shown(w, page);
    assert_non_null(strstr(html, "<title>Memory: a &lt;b&gt; &amp; &quot;c&quot;</title>"));
    assert_non_null(strstr(html, "Live at the peak, by op"));
    assert_non_null(strstr(html, KP_MEM_BEFORE_MISSING));
    assert_non_null(strstr(html, "default-src 'none'"));
    assert_non_null(strstr(html, "<h3>title:</h3>\n<details><summary>a site</summary>\n<div>a &lt;frame&gt;</div>\n"));
    assert_int_equal(count_of(html, "http"), 2); /* http-equiv; the name of SVG, which nobody fetches */
    assert_null(strstr(html, "<pre"));
    assert_null(strstr(html, "nan"));
    free(html);
}

static const char before_keys[] = ",\"kprof_memory_before\":\"50x3 7x1 \",\"kprof_memory_freed\":\"1020.000:1000 \"";

/* Three of a gradient's size: the parameter, and two tensors of its optimizer. */
static void blocks_of_before_are_parameters_state_or_older(void **state)
{
    struct world *w = *state;
    struct kp_mem_curve c;
    w->keys = before_keys;
    step(w, 3, 1000, 1000, with_seq, 7);
    build(w);
    assert_true(w->view.devices[0].knows_before);
    kp_mem_curve_build(&c, &w->view, 0, w->view.begin_ns, w->view.end_ns);
    assert_int_equal(c.begin.total, 1157);
    assert_int_equal(c.begin.of[KP_MEM_PARAMETER], 50);
    assert_int_equal(c.begin.of[KP_MEM_OPTIMIZER], 100);
    assert_int_equal(c.begin.of[KP_MEM_BEFORE], 1007);
    assert_int_equal(c.end.of[KP_MEM_BEFORE], 7);
    assert_int_equal(c.peak.total, 157 + 100 + 50 + 50 + 1000); /* when what nobody knows is there */
    kp_mem_curve_fini(&c);
}

/* Momentum keeps one tensor for each parameter. Batch norm's running mean and variance have a parameter's size, too. */
static void a_step_of_momentum(struct world *w, const char *keys, struct kp_mem_curve *c)
{
    w->keys = keys;
    range(w, "ProfilerStep#3", 1000, 1000);
    op_with(w, "aten::linear", 1100, 50, with_seq);
    memory(w, 1110, 32, 8);
    node(w, "AddmmBackward0", 7, 1200, 100);
    memory(w, 1210, 48, 400);
    memory(w, 1220, 64, 50);
    range(w, "Optimizer.step#SGD.step", 1400, 100);
    build(w);
    kp_mem_curve_build(c, &w->view, 0, w->view.begin_ns, w->view.end_ns);
}

static void buffers_of_a_parameters_size_are_no_state(void **state)
{
    struct world *w = *state;
    struct kp_mem_curve c;
    a_step_of_momentum(w, ",\"kprof_memory_before\":\"400x2 50x4 4x1 \",\"kprof_memory_freed\":\"\"", &c);
    assert_int_equal(c.begin.of[KP_MEM_PARAMETER], 450);
    assert_int_equal(c.begin.of[KP_MEM_OPTIMIZER], 450);
    assert_int_equal(c.begin.of[KP_MEM_BEFORE], 104); /* the buffers, and a float: there are two parameters */
    kp_mem_curve_fini(&c);
}

static void a_float_for_each_parameter_counts_the_optimizers_steps(void **state)
{
    struct world *w = *state;
    struct kp_mem_curve c;
    a_step_of_momentum(w, ",\"kprof_memory_before\":\"400x3 50x3 4x3 \",\"kprof_memory_freed\":\"\"", &c);
    assert_int_equal(c.begin.of[KP_MEM_PARAMETER], 450);
    assert_int_equal(c.begin.of[KP_MEM_OPTIMIZER], 900 + 8);
    assert_int_equal(c.begin.of[KP_MEM_BEFORE], 4);
    kp_mem_curve_fini(&c);
}

static void a_trace_with_nothing_before_says_that_it_knows(void **state)
{
    struct world *w = *state;
    w->keys = ",\"kprof_memory_before\":\"\",\"kprof_memory_freed\":\"\"";
    op(w, "aten::mul", 10, 100);
    memory(w, 20, 16, 100);
    build(w);
    assert_true(w->view.devices[0].knows_before);
    assert_int_equal(w->view.block_count, 1);
}

static void damaged_keys_add_nothing(void **state)
{
    struct world *w = *state;
    w->keys = ",\"kprof_memory_before\":\"-5x3 \",\"kprof_memory_freed\":\"12.5;100 \"";
    op(w, "aten::mul", 10, 100);
    memory(w, 20, 16, 100);
    build(w);
    assert_int_equal(w->view.block_count, 1);
}

/* Labels of the size of a bias, in a window of one step that did not see the model made. */
static void a_label_as_large_as_one_of_many_gradients_is_no_parameter(void **state)
{
    struct world *w = *state;
    op(w, "aten::cat", 1004, 4);
    memory(w, 1005, 16, 4);
    range(w, "ProfilerStep#3", 1000, 1000);
    op_with(w, "aten::linear", 1100, 50, with_seq);
    memory(w, 1110, 32, 8);
    node(w, "AddmmBackward0", 7, 1200, 100);
    memory(w, 1210, 48, 400);
    memory(w, 1220, 64, 4);
    build(w);
    assert_string_equal(taken(w, 1210), "Gradient");
    assert_string_equal(taken(w, 1005), "Input");
}

static void torchs_raw_timeline(void **state)
{
    struct world *w = *state;
    char *text = NULL;
    size_t bytes = 0;
    op(w, "aten::mul", 10, 100);
    memory(w, 20, 16, 100);
    memory(w, 30, 32, -40);
    memory(w, 40, 16, -100);
    build(w);
    FILE *out = open_memstream(&text, &bytes);
    kp_memjson_raw(out, &w->view, 0);
    fclose(out);
    assert_string_equal(text, "[[-1, 1, 40, 7], [20000, 2, 100, 3], [30000, 4, -40, 7], [40000, 4, -100, 3]]\n");
    free(text);
}

static void a_trace_without_memory_says_so(void **state)
{
    struct world *w = *state;
    char why[256];
    static const char text[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}]}";
    assert_int_equal(kineto_text_read(&w->trace, text, strlen(text), false, why, sizeof why), 0);
    assert_int_equal(kp_tree_build(&w->tree, w->trace), 0);
    assert_int_equal(kp_memview_build(&w->view, &w->tree), -ENODATA);
}

static void the_heap_and_the_tensors_are_one_object(void **state)
{
    struct world *w = *state;
    char *text = NULL;
    size_t bytes = 0;
    op(w, "aten::mul", 10, 100);
    memory(w, 20, 16, 100);
    build(w);
    FILE *out = open_memstream(&text, &bytes);
    const struct kp_mem_show show = {.device = -1,
                                     .row_limit = 1,
                                     .from_ns = w->view.begin_ns,
                                     .to_ns = w->view.end_ns,
                                     .label = "t",
                                     .members = "\"kprof_heap\": {}"};
    kp_memjson_write(out, &w->view, &show);
    fclose(out);
    assert_true(strncmp(text, "{\"kprof_heap\": {},\n\"file\":\"t\",", 30) == 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_of_a_training_has_torchs_categories, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_there_before_and_has_a_gradient_of_its_size_is_a_parameter, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_goes_before_the_last_backward_pass_is_no_parameter, setup, teardown),
        cmocka_unit_test_setup_teardown(what_goes_before_a_gradient_of_its_size_comes_is_an_older_gradient, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_few_blocks_of_a_gradients_size_are_none, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_backward_pass_only_temporaries_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_model_called_by_its_optimizer_has_activations, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_of_a_model_called_by_its_optimizer_is_an_input, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_fetched_a_step_ahead_is_an_input_and_what_stays_longer_is_not, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_step_that_begins_inside_a_call_that_outlives_the_optimizer_is_not_in_it,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_second_pass_begins_where_the_numbers_rise, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_of_before_count_from_the_beginning, setup, teardown),
        cmocka_unit_test_setup_teardown(an_address_taken_twice_ends_the_first_block, setup, teardown),
        cmocka_unit_test_setup_teardown(the_peak_is_told_by_op, setup, teardown),
        cmocka_unit_test_setup_teardown(what_each_step_leaves_behind_grows_and_what_the_last_leaves_does_not, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_marks_steps_end_with_the_optimizers, setup, teardown),
        cmocka_unit_test_setup_teardown(the_drawing_stands_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_single_step_and_a_single_block_are_told_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(the_page_stands_alone_and_names_what_occurs, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_of_before_are_parameters_state_or_older, setup, teardown),
        cmocka_unit_test_setup_teardown(buffers_of_a_parameters_size_are_no_state, setup, teardown),
        cmocka_unit_test_setup_teardown(a_float_for_each_parameter_counts_the_optimizers_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_with_nothing_before_says_that_it_knows, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_keys_add_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_label_as_large_as_one_of_many_gradients_is_no_parameter, setup, teardown),
        cmocka_unit_test_setup_teardown(torchs_raw_timeline, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_without_memory_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(the_heap_and_the_tensors_are_one_object, setup, teardown),
    };
    return cmocka_run_group_tests_name("memory of a trace", tests, NULL, NULL);
}
