# SPDX-License-Identifier: Apache-2.0
"""Small traces of trainings, most of them on a GPU, each sick in one way, or healthy: SICKNESSES and TWINS, by the id of the finding. A maker returns a Trace whose
`cost` is what the sickness takes of a step: microseconds, or bytes where it is memory. The op that is sick is at the line SICK, the others at WELL."""
import json

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 40 << 30, "computeMajor": 8, "computeMinor": 0, "numSms": 108}
TF32 = "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn"
TO_NHWC = "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)0>"
GEMM, SGEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_nn", "ampere_sgemm_128x64_nn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
STEPS = 4
CALM = {"cores": 4, "busy_threads": 4, "python_gc": "1"}  # of a training on the CPU
SICK, WELL = "train.py(12): sick", "train.py(99): well"


class Trace:
    """Steps of `step` microseconds. Work of the GPU is launched `ahead` microseconds before it begins, by a call in an op."""

    def __init__(self, step=1000, cost=0, **head):
        self.step, self.cost, self.events, self.correlation = step, cost, [], 0
        self.head = {"schemaVersion": 1, "deviceProperties": [A100], "record_shapes": 1, "with_stack": 1, "profile_memory": 1, "kprof": {"python_gc": "1"}, **head}

    def add(self, cat, name, tid, ts, dur, pid=1, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})

    def work(self, name, at, dur, cat="kernel", stream=7, ahead=20, call=4, op="aten::add", shapes=None, line=SICK, **args):
        self.correlation += 1
        where = {"Call stack": line, **({"Input Dims": shapes} if shapes else {})}
        began = at - ahead
        self.add("cpu_op", op, 1, began - 1, call + 2, **where)
        self.add("cuda_runtime", "cudaLaunchKernel", 1, began, call, correlation=self.correlation)
        self.add(cat, name, stream, at, dur, pid=0, device=0, stream=stream, correlation=self.correlation, **args)

    def memory(self, ts, address, size, allocated, reserved):
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
                            "args": {"Addr": address, "Bytes": size, "Device Id": 0, "Device Type": 1, "Total Allocated": allocated,
                                     "Total Reserved": reserved}})

    def each(self, make, steps=STEPS):
        for number in range(steps):
            base = 10000 + number * self.step
            self.add("user_annotation", f"ProfilerStep#{number + 5}", 1, base, self.step)
            make(base)
        return self

    def write(self, path):
        path.write_text(json.dumps({**self.head, "traceEvents": self.events}))
        return path


def usual(trace, base, end, begin=0, name=GEMM, every=90, ahead=110, line=WELL):
    """Kernels that leave no gap up to `end`, each launched in time."""
    at = base + begin
    while at < base + end:
        dur = min(every, base + end - at)
        trace.work(name, at, dur, ahead=ahead, op="aten::mm", line=line, grid=[432, 1, 1], block=[128, 1, 1], **{"blocks per SM": 4.0})
        at += dur


def stalled(host, dur, is_sick=True):
    """What the host does from 400 us on keeps it from launching for `dur` us. In the twin the GPU has enough to do."""
    def make(trace, base):
        usual(trace, base, 400, ahead=200)
        host(trace, base + 400, dur)
        for i, at in enumerate(range(400 + dur, 1000, 90) if is_sick else ()):
            trace.work(GEMM, base + at, min(90, 1000 - at), ahead=8 + 83 * i, op="aten::mm", line=WELL if i else SICK, grid=[432, 1, 1])
        if not is_sick:
            usual(trace, base, 1000, begin=400, ahead=745)
    return make


def loads(trace, at, dur):
    trace.add("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, at - 100, dur + 80, **{"Call stack": SICK})


def samples(trace, at, dur):
    """The sampler draws in the process of the training, before a worker gets the indices."""
    loads(trace, at, dur)
    trace.add("cpu_op", "aten::multinomial", 1, at - 99, dur + 78, **{"Call stack": f"torch/utils/data/dataloader.py(714): _next_index;{SICK}"})


def waits(trace, at, dur):
    trace.add("cpu_op", "aten::item", 1, at - dur + 1, dur + 4, **{"Call stack": SICK})
    trace.add("cuda_runtime", "cudaStreamSynchronize", 1, at - dur + 2, dur + 2)


def allocates(trace, at, dur):
    trace.add("cpu_op", "aten::empty", 1, at - 1, dur - 10, **{"Call stack": SICK})
    trace.add("cuda_runtime", "cudaMalloc", 1, at, dur - 12)


def compiles(trace, at, dur):
    trace.add("user_annotation", "compile_fx_inner (dynamo_timed)", 1, at, dur - 12, **{"Call stack": SICK})


def collects(trace, at, dur):
    trace.add("python_function", "Python GC", 1, at, dur - 12)


def computes(trace, at, dur):
    trace.add("cpu_op", "aten::upsample_bilinear2d", 1, at, dur - 12, **{"Call stack": SICK})


def resizes(dur, ahead=8):
    """The CPU resizes pictures for so long, and then copies them to the GPU, which waits for them or has enough to do."""
    def make(trace, base):
        usual(trace, base, 700 - dur if ahead < 100 else 700, ahead=300)
        trace.add("cpu_op", "aten::upsample_bilinear2d", 1, base + 690 - dur - ahead, dur - 5, **{"Call stack": SICK})
        trace.work("Memcpy HtoD (Pinned -> Device)", base + 700, 20, cat="gpu_memcpy", op="aten::to", ahead=ahead, bytes=4 << 20)
        usual(trace, base, 1000, begin=720, ahead=12)
    return make


def frees(dur, is_sick=True):
    """The host waits at the step's end, and later frees memory of the GPU, which waits for it, too."""
    def make(trace, base):
        usual(trace, base, 400, ahead=200)
        if is_sick:
            trace.add("cpu_op", "aten::empty", 1, base + 330, dur + 62, **{"Call stack": SICK})
            trace.add("cuda_runtime", "cudaFree", 1, base + 332, dur + 50)
        for i, at in enumerate(range(400 + dur, 1000, 90) if is_sick else ()):
            trace.work(GEMM, base + at, min(90, 1000 - at), ahead=8 + 83 * i, op="aten::mm", line=WELL, grid=[432, 1, 1])
        if not is_sick:
            usual(trace, base, 1000, begin=400, ahead=745)
        trace.add("cuda_runtime", "cudaDeviceSynchronize", 1, base + 799, 150)
    return make


def nothing(trace, at, dur):
    pass


def depends(dur):
    """A kernel is launched in time, and begins late."""
    def make(trace, base):
        usual(trace, base, 400)
        trace.work(GEMM, base + 400 + dur, 600 - dur, ahead=200 + dur, op="aten::mm", grid=[432, 1, 1])
    return make


def takes_turns(dur):
    """Twice in a step of 10 ms the GPU does nothing for `dur` us, though the next kernels, others each time, were launched before."""
    def make(trace, base):
        usual(trace, base, 3000)
        for end in (7000, 10000):
            usual(trace, base, end, begin=(end == 10000) * 4000 + 3000 + dur, name=f"{GEMM}_{base % 3}_{end}", ahead=110 + dur)
    return make


def idles(trace, base):
    """Python and a dependency, each too little to be told alone."""
    usual(trace, base, 300)
    trace.work(GEMM, base + 380, 220, ahead=8, op="aten::mm", grid=[432, 1, 1])
    trace.work(GEMM, base + 680, 320, ahead=250, op="aten::mm", grid=[432, 1, 1])


def launches(every):
    """Kernels of 5 us, each launched by an op of 14 us when the one before is over, or in time."""
    def make(trace, base):
        for i in range(1000 // every):
            trace.work("void my_kernel<float>(float*)", base + every * i, 5 if every > 5 else every, ahead=8 if every > 5 else 300, call=12 if every > 5 else 1)
    return make


def reduces(at):
    """A collective of 200 us behind the compute, or beside it."""
    def make(trace, base):
        usual(trace, base, 1000 if at < 800 else 800)
        trace.work("ncclDevKernel_AllReduce_Sum_f32_RING_LL", base + at, 200, stream=20, ahead=300, op="c10d::allreduce_")
    return make


def with_head(make, *, step=1000, cost=0, **head):
    trace = Trace(step, cost, **head)
    return trace.each(lambda base: make(trace, base))


def copies(kind, where, dur, stream=7):
    def make(trace, base):
        trace.work(f"Memcpy HtoD ({kind} -> Device)", base + where, dur, cat="gpu_memcpy", stream=stream, op="aten::copy_", bytes=4 << 20)
        usual(trace, base, 1000, begin=dur if stream == 7 else 0)
    return make


def little_copies(count, size):
    def make(trace, base):
        for i in range(count):
            trace.work("Memcpy HtoD (Pinned -> Device)", base + 10 * i, 2, cat="gpu_memcpy", op="aten::copy_", ahead=6, bytes=size)
        usual(trace, base, 1000, begin=10 * count)
    return make


def queue(count, dur):
    """The host launches in 2 us as long as fewer than 1024 wait, and then as fast as the GPU takes them."""
    trace = Trace(step=count * dur)
    begin, host, began = 10000, 0, []
    for i in range(STEPS * count + 1024):
        at = max(begin + i * dur, host + 2)
        call = max(2, began[i - 1024] - host) if i >= 1024 else 2
        trace.work("void my_kernel<float>(float*)", at, dur, ahead=at - host, call=call)
        trace.cost += (call - 2) / STEPS if begin <= host < begin + STEPS * trace.step else 0
        began.append(at)
        host += call
    return trace.each(lambda base: None)


def blocking(is_set):
    """Kernels of 60 us every 100 us. Where the host does not wait, it is far ahead, and they leave no gap."""
    def make(trace, base):
        for i in range(10):
            if is_set:
                trace.work(GEMM, base + 100 * i + 40, 60, ahead=5, call=66, op="aten::mm")
            else:
                trace.work(GEMM, base + 100 * i, 100, ahead=300, op="aten::mm")
    return make


def occupancy(blocks):
    def make(trace, base):
        usual(trace, base, 500)
        trace.work(GEMM, base + 500, 500, ahead=100, op="aten::mm", **{"blocks per SM": blocks})
    return make


def unstable(times):
    def make(trace, base):
        at = base
        for dur in times:
            trace.work("void my_kernel<float>(float*)", at, dur, ahead=200, grid=[64, 1, 1], block=[128, 1, 1])
            at += dur
        usual(trace, base, 1000, begin=at - base)
    return make


def fused(count, dur):
    def make(trace, base):
        for i in range(count):
            trace.work(ADD, base + i * dur, dur, ahead=300, op="aten::mul", stream=7)
        usual(trace, base, 1000, begin=count * dur)
    return make


def convolves(name, dur):
    def make(trace, base):
        trace.work(name, base, dur, ahead=300, op="aten::conv2d")
        usual(trace, base, 1000, begin=dur, ahead=300)
    return make


def attends(first):
    """Scores of 512 by 512, whose softmax lies between two products; in the twin no product makes them."""
    def make(trace, base):
        scores, softmax = [8, 512, 512], "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>"
        trace.work(GEMM, base, 100, ahead=300, op=first, shapes=[[8, 512, 64], [8, 64, 512]], line=WELL)
        trace.work(ADD, base + 100, 100, ahead=300, op="aten::div", shapes=[scores, []])
        trace.work(softmax, base + 200, 200, ahead=300, op="aten::softmax", shapes=[scores, [], []])
        trace.work(GEMM, base + 400, 100, ahead=300, op="aten::bmm", shapes=[scores, [8, 512, 64]], line=WELL)
        usual(trace, base, 1000, begin=500, ahead=300)
    return make


def small(gap):
    def make(trace, base):
        for i in range(100):
            trace.work("void layer_norm_kernel<float>(float*)", base + 10 * i, 10 - gap, ahead=300, op="aten::layer_norm", stream=7)
    return make


def bandwidth(elements):
    """A kernel of 400 us that reads two tensors and writes one."""
    def make(trace, base):
        usual(trace, base, 600)
        trace.work(ADD, base + 600, 400, ahead=100, op="aten::add", shapes=[[elements], [elements], []], stream=7)
    return make


def tensors(reserved, allocated):
    def make(trace, base):
        usual(trace, base, 1000)
        trace.add("cpu_op", "aten::empty", 1, base + 298, 4, **{"Call stack": SICK})
        trace.memory(base + 300, 7 << 30, 1 << 20, allocated, reserved)
        trace.memory(base + 700, 7 << 30, -(1 << 20), allocated - (1 << 20), reserved)
    return make


def on_cpu(threads, **kprof):
    trace = Trace(kprof={"cores": 4, "busy_threads": threads, "python_gc": "1"} | kprof)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 980)
    return trace.each(make)


def faulting(minor, many, cost, steps=4, major=0, **kprof):
    """Each step takes so many page faults of 1 us each; in `many` of the steps there are many."""
    trace = on_cpu(4, fault_steps=steps, fault_steps_many=many, faults_minor=minor * steps, faults_major=major * steps, fault_ns="1000", **kprof)
    trace.cost = cost
    return trace


def reads(count, of_optimizer=0):
    """Python reads values one by one: 10 us each, and 5 us until the next read. An optimizer of torch reads some of its own."""
    trace = Trace(kprof=CALM, cost=15 * count - 5)  # what follows the last is no read's
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 700, **{"Call stack": WELL})
        if of_optimizer:
            trace.add("user_annotation", "Optimizer.step#Adam.step", 1, base + 700, 15 * of_optimizer)
        for i in range(count + of_optimizer):
            at = base + 700 + 15 * i
            trace.add("cpu_op", "aten::item", 1, at, 10, **{"Call stack": SICK})
            trace.add("cpu_op", "aten::_local_scalar_dense", 1, at + 2, 6, **{"Call stack": SICK})
        trace.add("cpu_op", "aten::add", 1, base + 700 + 15 * (count + of_optimizer), 285 - 15 * (count + of_optimizer) + 14, **{"Call stack": WELL})
    return trace.each(make)


RESIZED = "/usr/lib/python3/dist-packages/torchvision/transforms/functional.py(31): resize;" + SICK


def prepares(dur, stack):
    """The CPU's step resizes images for so long."""
    trace = Trace(kprof=CALM, cost=dur)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 990 - dur, **{"Call stack": WELL})
        trace.add("cpu_op", "aten::upsample_bilinear2d", 1, base + 990 - dur, dur, **{"Call stack": stack})
    return trace.each(make)


def updates(ops):
    """The CPU's step ends with an optimizer of these ops, 200 us in all."""
    trace = Trace(kprof=CALM, cost=200)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 790, **{"Call stack": WELL})
        trace.add("user_annotation", "Optimizer.step#AdamW.step", 1, base + 790, 200)
        for i, op in enumerate(ops):
            trace.add("cpu_op", op, 1, base + 790 + 200 * i // len(ops), 200 // len(ops), **{"Call stack": SICK})
    return trace.each(make)


def checks(is_on):
    """Backward nodes of 40 us each; in anomaly mode 20 us of checks for NaN behind each. No view tells what stacks cost."""
    trace = Trace(kprof=CALM, cost=10 * 20)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 390, **{"Call stack": WELL})
        for i in range(10):
            at = base + 390 + 60 * i
            trace.add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, at, 60, **{"Call stack": SICK})
            trace.add("cpu_op", "MmBackward0", 1, at, 40 if is_on else 58, **{"Call stack": SICK})
            for name, offset in (("aten::isnan", 40), ("aten::_is_any_true", 48), ("aten::item", 55)) if is_on else ():
                trace.add("cpu_op", name, 1, at + offset, 5, **{"Call stack": SICK})
    return trace.each(make)


def doubles(kind, saved=0.5, **kprof):
    """The CPU computes for 600 us of each step in this type."""
    trace = Trace(kprof=CALM | kprof, cost=saved * 600)
    def make(base):
        trace.add("cpu_op", "aten::mul", 1, base, 390, **{"Call stack": WELL, "Input Dims": [[64]], "Input type": ["float"]})
        trace.add("cpu_op", "aten::addmm", 1, base + 390, 600, **{"Call stack": SICK, "Input Dims": [[512, 512]], "Input type": [kind]})
    return trace.each(make)


def loops(mark):
    """The CPU's step ends with 20 turns of 10 us: 3 us of an op, and 5 of another."""
    trace = Trace(kprof=CALM, cost=20 * 10)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 700, **{"Call stack": WELL})
        for i in range(20):
            trace.add("cpu_op", mark, 1, base + 700 + 10 * i, 3, **{"Call stack": SICK})
            trace.add("cpu_op", "aten::sub", 1, base + 704 + 10 * i, 5, **{"Call stack": SICK})
        trace.add("cpu_op", "aten::add", 1, base + 900, 95, **{"Call stack": WELL})
    return trace.each(make)


def calls(stack, every=1, dur=200):
    """Each `every`th step of the CPU ends with a call of so long, of which ops have half: 10 us each, on the same line."""
    steps = 10
    trace = Trace(kprof=CALM, cost=dur * (steps // every) / steps)
    numbers = iter(range(steps))
    def make(base):
        has = next(numbers) % every == every - 1
        trace.add("cpu_op", "aten::mm", 1, base, 990 - dur if has else 990, **{"Call stack": WELL})
        for i in range(dur // 20) if has else ():
            trace.add("cpu_op", "aten::clone", 1, base + 990 - dur + 20 * i, 10, **{"Call stack": stack + SICK})
    return trace.each(make, steps=steps)


def by_hand(ops, count=20, dur=4):
    """The CPU's step ends with these ops for each of `count` tensors, each op followed by 1 us of Python. The first is of the line before."""
    trace = Trace(kprof=CALM, cost=count * len(ops) * (dur + 1))
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 990 - count * len(ops) * (dur + 1), **{"Call stack": WELL})
        for i in range(count * len(ops)):
            trace.add("cpu_op", ops[i % len(ops)], 1, base + 990 - (dur + 1) * (count * len(ops) - i), dur, **{"Call stack": SICK if i else "train.py(11): sick"})
    return trace.each(make)


def gaps(count, dur):
    """Before each of `count` ops of a line of a step of 50 ms no op runs for so many microseconds."""
    trace = Trace(step=50000, kprof=CALM, cost=count * dur)
    def make(base):
        for i in range(4):
            trace.add("cpu_op", "aten::mm", 1, base + 12500 * i, 11500 - dur * (i < count), **{"Call stack": WELL})
            trace.add("cpu_op", "aten::to", 1, base + 12500 * i + 11500, 1000, **{"Call stack": SICK})
    return trace.each(make)


def one_hot(op):
    trace = Trace(kprof=CALM, cost=300)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 690, **{"Call stack": WELL})
        trace.add("cpu_op", op, 1, base + 690, 100, **{"Call stack": SICK})
        trace.add("cpu_op", "aten::linear", 1, base + 790, 200, **{"Call stack": SICK})
    return trace.each(make)


def pairs(reads):
    """A difference of all pairs, its square, and a sum of it or an op that keeps all."""
    trace = Trace(kprof=CALM, cost=300)
    wide = {"Input Dims": [[512, 128, 64], []], "Call stack": SICK}
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 690, **{"Call stack": WELL})
        trace.add("cpu_op", "aten::sub", 1, base + 690, 150, **{**wide, "Input Dims": [[512, 1, 64], [1, 128, 64], []]})
        trace.add("cpu_op", "aten::pow", 1, base + 840, 100, **wide)
        trace.add("cpu_op", reads, 1, base + 940, 50, **wide)
    return trace.each(make)


def repeats(copies, layers=2):
    """Keys and values of each layer are expanded for its heads, and copied or not, before attention."""
    trace = Trace(kprof=CALM, cost=2 * layers * 80)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 190, **{"Call stack": WELL})
        for layer in range(layers):
            at = base + 200 + 390 * layer
            for i in range(2):
                trace.add("cpu_op", "aten::expand", 1, at + 90 * i, 4, **{"Call stack": SICK})
                trace.add("cpu_op", "aten::reshape", 1, at + 90 * i + 5, 80, **{"Call stack": SICK})
                trace.add("cpu_op", "aten::copy_" if copies else "aten::view", 1, at + 90 * i + 6, 78, **{"Call stack": SICK})
            trace.add("cpu_op", "aten::scaled_dot_product_attention", 1, at + 180, 200, **{"Call stack": WELL})
    return trace.each(make)


def joins(pieces):
    """torch.cat of what is there and one more piece, so many times a step: the last copy is needed, and the first is of two equal tensors."""
    trace = Trace(kprof=CALM, cost=20 * (pieces - 2))
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 990 - 20 * pieces, **{"Call stack": WELL})
        for i in range(pieces):
            trace.add("cpu_op", "aten::cat", 1, base + 990 - 20 * (pieces - i), 20, **{"Call stack": SICK, "Input Dims": [[[16, i + 1, 8], [16, 1, 8]], []]})
    return trace.each(make)


def keeps_old(rows):
    """A buffer of 96 rows that gets so many more each step, and is cut to 96 again; the other torch.cat joins equal halves."""
    trace = Trace(kprof=CALM, cost=300)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 590, **{"Call stack": WELL})
        trace.add("cpu_op", "aten::cat", 1, base + 590, 300, **{"Call stack": SICK, "Input Dims": [[[96, 8], [rows, 8]], []]})
        trace.add("cpu_op", "aten::slice", 1, base + 891, 2, **{"Call stack": SICK, "Input Dims": [[96 + rows, 8], [], [], [], []]})
        trace.add("cpu_op", "aten::cat", 1, base + 900, 90, **{"Call stack": WELL, "Input Dims": [[[64, 8], [64, 8]], []]})
    return trace.each(make)


def embeds(rows):
    """The gradient of an embedding with so many rows, for a batch of 64."""
    trace = Trace(kprof=CALM, cost=300)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 690, **{"Call stack": WELL})
        trace.add("cpu_op", "aten::embedding_dense_backward", 1, base + 690, 300, **{"Call stack": SICK, "Input Dims": [[64, 8], [64], [], [], []]})
        trace.add("cpu_op", "aten::zero_", 1, base + 700, 200, **{"Call stack": SICK, "Input Dims": [[rows, 8]]})
    return trace.each(make)


def differentiates(dur):
    """The backward of a custom function, 400 us, of which no op takes so many."""
    trace = Trace(kprof=CALM, cost=dur)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 580, **{"Call stack": WELL})
        for name, at, us in ("autograd::engine::evaluate_function: SlowBackward", 580, 410), ("SlowBackward", 585, 400), ("aten::mul", 585 + dur, 400 - dur):
            trace.add("cpu_op", name, 1, base + at, us, **{"Call stack": SICK})
    return trace.each(make)


def steps_through(iterations, dur):
    """The backward of a custom function, with so many iterations of two ops and 1 us of Python each; the lines of its ops are its own."""
    cost = iterations * (2 * dur + 1)
    trace = Trace(kprof=CALM, cost=cost)
    engine = "torch/autograd/graph.py(1113): _engine_run_backward;train.py(74): train"
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 980 - cost, **{"Call stack": WELL})
        for name, at, us in ("autograd::engine::evaluate_function: ScanBackward", 982 - cost, cost + 4), ("ScanBackward", 984 - cost, cost):
            trace.add("cpu_op", name, 1, base + at, us, **{"Call stack": engine})
        for i in range(iterations):
            for j, op in enumerate(("aten::mul", "aten::add")):
                trace.add("cpu_op", op, 1, base + 985 - cost + i * (2 * dur + 1) + j * dur, dur, **{"Call stack": f"{SICK};{engine}"})
    return trace.each(make)


def teaches(updated):
    """A net of one parameter, and a teacher of one, whose gradient nothing clears; the optimizer updates so many."""
    trace = Trace(kprof=CALM, cost=282)
    engine = "torch/autograd/graph.py(1113): _engine_run_backward;train.py(74): train"
    def make(base):
        for number, (line, at, then, lasts) in enumerate(((SICK, 0, 660, 270), (WELL, 150, 455, 190))):
            ids = {"Sequence number": 1000 * base + number, "Fwd thread id": 0}
            trace.add("cpu_op", "aten::mm", 1, base + at, 149 + 150 * number, **{"Call stack": line}, **ids)
            trace.add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, base + then, lasts, **{"Call stack": engine})
            trace.add("cpu_op", "MmBackward0", 1, base + then, lasts, **{"Call stack": engine}, **{**ids, "Fwd thread id": 1})
            for name in "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "torch::autograd::AccumulateGrad", "aten::detach" if number else "aten::add_":
                trace.add("cpu_op", name, 1, base + then + lasts + 1, 12, **{"Call stack": engine})
        trace.add("cpu_op", "aten::ones_like", 1, base + 451, 2, **{"Call stack": "torch/autograd/__init__.py(233): _make_grads;train.py(74): train"})
        trace.add("user_annotation", "Optimizer.step#SGD.step", 1, base + 948, 50, **{"Call stack": "train.py(75): train"})
        for i in range(updated):
            trace.add("cpu_op", "aten::add_", 1, base + 950 + 20 * i, 20, **{"Call stack": "torch/optim/sgd.py(379): _single_tensor_sgd;train.py(75): train"})
    return trace.each(make)


def recurs(turns):
    """So many turns of a recurrence behind a product, an op of 3 us and 1 us of Python each; its backward takes 5 us, and the engine 1 us before it."""
    trace = Trace(kprof=CALM, cost=turns * (4 + 6) - 1)
    def make(base):
        rest = 495 - 5 * turns
        calls = [("aten::mm", "MmBackward0", WELL, 0, rest, 1000 - rest, rest - 1)]
        calls += [("aten::tanh", "TanhBackward0", SICK, rest + 4 * i, 3, rest + 10 * turns - 6 * (i + 1), 5) for i in range(turns)]
        for i, (op, backward, stack, at, dur, then, lasts) in enumerate(calls):
            ids = {"Sequence number": 1000 * base + i, "Fwd thread id": 0}
            trace.add("cpu_op", op, 1, base + at, dur, **{"Call stack": stack}, **ids)
            trace.add("cpu_op", f"autograd::engine::evaluate_function: {backward}", 1, base + then, lasts, **{"Call stack": "train.py(74): train"})
            trace.add("cpu_op", backward, 1, base + then, lasts, **{"Call stack": "train.py(74): train"}, **{**ids, "Fwd thread id": 1})
    return trace.each(make)


def packs(collective, dur=300):
    """A hook of a gradient computes, and then sends it, or steps its own optimizer."""
    trace = Trace(kprof=CALM, cost=dur)
    engine = "torch/autograd/graph.py(1113): _engine_run_backward;train.py(74): train"
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 970 - dur, **{"Call stack": WELL})
        trace.add("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1, base + 975 - dur, dur + 20, **{"Call stack": engine})
        trace.add("cpu_op", "aten::topk", 1, base + 980 - dur, dur, **{"Call stack": f"{SICK};{engine}"})
        trace.add("cpu_op", collective, 1, base + 982, 5, **{"Call stack": f"{SICK};{engine}"})
    return trace.each(make)


def ranks_scores(behind, dims, dur=300):
    """A sort of 4 rows of 8192, and the op behind it, of which `dims` are the Concrete Inputs."""
    trace = Trace(kprof=CALM, cost=dur)
    shapes = [[4, 8192], [], []]
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 980 - dur, **{"Call stack": WELL})
        trace.add("cpu_op", "aten::argsort", 1, base + 980 - dur, dur, **{"Call stack": SICK, "Input Dims": shapes, "Concrete Inputs": ["", "-1", "True"]})
        trace.add("cpu_op", "aten::sort", 1, base + 981 - dur, dur - 2, **{"Call stack": SICK, "Input Dims": shapes, "Concrete Inputs": ["", "-1", "True"]})
        trace.add("cpu_op", behind, 1, base + 981, 5, **{"Call stack": WELL, "Input Dims": shapes, "Concrete Inputs": ["", *dims]})
    return trace.each(make)


def parametrizes(second):
    """A parametrized weight is computed before another, or itself again."""
    trace = Trace(kprof=CALM, cost=300)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 390, **{"Call stack": WELL})
        trace.add("python_function", SICK, 1, base + 390, 600)
        for at, weight in (390, 0), (690, second):
            trace.add("python_function", f"nn.Module: ParametrizationList_{weight}", 1, base + at, 300, CallFrom="train.py:12")
            trace.add("cpu_op", "aten::linalg_matrix_exp", 1, base + at, 300, **{"Call stack": SICK})
    return trace.each(make)


def sends(of, dur=100):
    """Four backward passes a step, of which `of` wait for the sum of their gradients over the ranks, each so long."""
    trace = Trace(kprof=CALM, cost=(of - 1) * dur)
    def make(base):
        for i in range(4):
            at, waits = base + 240 * i, dur * (4 - i <= of)
            trace.add("user_annotation", "DistributedDataParallel.forward", 1, at, 60, **{"Call stack": WELL})
            trace.add("cpu_op", "aten::mm", 1, at, 60, **{"Call stack": WELL})
            trace.add("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1, at + 60, 240 - waits - 61, **{"Call stack": SICK})
            if waits:
                trace.add("cpu_op", "c10d::allreduce_", 1, at + 61, 10, **{"Call stack": SICK})
                trace.add("user_annotation", "gloo:all_reduce", 2, at + 239 - waits, waits)
        trace.add("user_annotation", "Optimizer.step#SGD.step", 1, base + 960, 39)
        trace.add("cpu_op", "aten::_foreach_add_", 1, base + 960, 39, **{"Call stack": WELL})
    return trace.each(make)


def scores(count, shape, dur, step=1000, gpu=False, **head):
    """Behind the work of a step `count` sums of a tensor over the ranks, each so long, on one line: of metrics, or of gradients."""
    trace = Trace(step=step, cost=count * (dur + 5 * (not gpu)), **({} if gpu else {"kprof": CALM}), **head)
    numbers = 1
    for side in shape:
        numbers *= side
    def make(base):
        end = base + step - count * (dur + 10)
        if gpu:
            usual(trace, base, end - base)
        else:
            trace.add("cpu_op", "aten::mm", 1, base, end - base, **{"Call stack": WELL})
        for i in range(count):
            at = end + i * (dur + 10)
            if gpu:
                trace.work("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 10, dur, op="c10d::allreduce_", ahead=6, stream=20,
                           **{"Collective name": "allreduce", "In msg nelems": numbers, "Out msg nelems": numbers, "Group size": 2, "dtype": "Float"})
                continue
            trace.add("cpu_op", "c10d::allreduce_", 1, at, 5, **{"Call stack": SICK, "Input Dims": [[list(shape)], [], [], [], [], []]})
            trace.add("user_annotation", "gloo:all_reduce", 2, at + 10, dur, **{"Input Dims": [list(shape)], "Input type": ["float"]})
    return trace.each(make)


def generates(more):
    """Twelve forward passes a step, each with so many tokens more than the one before."""
    trace = Trace(kprof=CALM)
    def make(base):
        for i in range(12):
            trace.add("cpu_op", "aten::embedding", 1, base + 82 * i, 10, **{"Call stack": SICK, "Input Dims": [[500, 8], [1, 20 + more * i], [], [], []]})
            trace.add("cpu_op", "aten::mm", 1, base + 82 * i + 10, 72, **{"Call stack": WELL})
    return trace.each(make)


def rests(dur, **facts):
    """No op runs for so long before the last one."""
    trace = Trace(kprof={**CALM, **facts}, cost=dur)
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base, 950 - dur, **{"Call stack": WELL})
        trace.add("cpu_op", "aten::add", 1, base + 950, 50, **{"Call stack": SICK})
    return trace.each(make)


def sleeps(call, dur, others=0, gap=True):
    """The thread of the steps sleeps for so long of 20 ms, in a call (None: none is recorded), in one gap or in many, beside busy threads or not."""
    steps = 10
    trace = Trace(step=20000, cost=dur, kprof={"python_gc": "1", "cores": 4, "busy_threads": "1", "torch_threads": "1", "core_had_us": steps * (20000 - dur),
                                               "core_waited_us": 0, "core_others_us": steps * others})
    def make(base):
        ops = 1 if gap else 8
        for i in range(ops):
            each = (19000 - dur) // ops
            trace.add("cpu_op", f"aten::mm{i}", 1, base + i * (each + dur // ops), each, **{"Call stack": WELL})
        if call:
            trace.add("python_function", call, 1, base + 19000 - dur, dur, **{"Call stack": SICK})
        trace.add("cpu_op", "aten::add", 1, base + 19000, 1000, **{"Call stack": SICK})
    return trace.each(make, steps=steps)


def resides(kb):
    """The program's memory grows by so much a step."""
    trace = on_cpu(4, resident_steps=",".join(f"{step}:{500000 + kb * step}" for step in range(80)))
    trace.cost = 1024 * kb
    return trace


def leaves_open(files, steps=80):
    """So many files a step stay open."""
    trace = on_cpu(4, file_steps=",".join(f"{step}:{int(40 + files * step)}" for step in range(steps)))
    trace.cost = 0
    return trace


def keeps(is_freed, size=1 << 20, steps=6, name="aten::cat", kept=lambda step: True):
    """Each step, or some of them, allocate `size` bytes."""
    trace = Trace(kprof=CALM, cost=size)
    def make(base):
        trace.add("cpu_op", name, 1, base, 990, **{"Call stack": SICK, "Input Dims": [[[64, 8], [64, 8]], []]})
        if not kept((base - 10000) // 1000):
            return
        for at, change in ((100, size), (900, -size))[:1 + is_freed]:
            trace.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": base + at,
                                 "args": {"Addr": base << 20, "Bytes": change, "Device Id": -1, "Device Type": 0, "Total Allocated": 0, "Total Reserved": 0}})
    return trace.each(make, steps=steps)


def lasts(lengths, usual, cost=0):
    """Steps of so many microseconds, each with one op of the usual length, and another that has the rest."""
    trace = Trace(kprof=CALM, cost=cost)
    base = 10000
    for number, length in enumerate(lengths, 5):
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, base, length)
        trace.add("cpu_op", "aten::mm", 1, base, min(usual, length) - 10, **{"Call stack": WELL})
        if length > usual:
            trace.add("cpu_op", "aten::sort", 1, base + usual, length - usual, **{"Call stack": SICK})
        base += length
    return trace


def fades(late):
    """From the seventh of 30 steps on an op lasts `late` microseconds instead of 20, on equal sizes."""
    trace, base, steps = Trace(kprof=CALM, cost=(late - 20) * 24 / 30), 10000, 30
    for number in range(steps):
        at = base
        for name, dur, line in (("aten::mm", 900, WELL), ("aten::mul", 40, WELL), ("aten::sqrt", late if number >= 6 else 20, SICK), ("aten::add", 40, WELL)):
            trace.add("cpu_op", name, 1, at, dur, **{"Call stack": line, "Input Dims": [[64, 64]]})
            at += dur
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, base, at - base)
        base = at
    return trace


def hooked(is_added):
    """12 steps in which a hook runs: in each once more than in the one before, or once, but the step's other ops, forward and backward, take longer alike."""
    trace, base = Trace(kprof=CALM, cost=100 * 11 / 2 if is_added else 0), 10000
    for number in range(12):
        at, grows = base, 0 if is_added else 30 * number
        for i, (name, more) in enumerate((("aten::mm", grows), ("aten::relu", grows), ("aten::threshold_backward", grows), ("aten::mul", grows))):
            side = {"Call stack": WELL} if i < 2 else {}
            trace.add("cpu_op", name, 1, at, 200 + more, **{"Sequence number": 9 * number + (i if i < 2 else 3 - i), "Fwd thread id": int(i >= 2)}, **side)
            at += 200 + more
        for _ in range(number + 1 if is_added else 1):
            trace.add("cpu_op", "aten::std", 1, at, 100, **{"Call stack": SICK})
            at += 100
        trace.add("user_annotation", "Optimizer.step#SGD.step", 1, at, 50)
        trace.add("cpu_op", "aten::add_", 1, at, 50)
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, base, at + 50 - base)
        base = at + 50
    return trace


GB = 1 << 30
OUTLIERS = [1000, 1002, 998, 1900, 1001, 1003, 2900, 999, 1000, 1002]  # median 1001.5
DRIFT = [1000 + 50 * i for i in range(12)]  # the first third's median is 1075
WAVES = [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 200]
HBM = 1555e3  # bytes a microsecond
SICKNESSES = {
    "data-loading": lambda: with_head(stalled(loads, 200), cost=200),
    "data-sampler": lambda: with_head(stalled(samples, 200), cost=200),
    "exposed-communication": lambda: with_head(reduces(800), cost=200),
    "exposed-copies": lambda: with_head(copies("Pinned", 0, 200), cost=200),
    "implicit-sync": lambda: with_head(stalled(waits, 200), cost=200),
    "launch-bound": lambda: with_head(launches(20), cost=1000 - 50 * 5),
    "op-on-cpu": lambda: with_head(stalled(computes, 200), cost=200),
    "python-starved": lambda: with_head(stalled(nothing, 200), cost=200),
    "dependency": lambda: with_head(depends(200), cost=200),
    "shared-gpu": lambda: with_head(takes_turns(1200), step=10000, cost=2400),
    "device-malloc": lambda: with_head(stalled(allocates, 200), cost=200),
    "recompilation": lambda: with_head(stalled(compiles, 200), cost=200),
    "python-gc": lambda: with_head(stalled(collects, 200), cost=200),
    "gpu-idle": lambda: with_head(idles, cost=160),
    "pageable-copies": lambda: with_head(copies("Pageable", 0, 200), cost=200),
    "copies-to-join": lambda: with_head(little_copies(20, 4096), cost=20 * 10 - 8 - 20 * 2),
    "launch-queue-full": lambda: queue(2000, 5),
    "launch-blocking": lambda: with_head(blocking(True), cost=400),
    "tensor-cores-unused": lambda: with_head(lambda trace, base: usual(trace, base, 1000, name=SGEMM, line=SICK), cost=1000),
    "low-occupancy": lambda: with_head(occupancy(0.1), cost=450),
    "unstable-kernels": lambda: with_head(unstable(WAVES), cost=190),
    "kernels-to-fuse": lambda: with_head(fused(10, 50), cost=0.85 * 450),
    "attention-unfused": lambda: with_head(attends("aten::bmm"), cost=300),
    "mixed-precision": lambda: with_head(convolves(TF32, 600), cost=300),
    "layout-changes": lambda: with_head(convolves(TO_NHWC, 200), cost=200),
    "small-kernels": lambda: with_head(small(4), cost=400),
    "elementwise-slow": lambda: with_head(bandwidth(1 << 20), cost=400 - 3 * 4 * (1 << 20) / HBM / 0.8),
    "memory-near-peak": lambda: with_head(tensors(38 * GB, 37 * GB), cost=38 * GB),
    "memory-fragmented": lambda: with_head(tensors(38 * GB, 20 * GB), cost=18 * GB),
    "too-many-threads": lambda: on_cpu(16),
    "page-faults": lambda: faulting(80, 4, 80),
    "reads-in-step": lambda: reads(16),
    "input-in-step": lambda: prepares(200, RESIZED),
    "tensors-as-text": lambda: calls("torch/_tensor_str.py(367): _tensor_str;torch/_tensor.py(564): __repr__;"),
    "deepcopy-of-state": lambda: calls("torch/_tensor.py(174): __deepcopy__;copy.py(153): deepcopy;", every=5),
    "ddp-buffers": lambda: calls("torch/nn/parallel/distributed.py(2138): _sync_buffers;torch/nn/parallel/distributed.py(1540): _pre_forward;"),
    "objects-between-ranks": lambda: calls("torch/distributed/distributed_c10d.py(4354): _object_to_tensor;torch/distributed/distributed_c10d.py(4462): all_gather_object;"),
    "needless-all-reduce": lambda: sends(4),
    "optimizer-unfused": lambda: updates(["aten::mul_", "aten::lerp_", "aten::sqrt", "aten::addcdiv_"]),
    "anomaly-mode": lambda: checks(True),
    "float64": lambda: doubles("double"),
    "bfloat-on-cpu": lambda: doubles("c10::BFloat16", saved=0.9, instructions="avx2"),
    "one-by-one": lambda: loops("aten::select"),
    "tensor-by-tensor": lambda: by_hand(["aten::mul_", "aten::add_"]),
    "one-hot-product": lambda: one_hot("aten::one_hot"),
    "pairwise-difference": lambda: pairs("aten::sum"),
    "repeated-copies": lambda: repeats(True),
    "cat-in-a-loop": lambda: joins(20),
    "growing-cat": lambda: keeps_old(4),
    "python-backward": lambda: differentiates(300),
    "gradients-unused": lambda: teaches(1),
    "loop-in-function": lambda: steps_through(40, 4),
    "small-ops-in-a-loop": lambda: recurs(80),
    "op-slows-down": lambda: fades(300),
    "hook-before-collective": lambda: packs("c10d::allreduce_"),
    "sort-for-few": lambda: ranks_scores("aten::slice", ["1", "0", "64", "1"]),
    "parametrized-again": lambda: parametrizes(0),
    "dense-embedding-gradient": lambda: embeds(5000),
    "tokens-again": lambda: generates(1),
    "no-op-runs": lambda: rests(600),
    "sleeps-in-step": lambda: sleeps("<built-in function sleep>", 8000),
    "queue-wait": lambda: sleeps("queue.py(154): get", 8000),
    "lock-wait": lambda: sleeps("threading.py(288): wait", 8000),
    "network-wait": lambda: sleeps("<built-in method recv of socket object at 0x7f00>", 8000),
    "process-wait": lambda: sleeps("concurrent/futures/_base.py(428): result", 8000),
    "file-io": lambda: sleeps("numpy/lib/_npyio_impl.py(311): load", 8000),
    "waits-in-step": lambda: sleeps(None, 8000),
    "gil-wait": lambda: sleeps(None, 8000, others=9000, gap=False),
    "resident-grows": lambda: resides(400),
    "open-files-grow": lambda: leaves_open(1),
    "memory-grows": lambda: keeps(False),
    "slow-steps": lambda: lasts(OUTLIERS, 1003, cost=sum(us - 1001.5 for us in OUTLIERS if us > 1500) / len(OUTLIERS)),
    "slower-steps": lambda: lasts(DRIFT, 1000, cost=sum(us - DRIFT[0] for us in DRIFT) / len(DRIFT)),
}
TWINS = {
    "data-loading": lambda: with_head(stalled(loads, 200, False)),
    "data-sampler": lambda: with_head(stalled(samples, 200, False)),
    "exposed-communication": lambda: with_head(reduces(400)),
    "exposed-copies": lambda: with_head(copies("Pinned", 0, 200, stream=20)),
    "implicit-sync": lambda: with_head(stalled(waits, 200, False)),
    "launch-bound": lambda: with_head(launches(5)),
    "op-on-cpu": lambda: with_head(stalled(computes, 200, False)),
    "python-starved": lambda: with_head(stalled(nothing, 200, False)),
    "dependency": lambda: with_head(depends(0)),
    "shared-gpu": lambda: with_head(takes_turns(0), step=10000),
    "device-malloc": lambda: with_head(stalled(allocates, 200, False)),
    "recompilation": lambda: with_head(stalled(compiles, 200, False)),
    "python-gc": lambda: with_head(stalled(collects, 200, False)),
    "gpu-idle": lambda: with_head(depends(40)),
    "pageable-copies": lambda: with_head(copies("Pinned", 0, 200, stream=20)),
    "copies-to-join": lambda: with_head(little_copies(1, 20 * 4096)),
    "launch-queue-full": lambda: queue(2000, 50),
    "launch-blocking": lambda: with_head(blocking(False)),
    "tensor-cores-unused": lambda: with_head(lambda trace, base: usual(trace, base, 1000)),
    "low-occupancy": lambda: with_head(occupancy(2.0)),
    "unstable-kernels": lambda: with_head(unstable([20] * 12)),
    "kernels-to-fuse": lambda: with_head(fused(1, 50)),
    "attention-unfused": lambda: with_head(attends("aten::linear")),
    "mixed-precision": lambda: with_head(convolves(TF32, 400)),
    "layout-changes": lambda: with_head(convolves(TO_NHWC, 40)),
    "small-kernels": lambda: with_head(small(0)),
    "elementwise-slow": lambda: with_head(bandwidth(32 << 20)),
    "memory-near-peak": lambda: with_head(tensors(20 * GB, 19 * GB)),
    "memory-fragmented": lambda: with_head(tensors(20 * GB, 19 * GB)),
    "too-many-threads": lambda: on_cpu(4),
    "page-faults": lambda: faulting(80, 0, 1),
    "reads-in-step": lambda: reads(2, of_optimizer=14),
    "input-in-step": lambda: prepares(200, WELL),
    "tensors-as-text": lambda: calls("torch/_tensor_str.py(367): _tensor_str;torch/_tensor.py(564): __repr__;", dur=40),
    "deepcopy-of-state": lambda: calls("torch/_tensor.py(174): __deepcopy__;copy.py(153): deepcopy;", every=10),
    "ddp-buffers": lambda: calls("torch/nn/parallel/distributed.py(2138): _sync_buffers;torch/nn/parallel/distributed.py(1540): _pre_forward;", dur=40),
    "objects-between-ranks": lambda: calls("torch/distributed/distributed_c10d.py(4354): _object_to_tensor;torch/distributed/distributed_c10d.py(4462): all_gather_object;", dur=20),
    "needless-all-reduce": lambda: sends(1, dur=30),
    "optimizer-unfused": lambda: updates(["aten::zero_", "aten::_fused_adamw_"]),
    "anomaly-mode": lambda: checks(False),
    "float64": lambda: doubles("float"),
    "bfloat-on-cpu": lambda: doubles("c10::BFloat16", instructions="avx2 avx512bw"),
    "one-by-one": lambda: loops("aten::mm"),
    "tensor-by-tensor": lambda: by_hand(["aten::mul_", "aten::add_"], count=4, dur=24),
    "one-hot-product": lambda: one_hot("aten::add"),
    "pairwise-difference": lambda: pairs("aten::relu"),
    "repeated-copies": lambda: repeats(False),
    "cat-in-a-loop": lambda: joins(4),
    "growing-cat": lambda: keeps_old(96),
    "python-backward": lambda: differentiates(50),
    "gradients-unused": lambda: teaches(2),
    "loop-in-function": lambda: steps_through(3, 120),
    "small-ops-in-a-loop": lambda: recurs(16),
    "op-slows-down": lambda: fades(60),
    "hook-before-collective": lambda: packs("aten::addcdiv_"),
    "sort-for-few": lambda: ranks_scores("aten::gather", ["1"]),
    "parametrized-again": lambda: parametrizes(1),
    "dense-embedding-gradient": lambda: embeds(100),
    "tokens-again": lambda: generates(0),
    "no-op-runs": lambda: rests(50),
    "sleeps-in-step": lambda: sleeps("<built-in function sleep>", 900),
    "queue-wait": lambda: sleeps("queue.py(154): get", 900),
    "lock-wait": lambda: sleeps("threading.py(288): wait", 900),
    "network-wait": lambda: sleeps("<built-in method recv of socket object at 0x7f00>", 900),
    "process-wait": lambda: sleeps("concurrent/futures/_base.py(428): result", 900),
    "file-io": lambda: sleeps("numpy/lib/_npyio_impl.py(311): load", 900),
    "waits-in-step": lambda: sleeps(None, 900),
    "gil-wait": lambda: sleeps(None, 900, others=9000, gap=False),
    "resident-grows": lambda: resides(2),
    "open-files-grow": lambda: leaves_open(0.05),
    "memory-grows": lambda: keeps(True),
    "slow-steps": lambda: lasts([1000 + us % 7 for us in OUTLIERS], 1003),
    "slower-steps": lambda: lasts([1000 + 50 * (i % 3) for i in range(12)], 1000),
}
