# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face Trainer that trains, evaluates every four steps, and predicts. usage: hf_phases.py FOLDER [byhand]

With `byhand` a callback holds a torch.profiler for each phase.
"""
import sys

import torch
import transformers

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


class ByHand(transformers.TrainerCallback):
    """One profiler is open at a time: that of training is closed and opened around an evaluation."""

    def __init__(self, folder):
        self.folder, self.counts, self.open = folder, dict.fromkeys(SCHEDULES, 0), None

    def begin(self, name):
        plan = torch.profiler.schedule(**SCHEDULES[name])
        self.name = name
        self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                               schedule=lambda _: plan(self.counts[name]), on_trace_ready=self.write)
        self.profiler.step_num = self.counts[name]
        self.profiler.__enter__()

    def end(self):
        self.profiler.__exit__(None, None, None)

    def write(self, profiler):
        profiler.export_chrome_trace(f"{self.folder}/{self.name}.{profiler.step_num}.json")

    def step(self):
        self.counts[self.name] += 1
        self.profiler.step()

    def on_step_end(self, *_, **__):
        self.step()

    def on_prediction_step(self, *_, **__):
        self.step()


def in_phase(profilers, name, call, *args, **keywords):
    outer = getattr(profilers, "name", None) if profilers and profilers.open else None
    if outer:
        profilers.end()
    if profilers:
        profilers.begin(name)
        profilers.open = True
    result = call(*args, **keywords)
    if profilers:
        profilers.end()
        profilers.open = False
    if outer:
        profilers.begin(outer)
        profilers.open = True
    return result


class Trainer(transformers.Trainer):
    profilers = None

    def train(self):
        return in_phase(self.profilers, "train", super().train)

    def evaluate(self, *args, **keywords):
        return in_phase(self.profilers, "evaluate", super().evaluate, *args, **keywords)

    def predict(self, *args, **keywords):
        return in_phase(self.profilers, "predict", super().predict, *args, **keywords)


def main():
    transformers.set_seed(0)
    folder = sys.argv[1]
    settings = transformers.TrainingArguments(folder + "/model", per_device_train_batch_size=4, per_device_eval_batch_size=4, max_steps=12,
                                              eval_strategy="steps", eval_steps=4, save_strategy="no", report_to="none", logging_strategy="no",
                                              disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False)
    trainer = Trainer(model=Model(), args=settings, train_dataset=Rows(24), eval_dataset=Rows(16))
    if "byhand" in sys.argv:
        trainer.profilers = ByHand(folder)
        trainer.add_callback(trainer.profilers)
    trainer.train()
    trainer.predict(Rows(16))


if __name__ == "__main__":
    main()
