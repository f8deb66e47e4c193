# SPDX-License-Identifier: Apache-2.0
"""Trainings as people write them with transformers' Trainer, with Lightning and with a loop of their own (argv: transformers, lightning, loop), of
models that are worth a training, on the GPU where there is one, and then large enough for it. Nothing is fetched."""
import os
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import DataLoader, Dataset

GPU = torch.cuda.is_available()
STEPS = 12
BATCH, SIDE, WORDS, WIDTH = (64, 128, 512, 1024) if GPU else (8, 32, 64, 256)


class Images(Dataset):
    def __init__(self):
        self.images = torch.rand(BATCH, 3, SIDE, SIDE)

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        return self.images[index % BATCH], index % 10


class Sentences(Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        words = torch.arange(WORDS) + index
        return {"input_ids": words % 200 + 5, "attention_mask": torch.ones(WORDS, dtype=torch.long), "labels": torch.tensor(index % 3)}


def loader():
    return DataLoader(Images(), batch_size=BATCH, num_workers=1, persistent_workers=True, pin_memory=GPU)


def with_transformers(folder):
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    model = BertForSequenceClassification(BertConfig(vocab_size=300, hidden_size=WIDTH, num_hidden_layers=2,
                                                     num_attention_heads=WIDTH // 64, intermediate_size=2 * WIDTH, num_labels=3))
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
            self.log("loss", loss, prog_bar=True)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    trainer = lightning.Trainer(max_steps=STEPS, devices=1, logger=False, enable_checkpointing=False, enable_model_summary=False,
                                default_root_dir=folder)
    trainer.fit(Classifier(), loader())
    print(float(trainer.callback_metrics["loss"]))


def with_loop(_folder):
    from torchvision.models import resnet18

    device = torch.device("cuda" if GPU else "cpu")
    net = resnet18(num_classes=10).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for step, (images, labels) in enumerate(loader()):
        loss = torch.nn.functional.cross_entropy(net(images.to(device, non_blocking=True)), labels.to(device, non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        {"transformers": with_transformers, "lightning": with_lightning, "loop": with_loop}[sys.argv[1]](folder)


if __name__ == "__main__":
    main()
