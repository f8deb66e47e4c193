# SPDX-License-Identifier: Apache-2.0
"""Trainings of five steps, of which a window has the last three; and torch's memory timelines of the same windows.

usage: memory_trainings.py KINDS [FOLDER]
KINDS: names of TRAININGS with commas between them. With FOLDER each runs under torch.profiler, which leaves KIND.raw.json.gz there.
All that a training has made is gone before the next one begins.
"""
import gc
import os
import pathlib
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

warnings.simplefilter("ignore")
STEPS = 5


def layers():
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))


def fit(model, optimizer, sample, parts=1):
    """A step is made of `parts` batches."""
    for _ in range(STEPS):
        for _ in range(parts):
            x, y = sample()
            nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def rows():
    return torch.randn(32, 64), torch.randn(32, 64)


def mlp():
    model = layers()
    fit(model, torch.optim.Adam(model.parameters()), rows)


def cnn():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16),
                          nn.ReLU(), nn.Flatten(), nn.Linear(16 * 7 * 7, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    fit(model, optimizer, lambda: (torch.randn(4, 3, 16, 16), torch.randn(4, 10)))


def accumulate():
    model = layers()
    fit(model, torch.optim.Adam(model.parameters()), rows, parts=2)


def gan():
    maker = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 100))
    critic = nn.Sequential(nn.Linear(100, 60), nn.LeakyReLU(0.2), nn.Linear(60, 1))
    judging, making = torch.optim.Adam(critic.parameters()), torch.optim.Adam(maker.parameters())
    loss = nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(24, 1), torch.zeros(24, 1)
    for _ in range(STEPS):
        fake = maker(torch.randn(24, 16))
        (loss(critic(torch.randn(24, 100)), ones) + loss(critic(fake.detach()), zeros)).backward()
        judging.step()
        judging.zero_grad()
        loss(critic(fake), ones).backward()
        making.step()
        making.zero_grad()


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks = nn.Linear(64, 64), nn.ModuleList(layers() for _ in range(3))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=True)
        return x


def checkpoint():
    import torch.utils.checkpoint
    model = Checkpointed()
    fit(model, torch.optim.Adam(model.parameters()), rows)


def autocast():
    model = layers()

    def forward(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x).float()

    fit(forward, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), rows)


def lightning():
    import lightning as pl

    class Regressor(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = layers()

        def training_step(self, batch, _index):
            return nn.functional.mse_loss(self.layers(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    points = torch.utils.data.TensorDataset(torch.randn(32 * STEPS, 64), torch.randn(32 * STEPS, 64))
    with tempfile.TemporaryDirectory() as folder:
        trainer = pl.Trainer(max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                             enable_model_summary=False, default_root_dir=folder)
        trainer.fit(Regressor(), torch.utils.data.DataLoader(points, batch_size=32))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
    texts = [{"input_ids": tokens, "labels": tokens} for tokens in torch.randint(0, 96, (4 * STEPS, 12))]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=96, n_positions=16, n_embd=32, n_layer=2, n_head=2))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, per_device_train_batch_size=4, max_steps=STEPS, use_cpu=True, report_to=[],
                                      save_strategy="no", logging_strategy="no", disable_tqdm=True, seed=0)
        Trainer(model=model, args=arguments, train_dataset=texts).train()


TRAININGS = {made.__name__: made for made in (mlp, cnn, accumulate, gan, checkpoint, autocast, lightning, gpt2)}


def under_torch(kind, folder, of_every_step):
    """The first optimizer's step ends a step, as it does in libkprof: the second of a GAN counts none."""
    ended = []

    def after_a_step():
        ended.append(kind)
        if kind != "gan" or len(ended) % 2:
            profiler.step()

    def ready(it):
        it.export_memory_timeline(str(folder / f"{kind}.raw.json.gz"), device="cpu")

    of_every_step.append(after_a_step)
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3, repeat=1), on_trace_ready=ready,
                 profile_memory=True, record_shapes=True, with_stack=True) as profiler:
        TRAININGS[kind]()
    of_every_step.clear()
    assert len(ended) == STEPS * (2 if kind == "gan" else 1), (kind, len(ended))


def main():
    of_every_step = []
    if len(sys.argv) > 2:
        sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "oracle"))
        import kineto
        kineto.step_after_every_optimizer(lambda: [act() for act in of_every_step])
    for kind in sys.argv[1].split(","):
        torch.manual_seed(0)
        if len(sys.argv) > 2:
            under_torch(kind, pathlib.Path(sys.argv[2]), of_every_step)
        else:
            TRAININGS[kind]()
        gc.collect()


if __name__ == "__main__":
    main()
