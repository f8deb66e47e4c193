// SPDX-License-Identifier: Apache-2.0
/* test_graphs.c - capture, executable graphs, the ids of their work, what breaks a capture */
#include "test/unit/simgpu/sim_test.h"

enum { GLOBAL, OF_THREAD, RELAXED };

static void *stream_new(void)
{
    void *stream;
    CHECK_IS(rt.cudaStreamCreateWithFlags(&stream, 1), 0);
    return stream;
}

static void captured_work_does_not_run_until_the_graph_is_launched_body(void)
{
    void *graph, *exec, *nodes[8];
    size_t count = 0;
    sim_start();
    void *stream = stream_new();
    sim_watch();
    CHECK_IS(rt.cudaStreamBeginCapture(stream, GLOBAL), 0);
    for (int i = 0; i < 3; i++) CHECK_IS(sim_launch(i == 1 ? &stub_b : &stub_a, stream), 0);
    CHECK_IS(rt.cudaStreamEndCapture(stream, &graph), 0);
    CHECK_IS(seen_count, 0);
    CHECK_IS(rt.cudaGraphGetNodes(graph, NULL, &count), 0);
    CHECK_IS(count, 3);
    count = 8;
    CHECK_IS(rt.cudaGraphGetNodes(graph, nodes, &count), 0);
    CHECK_IS(count, 3);
    CHECK(nodes[2] != NULL && nodes[3] == NULL);
    CHECK_IS(rt.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_IS(rt.cudaGraphLaunch(exec, NULL), 0);
    CHECK_IS(seen_count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_IS(seen[i].stream, 7);
        CHECK_IS(seen[i].correlation, seen[0].correlation);
        CHECK_IS(seen[i].graph, seen[0].graph);
        CHECK_IS(seen[i].graph_node, ((uint64_t)seen[0].graph << 32) + 1 + (unsigned)i);
        CHECK_IS(seen[i].source_graph_node, ((uint64_t)seen[0].source_graph << 32) + 1 + (unsigned)i);
        CHECK_IS(seen[i].is_graph_last, i == 2);
        if (i > 0) CHECK(seen[i].start_ns >= seen[i - 1].end_ns);
    }
    CHECK(seen[0].graph != 0 && seen[0].source_graph != seen[0].graph);
    CHECK(strcmp(seen[1].name, "_Z5otherPf") == 0);
    CHECK_IS(rt.cudaGraphLaunch(exec, NULL), 0);
    CHECK(seen[3].start_ns >= seen[2].end_ns);
    CHECK(seen[3].correlation != seen[2].correlation);
    CHECK_IS(seen[3].graph_launch, 2);
    CHECK_IS(rt.cudaGraphExecDestroy(exec), 0);
    CHECK_IS(rt.cudaGraphDestroy(graph), 0);
}
SIM_TEST(captured_work_does_not_run_until_the_graph_is_launched, NULL)

/* a -> (b beside c) -> d */
static void a_side_stream_joins_the_capture_and_its_work_runs_side_by_side_body(void)
{
    void *graph, *exec, *fork_event, *join_event;
    sim_start();
    void *stream = stream_new(), *side = stream_new();
    rt.cudaEventCreate(&fork_event);
    rt.cudaEventCreate(&join_event);
    sim_watch();
    CHECK_IS(rt.cudaStreamBeginCapture(stream, OF_THREAD), 0);
    sim_launch(&stub_a, stream);
    CHECK_IS(rt.cudaEventRecord(fork_event, stream), 0);
    CHECK_IS(rt.cudaStreamWaitEvent(side, fork_event, 0), 0);
    int status = 0;
    CHECK_IS(rt.cudaStreamIsCapturing(side, &status), 0);
    CHECK_IS(status, 1);
    sim_launch(&stub_a, side);
    sim_launch(&stub_a, stream);
    CHECK_IS(rt.cudaEventRecord(join_event, side), 0);
    CHECK_IS(rt.cudaStreamWaitEvent(stream, join_event, 0), 0);
    sim_launch(&stub_a, stream);
    CHECK_IS(rt.cudaStreamEndCapture(stream, &graph), 0);
    CHECK_IS(rt.cudaStreamIsCapturing(side, &status), 0);
    CHECK_IS(status, 0);
    CHECK_IS(rt.cudaEventQuery(fork_event), 907); /* it was never recorded for real */
    CHECK_IS(rt.cudaStreamWaitEvent(side, fork_event, 0), 907);
    CHECK_IS(rt.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_IS(rt.cudaGraphLaunch(exec, stream), 0);
    CHECK_IS(seen_count, 4);
    CHECK(seen[1].start_ns >= seen[0].end_ns && seen[2].start_ns >= seen[0].end_ns);
    CHECK(seen[1].start_ns < seen[2].end_ns && seen[2].start_ns < seen[1].end_ns);
    CHECK(seen[3].start_ns >= seen[1].end_ns && seen[3].start_ns >= seen[2].end_ns);
    CHECK_IS(rt.cudaStreamSynchronize(stream), 0);
    CHECK(now_ns() >= seen[3].end_ns);
}
SIM_TEST(a_side_stream_joins_the_capture_and_its_work_runs_side_by_side, "SIMGPU_RULES=kernel=10000000", NULL)

static void a_side_stream_that_is_left_behind_spoils_the_capture_body(void)
{
    void *graph = &graph, *event;
    sim_start();
    void *stream = stream_new(), *side = stream_new();
    rt.cudaEventCreate(&event);
    rt.cudaStreamBeginCapture(stream, RELAXED);
    sim_launch(&stub_a, stream);
    rt.cudaEventRecord(event, stream);
    rt.cudaStreamWaitEvent(side, event, 0);
    sim_launch(&stub_a, side);
    CHECK_IS(rt.cudaStreamEndCapture(side, &graph), 903);
    CHECK_IS(rt.cudaStreamEndCapture(stream, &graph), 901);
    CHECK(graph == NULL);
    CHECK_IS(sim_launch(&stub_a, side), 0); /* free again */
    rt.cudaStreamBeginCapture(stream, RELAXED);
    sim_launch(&stub_a, stream);
    rt.cudaEventRecord(event, stream);
    rt.cudaStreamWaitEvent(side, event, 0);
    sim_launch(&stub_a, side);
    CHECK_IS(rt.cudaStreamEndCapture(stream, &graph), 904);
}
SIM_TEST(a_side_stream_that_is_left_behind_spoils_the_capture, NULL)

static void what_may_not_happen_beside_a_capture_breaks_it_body(void)
{
    void *graph, *memory;
    sim_start();
    void *stream = stream_new();
    CHECK_IS(rt.cudaStreamBeginCapture(NULL, GLOBAL), 900);
    rt.cudaStreamBeginCapture(stream, GLOBAL);
    CHECK_IS(rt.cudaMalloc(&memory, 4096), 900);
    CHECK_IS(sim_launch(&stub_a, stream), 901);
    CHECK_IS(rt.cudaStreamEndCapture(stream, &graph), 901);
    rt.cudaStreamBeginCapture(stream, RELAXED);
    CHECK_IS(rt.cudaMalloc(&memory, 4096), 0);
    CHECK_IS(rt.cudaStreamSynchronize(stream), 900);
    CHECK_IS(rt.cudaStreamEndCapture(stream, &graph), 901);
    CHECK_IS(rt.cudaStreamEndCapture(stream, &graph), 401);
}
SIM_TEST(what_may_not_happen_beside_a_capture_breaks_it, NULL)

static void a_copy_in_a_graph_copies_each_time_body(void)
{
    char *host, *device;
    void *graph, *exec;
    sim_start();
    void *stream = stream_new();
    rt.cudaMalloc((void **)&device, 64);
    rt.cudaMallocHost((void **)&host, 128);
    rt.cudaStreamBeginCapture(stream, RELAXED);
    CHECK_IS(rt.cudaMemcpyAsync(device, host, 64, 1, stream), 0);
    CHECK_IS(rt.cudaMemcpyAsync(host + 64, device, 64, 2, stream), 0);
    rt.cudaStreamEndCapture(stream, &graph);
    rt.cudaGraphInstantiate(&exec, graph, 0);
    for (char value = 1; value < 4; value++) {
        memset(host, value, 64);
        CHECK_IS(rt.cudaGraphLaunch(exec, stream), 0);
        rt.cudaStreamSynchronize(stream);
        CHECK_IS(host[64], value);
        CHECK_IS(host[127], value);
    }
}
SIM_TEST(a_copy_in_a_graph_copies_each_time, NULL)

static int destroyed;
static void on_destroy(void *thing) { destroyed += *(int *)thing; }

static void a_thing_lives_until_the_last_graph_that_holds_it_body(void)
{
    static int thing = 1;
    void *graph, *exec, *object;
    sim_start();
    void *stream = stream_new();
    rt.cudaStreamBeginCapture(stream, RELAXED);
    sim_launch(&stub_a, stream);
    rt.cudaStreamEndCapture(stream, &graph);
    CHECK_IS(rt.cudaUserObjectCreate(&object, &thing, on_destroy, 1, 1), 0);
    CHECK_IS(rt.cudaGraphRetainUserObject(graph, object, 1, 1), 0); /* moved */
    rt.cudaGraphInstantiate(&exec, graph, 0);
    rt.cudaGraphDestroy(graph);
    CHECK_IS(destroyed, 0);
    rt.cudaGraphExecDestroy(exec);
    CHECK_IS(destroyed, 1);
}
SIM_TEST(a_thing_lives_until_the_last_graph_that_holds_it, NULL)

static void graphs_made_by_hand_run_by_their_edges_body(void)
{
    struct {
        void *function;
        unsigned shape[7];
        void **arguments, **extra;
        void *kernel, *context;
    } kernel = {.shape = {1, 1, 1, 32, 1, 1, 0}};
    void *graph, *child, *exec, *a, *b, *c, *inside;
    sim_start();
    CHECK_IS(rt.cudaSetDevice(0), 0);
    sim_watch();
    kernel.function = core->function("_Z1av");
    CHECK_IS(cu.cuGraphCreate(&graph, 0), 0);
    CHECK_IS(cu.cuGraphCreate(&child, 0), 0);
    CHECK_IS(cu.cuGraphAddKernelNode_v2(&inside, child, NULL, 0, &kernel), 0);
    CHECK_IS(cu.cuGraphAddKernelNode_v2(&a, graph, NULL, 0, &kernel), 0);
    CHECK_IS(cu.cuGraphAddEmptyNode(&b, graph, NULL, 0), 0);
    CHECK_IS(cu.cuGraphAddChildGraphNode(&c, graph, &b, 1, child), 0);
    CHECK_IS(cu.cuGraphAddDependencies(graph, &c, &a, 1), 0); /* the first node waits for the last one */
    CHECK_IS(cu.cuGraphAddKernelNode_v2(&inside, graph, (void *[]){(void *)graph}, 1, &kernel), 1);
    CHECK_IS(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK_IS(cu.cuGraphLaunch(exec, NULL), 0);
    CHECK_IS(seen_count, 2);
    CHECK(seen[0].source_graph_node >> 32 != seen[0].source_graph); /* the child's */
    CHECK(seen[1].start_ns >= seen[0].end_ns);
    CHECK_IS(cu.cuGraphAddDependencies(graph, &a, &c, 1), 0);
    CHECK_IS(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 1); /* a circle */
}
SIM_TEST(graphs_made_by_hand_run_by_their_edges, NULL)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured_work_does_not_run_until_the_graph_is_launched),
        cmocka_unit_test(a_side_stream_joins_the_capture_and_its_work_runs_side_by_side),
        cmocka_unit_test(a_side_stream_that_is_left_behind_spoils_the_capture),
        cmocka_unit_test(what_may_not_happen_beside_a_capture_breaks_it),
        cmocka_unit_test(a_copy_in_a_graph_copies_each_time),
        cmocka_unit_test(a_thing_lives_until_the_last_graph_that_holds_it),
        cmocka_unit_test(graphs_made_by_hand_run_by_their_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
