# SPDX-License-Identifier: Apache-2.0
"""Writes the folder of a model of two layers and 256 words, whose weights vLLM draws itself. usage: vllm_model.py FOLDER"""
import json
import pathlib
import sys

from tokenizers import Tokenizer, models, pre_tokenizers

SPECIAL = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
          "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 256, "max_position_embeddings": 256, "hidden_act": "silu",
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "dtype": "float32", "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    words = [*SPECIAL.values(), *(f"w{n}" for n in range(3, 256))]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **SPECIAL}))
    (folder / "config.json").write_text(json.dumps(CONFIG))


main()
