# SPDX-License-Identifier: Apache-2.0
"""Programs of inference without an optimizer: inference.py KIND. Each answers some requests with a tiny model."""
import asyncio
import os
import pickle
import sys
import threading

import torch
from torch.profiler import record_function

ENGINES = ("vllm", "vllm_worker", "sglang")
REQUESTS = 8 if sys.argv[1] in ("generate", "encoded", "pipeline", "compiled", "asyncio", *ENGINES) else 24  # 16 calls of a model come before it counts
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()


def answer(x):
    return model(x).argmax()


if sys.argv[1] == "compiled":  # brings torch's compiler, which is as large as torch
    answer = torch.compile(answer, backend="eager")


async def answer_later(x):
    hidden = model[0](x)
    await asyncio.sleep(0)
    return model[1:](hidden)


async def serve():
    for _ in range(REQUESTS):
        with record_function("request"):
            await answer_later(torch.ones(1, 8))


class Nested(torch.nn.Module):
    """Modules in modules, and one that raises now and then."""

    def __init__(self):
        super().__init__()
        self.inner, self.asked = model, 0

    def forward(self, x):
        self.asked += 1
        if self.asked % 2:
            raise ValueError(self.asked)
        return self.inner(self.inner(x) @ torch.ones(2, 8))


def ask_nested(nested):
    try:
        nested(torch.ones(1, 8))
    except ValueError:
        pass


def ask_in_thread():
    """A server that has a thread for each request."""
    def answer_one():
        with record_function("request"):
            model(torch.ones(1, 8))
    thread = threading.Thread(target=answer_one)
    thread.start()
    thread.join()


def unharmed():
    """What a program may look at is as it was."""
    call = torch.nn.Module.__call__
    assert call is torch.nn.Module._wrapped_call_impl and call.__qualname__ == "Module._wrapped_call_impl"
    assert torch.nn.Linear.__call__ is call and type(call).__name__ == "function"
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again(torch.ones(1, 8)), model(torch.ones(1, 8)))
    assert pickle.loads(pickle.dumps(call)) is call
    assert torch.equal(torch.compile(model, backend="eager", fullgraph=True)(torch.ones(1, 8)), model(torch.ones(1, 8)))
    assert torch.equal(torch.jit.trace(model, torch.ones(1, 8))(torch.ones(1, 8)), model(torch.ones(1, 8)))


def in_turn(call):
    for _ in range(REQUESTS):
        with record_function("request"):
            call()


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=64, n_positions=32, bos_token_id=1, eos_token_id=2)).eval()


def whisper():
    """Its generation calls the encoder once, and the model for each token."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    return WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=64, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, max_source_positions=20, max_target_positions=32, num_mel_bins=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None)).eval()


def ask(lm):
    return lm.generate(torch.tensor([[1, 5, 7]]), max_new_tokens=3, do_sample=False, pad_token_id=0)


def pipeline():
    from transformers import Pipeline

    class Answers(Pipeline):
        def _sanitize_parameters(self, **_):
            return {}, {}, {}

        def preprocess(self, text):
            return {"text": text}

        def _forward(self, _):
            return ask(self.model)

        def postprocess(self, found):
            return found.tolist()

    return Answers(model=gpt2(), tokenizer=None, device=-1)


def asked_once():
    with record_function("request"):
        for _ in range(3):  # layers of a model that is no single module
            model(torch.ones(1, 8))


def engine(kind):
    """Stand-ins with the names of the engines, called from Python code as these are."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "engines"))
    if kind == "vllm":
        from vllm.v1.engine.core import EngineCoreProc
        EngineCoreProc(asked_once).run_busy_loop(REQUESTS)
    elif kind == "vllm_worker":
        from vllm.v1.worker.gpu_worker import Worker
        Worker(asked_once).worker_busy_loop(REQUESTS)
    else:
        from sglang.srt.managers.scheduler import Scheduler
        Scheduler(asked_once).event_loop_normal(REQUESTS)


def main(kind):
    if kind == "generate":
        lm = gpt2()
        in_turn(lambda: ask(lm))
    elif kind == "encoded":
        speech = whisper()
        in_turn(lambda: speech.generate(torch.ones(1, 8, 40), max_new_tokens=5, min_new_tokens=5, do_sample=False))
    elif kind == "pipeline":
        asked = pipeline()
        in_turn(lambda: asked("a question"))
    elif kind == "bare":
        in_turn(lambda: model(torch.ones(1, 8)))
        unharmed()
    elif kind == "nested":
        nested = Nested()
        in_turn(lambda: ask_nested(nested))
    elif kind == "threads":
        for _ in range(REQUESTS):
            ask_in_thread()
    elif kind == "compiled_model":
        compiled = torch.compile(model, backend="eager")
        in_turn(lambda: compiled(torch.ones(1, 8)))
    elif kind == "scripted":
        scripted = torch.jit.script(model)
        in_turn(lambda: scripted(torch.ones(1, 8)))
    elif kind in ENGINES:
        engine(kind)
    elif kind == "compiled":
        in_turn(lambda: answer(torch.ones(1, 8)))
    else:
        asyncio.run(serve())


main(sys.argv[1])
print("iterations", REQUESTS)
