// SPDX-License-Identifier: Apache-2.0
/* seeds.c - writes what the fuzz targets begin with: seeds FOLDER makes FOLDER/TARGET/... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "collector/format/kp_device.h"
#include "collector/format/kp_heap.h"
#include "collector/format/kp_python.h"
#include "collector/format/kp_stepline.h"
#include "test/fuzz/dense.h"

static const char *folder;

static void put(const char *target, const char *name, const void *data, size_t bytes)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder, target, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file)) {
        perror(path);
        exit(1);
    }
}

/* ---- dense spools ---- */

static uint8_t dense[2048];
static size_t dense_n;

static void add(const void *bytes, size_t n)
{
    memcpy(dense + dense_n, bytes, n);
    dense_n += n;
}
#define ADD(...) add((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void string(const char *text, uint8_t n)
{
    ADD(DENSE_STRING, n);
    add(text, n);
}

static void text(const char *line)
{
    ADD(DENSE_TEXT, (uint8_t)strlen(line));
    add(line, strlen(line));
}

static void names(void)
{
    dense_n = 0;
    string("aten::add", 9);
    string("ProfilerStep#3", 14);
    string("/proc/self/exe\0- 1000 1000 9000", 31);
    string("nn.Module: Linear\0train.py(7): main", 35);
    string("0;train.py(3): main", 19);
    string("_ZN2at4_ops10add_Tensor4callE\0libtorch_cpu.so", 45);
    string("_Z3addPfS_i", 11);
    string("record_param_comms", 18);
    string("autograd::engine::evaluate_function: AddBackward0", 49);
    string("AddBackward0", 12);
}

static void dense_write(void)
{
    names(); /* ops, with numbers, stacks, modules, inputs */
    ADD(DENSE_FRAME, 3, 255, 200, 0, 7, DENSE_FRAME, 3, 0, 201, 1, 2, DENSE_FRAME, 3, 3, 9, DENSE_FRAME, 0, 2, 9);
    for (uint8_t i = 0; i < 6; i++) ADD(DENSE_RECORD, KP_KIND_OP, 0, 1, 3, 130 + i, 30, 1);
    ADD(DENSE_RECORD, KP_KIND_OP, KP_OP_SEQ, 1, 5, 140, 30, 1, 5, 0, DENSE_RECORD, KP_KIND_OP, 0, 9, 3, 150, 40, 2,
        DENSE_RECORD, KP_KIND_OP, KP_OP_SEQ, 10, 5, 151, 20, 2, 5, 1);
    ADD(DENSE_RECORD, KP_KIND_OP, KP_OP_STACK | KP_OP_HANDLE, 1, 5, 160, 10, 1, 77, 5, DENSE_RECORD, KP_KIND_OP,
        KP_OP_STACK | KP_OP_MODULES, 1, 5, 161, 9, 1, 193, 1, 5, 4);
    ADD(DENSE_RECORD, KP_KIND_STEP, 0, 0, 3, 170, 90, 4, DENSE_RECORD, KP_KIND_NVTX, 0, 2, 6, 171, 5, 0, 0, 0, 0);
    put("fuzz_dense", "ops", dense, dense_n);

    names(); /* Python, memory, the heap, calls by name */
    ADD(DENSE_FRAME, 3, 255, 200, 0, 7, DENSE_FRAME, 3, 0, 201, 1, 2);
    ADD(DENSE_RECORD, KP_KIND_PYCALL, KP_PY_MODULE, 4, 6, 130, 90, 1, 2, 0, 0, DENSE_RECORD, KP_KIND_PYCALL, KP_PY_C, 4,
        2, 131, 60);
    ADD(DENSE_RECORD, KP_KIND_MEMORY, 0, 0, 3, 132, 64, 40, DENSE_RECORD, KP_KIND_MEMORY, KP_MEMORY_FREE, 0, 3, 133, 64,
        0);
    ADD(DENSE_RECORD, KP_KIND_MEMORY, KP_MEMORY_TOTALS, 0, 6, 134, 64, 40, 40, 80, 1, DENSE_RECORD, KP_KIND_SYMBOL, 0,
        6, 2, 135, 90, DENSE_RECORD, KP_KIND_SYMBOL, 0, 7, 2, 136, 99);
    ADD(DENSE_CHUNK, 0, 1, 3, DENSE_RECORD, KP_KIND_HEAP, 0, 1, 2, 137, 200, DENSE_RECORD, KP_KIND_HEAP, KP_HEAP_LONG,
        0, 3, 138, 64, 90, DENSE_RECORD, KP_KIND_HEAP, KP_HEAP_FREE, 0, 2, 139, 64);
    put("fuzz_dense", "heap", dense, dense_n);

    names(); /* GPUs */
    ADD(DENSE_CHUNK, 2, 0, 0, DENSE_RECORD, KP_KIND_DEVCLOCK, 0, 0, 4, 130, 200, 0, 9, 5, 0, DENSE_RECORD,
        KP_KIND_DEVCLOCK, 0, 0, 4, 180, 210, 0, 9, 5, 1);
    ADD(DENSE_RECORD, KP_KIND_CONTEXT, 0, 0, 1, 1, DENSE_CHUNK, 1, 1, 9);
    ADD(DENSE_RECORD, KP_KIND_API, KP_DEV_TICKS, 7, 6, 140, 150, 5, 7, 9, 0, DENSE_RECORD, KP_KIND_KERNEL, KP_DEV_TICKS,
        7, 20, 151, 160, 5, 0, 0, 7, 1, 1, 9, 1, 64, 1);
    ADD(DENSE_RECORD, KP_KIND_MEMCPY, KP_DEV_TICKS, 0, 12, 161, 165, 6, 64, 1, DENSE_RECORD, KP_KIND_SYNC, KP_DEV_TICKS,
        0, 8, 166, 169, 9, 2, 3, 7, DENSE_RECORD, KP_KIND_CUDAEVENT, 0, 0, 6, 0, 0, 8, 3);
    ADD(DENSE_CYCLE, 2, 150, 190, 1, DENSE_CLOCK, 180, 190, 20);
    put("fuzz_dense", "gpu", dense, dense_n);

    dense_n = 0;
    text("meta.key=1"), text("meta.key=\"two\""), text("KPROF_METADATA={\"a\":1,\"a\":2}"), text("gpu_note=x"),
        text("env.RANK=3");
    string("\x1b[2J\n\x9b\xff;name", 13);
    ADD(DENSE_RECORD, KP_KIND_OP, 0, 1, 3, 130, 30, 1);
    put("fuzz_dense", "text", dense, dense_n);
}

/* ---- traces ---- */

static void traces_write(void)
{
    static const char events[] =
        "{\"schemaVersion\":1,\"with_flops\":1,\"profile_memory\":1,\"kprof\":{},\"baseTimeNanoseconds\":1000000,"
        "\"traceEvents\":[\n"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":7,\"tid\":8,\"ts\":1,\"dur\":90,"
        "\"args\":{\"External id\":1}},\n"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::conv2d\",\"pid\":7,\"tid\":8,\"ts\":1.5,\"dur\":22.25,"
        "\"args\":{\"External id\":3,\"Sequence number\":4,\"Ev Idx\":9,"
        "\"Input Dims\":[[2,3,4,4],[[1],[2,2]],[]],\"Input type\":[\"float\",\"\",\"Scalar\"],\"Concrete "
        "Inputs\":[\"\",\"[1, 1]\"],\"Call stack\":\"a;b;\"}},\n"
        "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"train.py(3): "
        "main\",\"pid\":7,\"tid\":8,\"ts\":1,\"dur\":80,\"args\":{\"Python id\":1}},\n"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"AddBackward0\",\"pid\":7,\"tid\":9,\"ts\":30,\"dur\":5,\"args\":{"
        "\"Sequence number\":4,\"Fwd thread id\":1}},\n"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":7,\"tid\":8,\"ts\":2,\"dur\":1,"
        "\"args\":{\"External id\":3,\"correlation\":5}},\n"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":4,\"dur\":3,\"args\":{\"External "
        "id\":3,\"correlation\":5}},\n"
        "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":7,\"tid\":8,\"ts\":3,"
        "\"args\":{\"Total Allocated\":64,\"Bytes\":64,\"Device Id\":-1,"
        "\"Device Type\":0,\"Addr\":4096}},\n"
        "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\",\"tid\":\"PyTorch "
        "Profiler\",\"ts\":1,\"dur\":99,\"args\":{\"Op count\":0}}\n  ],\n"
        "  \"kprof_heap\": "
        "{\"mode\":\"trace\",\"allocations\":1,\"bytes\":8,\"live_blocks\":1,\"live_bytes\":8,\"sites\":[{"
        "\"allocations\":1,\"bytes\":8,\"live_blocks\":1,"
        "\"live_bytes\":8,\"peak_blocks\":1,\"peak_bytes\":8,\"stack\":[\"/lib/a+0x10\"]}],\"modules\":[{\"path\":\"/"
        "lib/a\",\"build_id\":\"ab\"}]},\n  \"traceName\": \"t\"}";
    static const char nul[] = "{\"kprof\\u0000AAAA\":1,\"traceEvents\":[{\"ph\":\"X\",\"name\\u0000\":\"\\u001b["
                              "2J\\n\",\"name\":\"\xff\",\"ts\":1e3,\"dur\":-1}]}";
    static const char list[] = "[{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"a\",\"ts\":\"5\",\"dur\":\"1\"}]";
    static const char heap[] = "v 10400 2\nX a\ns /lib/a\n# 1 build ab\ns f\ni 10 1 2 0 0\ni 20 1\nt 1 0\nt 2 1\n"
                               "a 64 2\na 5 0\n+ 0\n- 0\nc a\n+ 1\n+ 0\n";
    uint8_t packed[4096];
    char path[600];
    put("fuzz_trace", "events", events, sizeof events - 1);
    put("fuzz_trace", "nul", nul, sizeof nul - 1);
    put("fuzz_trace", "list", list, sizeof list - 1);
    put("fuzz_trace", "heap", heap, sizeof heap - 1);
    snprintf(path, sizeof path, "%s/packed", folder);
    gzFile gz = gzopen(path, "wb9");
    if (!gz || gzwrite(gz, events, sizeof events - 1) <= 0 || gzclose(gz) != Z_OK) exit(1);
    FILE *file = fopen(path, "rb");
    const size_t n = file ? fread(packed, 1, sizeof packed, file) : 0;
    if (file) fclose(file);
    remove(path);
    put("fuzz_trace", "packed", packed, n);
}

/* Of a job that stands or ended: the first byte cuts what follows in two. */
static void stood_write(void)
{
    static const char hang[] =
        "\xff{\"where\":1,\"event\":\"hang\",\"pid\":42,\"host\":\"a\",\"time_ms\":1000,\"rank\":1,\"size\":2,\"job\":"
        "\"j\","
        "\"step\":3,\"collectives\":[{\"name\":\"gloo:all_reduce\",\"begun\":2,\"ended\":1,\"since_ms\":9}],"
        "\"python\":\"3.11\",\"threads\":[{\"tid\":42,\"name\":\"p\",\"state\":\"S\",\"main\":true,\"call\":\"futex\","
        "\"words\":\"waits\",\"python\":[{\"file\":\"/a/"
        "t.py\",\"line\":7,\"function\":\"f\"}]}],\"left_out\":1,\"ours\":2}";
    static const char error[] =
        "\xff{\"message\":{\"message\":\"ValueError: x\",\"extraInfo\":{\"py_callstack\":\"T\\n  File "
        "\\\"/a/t.py\\\", line 7, in f\\n\",\"timestamp\":\"17\"}}}";
    static const char ends[] = "\xff"
                               "42 11 1795948368706413018\n43 256 1795948368818893234\n";
    struct kp_stephead head = {.magic = KP_STEPLINE_MAGIC,
                               .head_bytes = sizeof head,
                               .line_bytes = sizeof(struct kp_stepline),
                               .pid = 42,
                               .rank = 1,
                               .ranks = 2,
                               .begin_ns = 1,
                               .beat_ns = 2,
                               .host = "a",
                               .script = "t.py",
                               .job = "j"};
    const struct kp_stepline line = {
        .step = 3, .end_ns = 9, .dur_ns = 5, .min_ns = 5, .median_ns = 5, .p99_ns = 5, .max_ns = 5, .count = 1};
    uint8_t steps[1 + sizeof head + sizeof line] = {0xff};
    memcpy(steps + 1, &head, sizeof head);
    memcpy(steps + 1 + sizeof head, &line, sizeof line);
    put("fuzz_stood", "hang", hang, sizeof hang - 1);
    put("fuzz_stood", "error", error, sizeof error - 1);
    put("fuzz_stood", "ends", ends, sizeof ends - 1);
    put("fuzz_stood", "steps", steps, sizeof steps);
}

static const char oom[] =
    "{\"oom\":1,\"event\":\"oom\",\"pid\":7,\"rank\":1,\"step\":3,\"text\":\"cuda:0 ran "
    "out\",\"device\":\"cuda:0\",\"asked\":9,"
    "\"asked_at\":{\"file\":\"a.py\",\"line\":3,\"function\":\"f\",\"category\":\"\"},\"live\":8,\"blocks\":1,"
    "\"allocated\":8,\"reserved\":9,\"limit\":7,\"sites\":[{\"file\":null,\"line\":null,\"function\":null,"
    "\"category\":\"gradients\",\"bytes\":8,\"blocks\":1,\"largest\":8,\"first_step\":1,\"last_step\":2,\"grows\":4}]}";

int main(int argc, char **argv)
{
    static const uint8_t patches[] = {0x10, 3, 64, 0, 9, 2, 70, 0, 255, 1, 100, 0, 7},
                         laid[] = {0x11, 1, 0, 0, 0, 1, 0, 0, 0, 146, 16, 0, 0};
    if (argc != 2) return 2;
    folder = argv[1];
    mkdir(folder, 0777);
    dense_write();
    traces_write();
    stood_write();
    put("fuzz_spool", "patches", patches, sizeof patches);
    put("fuzz_spool", "laid", laid, sizeof laid);
    put("fuzz_json", "text", "\"\\\x1b\xc3\xa4\xff", 7);
    put("fuzz_control", "start", "start steps=3 at=next", 21);
    put("fuzz_control", "toggle", "toggle cuda off", 15);
    put("fuzz_control", "keep", "keep", 4);
    put("fuzz_control", "phase", "phase validate", 14);
    put("fuzz_control", "metadata", "metadata job a value", 20);
    put("fuzz_control", "call", "kprof job 1 id=3 round=1 beat=7 state=2 steps=2 target=40 phase=train", 69);
    put("fuzz_control", "answer", "kprof rank 1 id=3 state=7 step=31 step_us=900 rank=1 size=8 pid=42 host=a", 73);
    put("fuzz_oom", "file", oom, sizeof oom - 1);
    put("fuzz_config", "lines", "KPROF_SCHEDULE=wait=1,warmup=1,active=2\nKPROF_MALLOC=trace\n", 61);
    return 0;
}
