# SPDX-License-Identifier: Apache-2.0
"""Trains a two-layer LSTM on packed sequences of different lengths, with truncated hidden state and autocast."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2)
        self.head = nn.Linear(48, 7)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.lstm(packed)
        return self.head(pad_packed_sequence(out, batch_first=True)[0])


def main():
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for step in range(6):
        words = torch.randint(1, 50, (4, 5))
        lengths = torch.tensor([5, 2, 4, 3])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=step % 2 == 1):
            scores = model(words, lengths)
        loss = nn.functional.nll_loss(scores.float().log_softmax(-1).flatten(0, 1), torch.randint(0, 7, (20,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
