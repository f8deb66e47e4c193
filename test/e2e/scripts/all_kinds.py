# SPDX-License-Identifier: Apache-2.0
"""Makes every kind of op range and every kind of input that torch can show: values, lists, layouts, threads, errors."""
import threading
import warnings

import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


def attempt(name, work, *args):
    try:
        work(*args)
    except Exception as error:  # a kind that this build of torch lacks is no failure of the program
        print(f"{name}: {type(error).__name__}", flush=True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(4 * 36, 5)

    def forward(self, x):
        return self.fc(self.norm(self.conv(x)).relu().flatten(1))


def train_once(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()


def tensors():
    big = torch.arange(256.0).reshape(2, 2, 2, 2, 2, 2, 2, 2)
    big.transpose(0, 7).contiguous().sum((0, 3, 7))
    torch.ones(()).add(2)
    torch.empty(0, 4).sum(0, keepdim=True)
    torch.ones(3, 4, device="meta") @ torch.ones(4, 5, device="meta")
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
                  torch.float64, torch.bfloat16, torch.complex64, torch.complex128, torch.bool):
        torch.ones(2, 3, dtype=dtype).clone().view(6)
    for name in ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu", "uint16",
                 "uint32", "uint64"):
        if hasattr(torch, name):
            torch.empty(2, dtype=getattr(torch, name)).view(1, 2)
    torch.ones(4, 4).t()[1:, ::2].clone()
    torch.ones(1, 1).expand(3, 4).sum()


def layouts():
    sparse = torch.eye(4).to_sparse()
    torch.sparse.mm(sparse, torch.ones(4, 2))
    sparse.coalesce().indices()
    csr = torch.eye(4).to_sparse_csr()
    csr.matmul(torch.ones(4, 2))
    if torch.backends.mkldnn.is_available():
        torch.ones(2, 3).to_mkldnn().to_dense()


def quantized():
    q = torch.quantize_per_tensor(torch.randn(2, 3), 0.1, 10, torch.quint8)
    q.dequantize()
    q.int_repr()


def nested():
    pair = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    pair.sin()
    torch.nested.to_padded_tensor(pair, 0.0)


def lists():
    parts = [torch.ones(2, 3) * i for i in range(3)]
    torch.cat(parts, 1)
    torch.stack(parts)
    torch.cat([torch.ones(1)] * 30)
    torch.cat([torch.ones(1)] * 31)
    torch._foreach_add(parts, 1)
    torch._foreach_add(parts, [1.0, 2.0, 3.0])
    torch.ones(5, 6)[torch.tensor([0, 1]), :, None][:, torch.tensor([2])]
    torch.ones(4, 5).index_put((torch.tensor([0]), torch.tensor([1])), torch.tensor(1.0))
    torch.ones(4, 5)[:, torch.tensor([1, 2])]
    torch.ones(*[1] * 30).sum(tuple(range(30)))
    torch.ones(*[1] * 31).view(*[1] * 32)
    torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 4))
    torch.split(torch.arange(10), [3, 3, 4])
    torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    torch.nn.functional.pad(torch.ones(2, 3), (1, 2), value=0.1)
    torch.nn.functional.interpolate(torch.ones(1, 1, 4, 4), scale_factor=1.5)
    torch.ops.aten.convolution(torch.ones(1, 1, 5, 5), torch.ones(1, 1, 3, 3), None, [1, 1], [0, 0], [1, 1], False,
                               [0, 0], 1)


def scalars():
    x = torch.ones(3)
    for value in (1, -1, 2**62, 0.1, 1.0, -0.0, 1e10, 1e-7, 123456789.125, 1 / 3, 1e300, float("inf"), float("-inf"),
                  float("nan"), True, 3 + 4j, -0.5j):
        torch.full((2,), value, dtype=torch.complex128 if isinstance(value, complex) else torch.float64)
        torch.add(x.double(), value)
    torch.clamp(x, min=0.25)
    torch.clamp(x, None, 2)
    torch.arange(0, 1, 0.25)
    torch.zeros(2, dtype=torch.float64, device="cpu")
    x.to(torch.float16, non_blocking=True, copy=True)
    torch.div(x, 2, rounding_mode="floor")
    torch.quantile(torch.arange(5.0), 0.3)
    torch.nn.functional.gelu(x, approximate="tanh")
    torch.empty_like(x, memory_format=torch.preserve_format)
    torch.randn(2, generator=torch.Generator().manual_seed(1))


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("on purpose")


def autograd():
    x = torch.ones(3, 3, requires_grad=True)
    Twice.apply(x).sum().backward()
    attempt("backward that raises", Broken.apply(x).sum().backward)
    checkpoint(lambda v: (v @ v).relu(), x, use_reentrant=False).sum().backward()
    checkpoint(lambda v: (v @ v).relu(), x, use_reentrant=True).sum().backward()
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    torch.func.vmap(lambda v: v.sin().sum())(torch.ones(3, 4))
    torch.func.grad(lambda v: (v**2).sum())(torch.ones(3))
    torch.func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),))


def errors():
    attempt("op that raises", torch.ones(2, 3).matmul, torch.ones(2, 3))
    with torch.profiler.record_function("raises inside"):
        attempt("op that raises in a range", torch.cat, [torch.ones(2), torch.ones(2, 2)])


def graph_of_another_thread():
    made = {}

    def build():
        w = torch.ones(3, 3, requires_grad=True)
        made["loss"] = (w @ w).sin().sum()

    builder = threading.Thread(target=build)
    builder.start()
    builder.join()
    made["loss"].backward()


def ranges():
    with torch.profiler.record_function("plain range"):
        torch.ones(2).add_(1)
    with torch.profiler.record_function("range with args", "some text"):
        torch.ones(2).mul_(2)
    with torch.profiler.record_function("range / with: signs (1, 2) #3"):
        pass

    @torch.profiler.record_function("decorated")
    def decorated():
        return torch.ones(2) + 1

    decorated()


@torch.jit.script
def scripted(x: torch.Tensor, n: int):
    for _ in range(n):
        x = x.relu() + 1
    return x


@torch.jit.script
def forked_part(x: torch.Tensor):
    return x.sin() * 2


@torch.jit.script
def forks(x: torch.Tensor):
    future = torch.jit.fork(forked_part, x)
    y = x.cos()
    return y + torch.jit.wait(future)


def torchscript():
    for _ in range(3):
        scripted(torch.ones(3), 2)
        forks(torch.ones(3))


def training_threads():
    def work():
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train_once(net, optimizer, torch.ones(2, 3, 8, 8), torch.tensor([0, 1]))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(8, 3, 8, 8), torch.randint(0, 5, (8,)))
    for x, y in DataLoader(data, batch_size=4, shuffle=True):
        train_once(net, optimizer, x, y)
    kinds = [tensors, layouts, quantized, nested, lists, scalars, autograd, errors, graph_of_another_thread, ranges,
             torchscript, training_threads]
    for kind in kinds:
        attempt(kind.__name__, kind)
    print("all kinds done", flush=True)


if __name__ == "__main__":
    main()
