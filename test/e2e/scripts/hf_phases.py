# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face Trainer that trains, evaluates every four steps, and predicts. usage: hf_phases.py FOLDER [byhand]

With `byhand` a callback holds a torch.profiler for each phase.
"""
import contextlib
import sys

import torch
import transformers

from phases import ByHand

SCHEDULES = {"train": {"skip_first": 4, "wait": 1, "warmup": 1, "active": 2, "repeat": 1},
             "evaluate": {"wait": 1, "warmup": 1, "active": 2, "repeat": 1},
             "predict": {"wait": 0, "warmup": 1, "active": 2, "repeat": 1}}


class Rows(torch.utils.data.Dataset):
    def __init__(self, count):
        self.rows = [{"input": torch.full((8,), float(i)), "labels": torch.tensor([1.0])} for i in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return self.rows[at]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))

    def forward(self, input, labels):
        out = self.layers(input)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


class InCallbacks(ByHand, transformers.TrainerCallback):
    inside = None

    @contextlib.contextmanager
    def phase(self, name):
        """One profiler is open at a time: that of training is closed and opened around an evaluation."""
        outer, self.inside = self.inside, name
        if outer:
            self.leave()
        self.enter(name)
        yield
        self.leave()
        if outer:
            self.enter(outer)
        self.inside = outer

    def on_step_end(self, *_, **__):
        self.step()

    on_prediction_step = on_step_end


class Trainer(transformers.Trainer):
    phase = staticmethod(contextlib.nullcontext)

    def train(self):
        with self.phase("train"):
            return super().train()

    def evaluate(self, *args, **keywords):
        with self.phase("evaluate"):
            return super().evaluate(*args, **keywords)

    def predict(self, *args, **keywords):
        with self.phase("predict"):
            return super().predict(*args, **keywords)


def main():
    transformers.set_seed(0)
    folder = sys.argv[1]
    settings = transformers.TrainingArguments(folder + "/model", per_device_train_batch_size=4, per_device_eval_batch_size=4, max_steps=12,
                                              eval_strategy="steps", eval_steps=4, save_strategy="no", report_to="none", logging_strategy="no",
                                              disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False)
    trainer = Trainer(model=Model(), args=settings, train_dataset=Rows(24), eval_dataset=Rows(16))
    if "byhand" in sys.argv:
        profilers = InCallbacks(folder, SCHEDULES)
        trainer.phase = profilers.phase
        trainer.add_callback(profilers)
    trainer.train()
    trainer.predict(Rows(16))


if __name__ == "__main__":
    main()
