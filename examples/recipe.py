# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's own profiler recipe profiles: ResNet-18 names a batch of five images. Nothing of a profiler is in it."""
import torch
from torch.profiler import record_function
from torchvision.models import resnet18


def main():
    torch.manual_seed(0)
    model = resnet18(weights=None).eval()
    inputs = torch.randn(5, 3, 224, 224)
    with record_function("model_inference"):
        model(inputs)


if __name__ == "__main__":
    main()
