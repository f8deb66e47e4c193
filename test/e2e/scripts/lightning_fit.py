# SPDX-License-Identifier: Apache-2.0
"""Fits a small model with Lightning: a training and a validation loader."""
import tempfile

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Dropout(0.1), nn.Linear(20, 1))

    def training_step(self, batch, _index):
        loss = nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _index):
        self.log("check", nn.functional.l1_loss(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def main():
    lightning.seed_everything(0, verbose=False)
    points = TensorDataset(torch.randn(32, 10), torch.randn(32, 1))
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                                    enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder)
        model = Regressor()
        trainer.fit(model, DataLoader(points, batch_size=8), DataLoader(points, batch_size=16))
    print(f"loss {float(trainer.callback_metrics['loss']):.4f}", flush=True)


if __name__ == "__main__":
    main()
