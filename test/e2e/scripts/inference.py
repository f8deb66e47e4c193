# SPDX-License-Identifier: Apache-2.0
"""Programs of inference without an optimizer: inference.py KIND. Each answers 8 requests with a tiny model."""
import asyncio
import sys

import torch
from torch.profiler import record_function

REQUESTS = 8
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()


@torch.compile(backend="eager")
def answer(x):
    return model(x).argmax()


async def answer_later(x):
    hidden = model[0](x)
    await asyncio.sleep(0)
    return model[1:](hidden)


async def serve():
    for _ in range(REQUESTS):
        with record_function("request"):
            await answer_later(torch.ones(1, 8))


def in_turn(call):
    for _ in range(REQUESTS):
        with record_function("request"):
            call()


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=64, n_positions=32, bos_token_id=1, eos_token_id=2)).eval()


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


def main(kind):
    if kind == "generate":
        lm = gpt2()
        in_turn(lambda: ask(lm))
    elif kind == "pipeline":
        asked = pipeline()
        in_turn(lambda: asked("a question"))
    elif kind == "compiled":
        in_turn(lambda: answer(torch.ones(1, 8)))
    else:
        asyncio.run(serve())


main(sys.argv[1])
print("iterations", REQUESTS)
