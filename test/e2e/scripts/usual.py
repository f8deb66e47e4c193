# SPDX-License-Identifier: Apache-2.0
"""Trainings as people write them with transformers' Trainer and with Lightning (argv), of models that are worth a training, on the GPU where
there is one. Nothing is fetched."""
import os
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH = 10, 8


class Images(Dataset):
    def __init__(self):
        self.images = torch.rand(BATCH, 3, 32, 32)

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        return self.images[index % BATCH], index % 10


class Sentences(Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        words = torch.arange(64) + index
        return {"input_ids": words % 200 + 5, "attention_mask": torch.ones(64, dtype=torch.long), "labels": torch.tensor(index % 3)}


def loader():
    return DataLoader(Images(), batch_size=BATCH, num_workers=1, persistent_workers=True, pin_memory=torch.cuda.is_available())


def with_transformers(folder):
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    model = BertForSequenceClassification(BertConfig(vocab_size=300, hidden_size=256, num_hidden_layers=2, num_attention_heads=4,
                                                     intermediate_size=512, num_labels=3))
    arguments = TrainingArguments(output_dir=folder, per_device_train_batch_size=BATCH, max_steps=STEPS, report_to=[], save_strategy="no",
                                  disable_tqdm=True, dataloader_num_workers=1)
    print(Trainer(model=model, args=arguments, train_dataset=Sentences()).train().training_loss)


def with_lightning(folder):
    import lightning
    from torchvision.models import resnet18

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = resnet18(num_classes=10)

        def training_step(self, batch, _index):
            loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    trainer = lightning.Trainer(max_steps=STEPS, devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, default_root_dir=folder)
    trainer.fit(Classifier(), loader())
    print(float(trainer.callback_metrics["loss"]))


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        {"transformers": with_transformers, "lightning": with_lightning}[sys.argv[1]](folder)


if __name__ == "__main__":
    main()
