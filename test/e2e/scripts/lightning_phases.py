# SPDX-License-Identifier: Apache-2.0
"""Lightning: fit with a sanity check and validation, test, predict. usage: lightning_phases.py FOLDER [own]

With `own` Lightning's PyTorchProfiler writes its traces to the folder. Then there is no sanity check: that profiler takes its steps
for validation's, and records them together with the first steps of training.
"""
import logging
import sys
import warnings

import lightning
import torch
from lightning.pytorch.profilers import PyTorchProfiler
from torch.utils.data import DataLoader, TensorDataset

SCHEDULE = {"wait": 1, "warmup": 1, "active": 2}


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    def training_step(self, batch):
        return self.layers(batch[0]).square().mean()

    def validation_step(self, batch):
        self.layers(batch[0]).sigmoid()

    def test_step(self, batch):
        self.layers(batch[0]).exp()

    def predict_step(self, batch):
        return self.layers(batch[0]).cos()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def batches(count):
    return DataLoader(TensorDataset(torch.randn(4 * count, 8)), batch_size=4)


def trainer(folder, name):
    own = None
    if "own" in sys.argv:
        own = PyTorchProfiler(dirpath=folder, filename=name, schedule=torch.profiler.schedule(**SCHEDULE), record_module_names=False,
                              activities=[torch.profiler.ProfilerActivity.CPU])
    return lightning.Trainer(max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, profiler=own,
                             num_sanity_val_steps=0 if own else 2, enable_progress_bar=False, enable_model_summary=False)


def main():
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    folder = sys.argv[1]
    model = Model()
    trainer(folder, "fit").fit(model, batches(6), batches(5))
    trainer(folder, "test").test(model, batches(5), verbose=False)
    trainer(folder, "predict").predict(model, batches(5))


if __name__ == "__main__":
    main()
