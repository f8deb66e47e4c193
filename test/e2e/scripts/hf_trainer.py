# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny BERT made from its configuration with Hugging Face's Trainer; nothing is fetched."""
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return {"input_ids": torch.randint(5, 200, (12,), generator=generator),
                "attention_mask": torch.ones(12, dtype=torch.long), "labels": torch.tensor(index % 3)}


def main():
    torch.manual_seed(0)
    config = BertConfig(vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=32, num_labels=3)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, per_device_train_batch_size=4, max_steps=6, use_cpu=True,
                                      report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, seed=0)
        result = Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=Sentences()).train()
    print(f"loss {result.training_loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
