// SPDX-License-Identifier: Apache-2.0
/* test_namefacts.c - what an event is by its name, and a stack by its frames */
#include "export/read/facts/namefacts.h"

#include "test/support/support.h"

static struct kp_kineto trace;

static uint32_t name(const char *text) { return kp_strings_put(trace.strings, text, strlen(text)); }
static uint32_t facts_of(const char *text) { return kp_namefacts(&trace, name(text)) & ~(uint32_t)KP_NAME_KNOWN; }

static int trace_open(void **state)
{
    (void)state;
    trace = (struct kp_kineto){.strings = kp_strings_open()};
    return 0;
}

static int trace_close(void **state)
{
    (void)state;
    kp_strings_close(trace.strings);
    return 0;
}

static void a_name_has_its_facts(void **state)
{
    static const struct {
        const char *name;
        uint32_t facts;
    } rows[] = {{"aten::mm", 0},
                {"ProfilerStep#7", KP_NAME_STEP},
                {"Optimizer.step#SGD.step", KP_NAME_OPTIMIZER},
                {"enumerate(DataLoader)#_X.__next__", KP_NAME_LOADER},
                {"torch/utils/data/dataloader.py(492): __iter__", KP_NAME_LOADER | KP_NAME_LOADER_START},
                {"torch/utils/data/dataloader.py(109): __iter__", 0}, /* of a sampler */
                {KP_ENGINE_RANGE "MulBackward0", KP_NAME_ENGINE},
                {"_compile.compile_inner (dynamo_timed)", KP_NAME_COMPILES},
                {KP_NAME_GC_RANGE, KP_NAME_COLLECTS},
                {KP_NAME_GC_CALL, KP_NAME_COLLECTS},
                {"data.py(3): __getitem__", KP_NAME_INPUT},
                {"data.py: def collate_fn", 0},
                {"data.py(3): def collate_fn", KP_NAME_INPUT},
                {"data.py(3): collate_fn_not", 0},
                {"<built-in; call>;data.py(3): tokenize;train.py(1): main", KP_NAME_INPUT},
                {"x/PIL/Image.py(9): crop", KP_NAME_INPUT},
                {"x/kornia/augmentation/base.py(239): forward;train.py(1): main", KP_NAME_INPUT},
                {"x/kornia/losses/ssim.py(9): ssim_loss;train.py(1): main", 0},
                {"x/monai/transforms/compose.py(346): __call__", KP_NAME_INPUT},
                {"x/torch_audiomentations/core/composition.py(88): forward", KP_NAME_INPUT},
                {"torch/_tensor_str.py(715): _str;train.py(1): main", KP_NAME_FORMATS},
                {"copy.py(128): deepcopy", KP_NAME_DEEPCOPY},
                {"torch/distributed/distributed_c10d.py(4354): _object_to_tensor",
                 KP_NAME_OBJECTS | KP_PYWAIT_COMM * KP_NAME_PYWAIT},
                {"torch/utils/checkpoint.py(1351): unpack_hook;train.py(1): main", KP_NAME_RECOMPUTES},
                {"torch/nn/parallel/distributed.py(2138): _sync_buffers", KP_NAME_DDP_BUFFERS},
                {"cudaDeviceSynchronize", KP_NAME_WAIT},
                {"ncclDevKernel_AllReduce", KP_NAME_COMM},
                {"c10d::allreduce_", KP_NAME_COMM_OP | KP_NAME_COMM},
                {"gloo:all_reduce", KP_NAME_COLLECTIVE | KP_NAME_COMM}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (facts_of(rows[i].name) != rows[i].facts) fail_msg("%s: %x", rows[i].name, facts_of(rows[i].name));
        assert_int_equal(facts_of(rows[i].name), rows[i].facts); /* as it is kept */
    }
}

static void a_call_that_waits_says_for_what(void **state)
{
    (void)state;
    assert_int_equal(facts_of("<built-in function sleep>") & KP_NAME_IDLE, KP_NAME_IDLE);
    assert_int_equal(kp_namefacts_pywait(&trace, name("<built-in function sleep>")), KP_PYWAIT_SLEEP);
    assert_int_equal(kp_namefacts_pywait(&trace, name("threading.py(320): wait")), KP_PYWAIT_LOCK);
    assert_int_equal(kp_namefacts_pywait(&trace, name("train.py(3): main")), KP_PYWAIT_NONE);
}

static void a_stack_has_the_input_of_each_frame_and_nothing_else(void **state)
{
    (void)state;
    const uint32_t main = name("train.py(1): main"), item = name("data.py(3): __getitem__");
    const uint32_t outer = kp_strings_chain(trace.strings, main, 0);
    const uint32_t inner = kp_strings_chain(trace.strings, item, outer);
    const uint32_t sleeping = kp_strings_chain(trace.strings, name("<built-in function sleep>"), inner);
    assert_int_equal(kp_namefacts(&trace, outer), KP_NAME_KNOWN);
    assert_int_equal(kp_namefacts(&trace, inner), KP_NAME_KNOWN | KP_NAME_INPUT);
    assert_int_equal(kp_namefacts(&trace, sleeping), KP_NAME_KNOWN | KP_NAME_INPUT);
    for (int i = 0; i < 1000; i++) (void)name((char[8]){(char)('a' + i % 26), (char)('a' + i / 26), 0});
    assert_int_equal(kp_namefacts(&trace, inner), KP_NAME_KNOWN | KP_NAME_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_name_has_its_facts, trace_open, trace_close),
        cmocka_unit_test_setup_teardown(a_call_that_waits_says_for_what, trace_open, trace_close),
        cmocka_unit_test_setup_teardown(a_stack_has_the_input_of_each_frame_and_nothing_else, trace_open, trace_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
