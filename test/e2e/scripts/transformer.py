# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer encoder to name the class of a token sequence; gradient clipping, AdamW, a scheduler."""
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, words=100, width=32, classes=5):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens, padding):
        return self.head(self.encoder(self.embed(tokens), src_key_padding_mask=padding).mean(dim=1))


def main():
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    for step in range(6):
        tokens = torch.randint(0, 100, (8, 16))
        padding = torch.zeros(8, 16, dtype=torch.bool)
        padding[:, 12:] = True
        loss = nn.functional.cross_entropy(model(tokens, padding), torch.randint(0, 5, (8,)))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
