#!/usr/bin/env python3
"""Makes the checkpoints by which logits are compared with Hugging Face transformers, and their answers.

  python3 tools/make_fixtures.py --out tests/runtime/fixtures

Needs torch, transformers and safetensors. Weights are random fp32, scaled so that attention is peaked: with
flat attention a wrong mask or rotation hardly shows, and with attention on one token alone bf16's own error
hides it. Matrices hold values that bf16 can hold too, for the same reason; norms do not. Each folder OUT/<name> holds
  config.json, model.safetensors (or two shards and their index)
  expected.safetensors   for every prompt, e.g. "b5.row3":
      .tokens         I32 (prompt + 32)   the prompt, then the tokens fed in the 32 decode steps
      .prompt_length  I32 (1)
      .logits         F32 (33, vocab)     after the prompt, then after each fed token; fp32 on the CPU
  expected.json          transformers' own bf16 error against that, and how peaked attention is
Rows of a batch are computed one by one, without padding.
"""

import argparse
import json
import math
import pathlib

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

from mla_config import mla_config, write_config

STEPS = 32
BATCHES = {"b1": [17], "b5": [1, 5, 16, 23, 40]}  # prompt lengths

FIXTURES = {
    # Small odd shapes; the query goes through its own latent. The two norms on latents do not use rms_eps:
    # it is large here so that it shows.
    "query_latent": dict(hidden=48, layers=2, heads=3, kv_lora_rank=32, qk_nope=16, qk_rope=8, v_head=16,
                         intermediate=80, vocab=97, max_position=128, q_lora_rank=24,
                         rms_eps=1e-3),
    # Plain query, halves instead of pairs in RoPE, two files, v_head unlike qk_nope.
    "halves_two_files": dict(hidden=64, layers=3, heads=2, kv_lora_rank=48, qk_nope=24, qk_rope=16, v_head=32,
                             intermediate=96, vocab=131, max_position=128, rope_interleave=False),
    # The real kernel's latent and rope; embeddings tied.
    "latent512_tied": dict(hidden=64, layers=2, heads=2, kv_lora_rank=512, qk_nope=64, qk_rope=64, v_head=64,
                           intermediate=96, vocab=128, max_position=128, tied=True),
}
TWO_FILES = {"halves_two_files"}


@torch.no_grad()
def randomise(model, generator, peak):
    """Activations of order one. Queries and keys have standard deviation `peak`, so that scores have
    about peak squared."""
    for name, p in model.named_parameters():
        if p.dim() == 1:
            p.copy_(1 + 0.2 * torch.randn(p.shape, generator=generator))
            continue  # left in full fp32: a reader that rounds on the way shows
        p.copy_(torch.randn(p.shape, generator=generator) * p.shape[1] ** -0.5)
        if name.endswith("embed_tokens.weight"):
            p.mul_(p.shape[1] ** 0.5)
        elif name.endswith(("q_proj.weight", "q_b_proj.weight")):
            p.mul_(peak)
        elif name.endswith("kv_a_proj_with_mqa.weight"):
            p[-model.config.qk_rope_head_dim:].mul_(peak)  # latent rows are normalised afterwards anyway
        elif name.endswith("kv_b_proj.weight"):
            heads = p.view(model.config.num_attention_heads, -1, p.shape[1])
            heads[:, :model.config.qk_nope_head_dim].mul_(peak)
        p.copy_(p.bfloat16().float())


def save_weights(model, folder, two_files):
    weights = {n: p.detach().contiguous() for n, p in model.named_parameters()}  # a tied head appears once
    if not two_files:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({n: weights[n] for n in part}, folder / file, metadata={"format": "pt"})
    index = {"metadata": {"total_size": sum(w.numel() * 4 for w in weights.values())},
             "weight_map": {n: f for f, part in parts.items() for n in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def load(folder, dtype, device):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager")
    return model.to(device).eval()


@torch.no_grad()
def run(model, tokens, prompt_length):
    """tokens (n) -> logits (33, vocab) in fp32: prefill of the prompt, then one token a step, cached."""
    tokens = tokens.to(model.device)
    out = model(tokens[None, :prompt_length], use_cache=True)
    rows = [out.logits[0, -1]]
    for i in range(prompt_length, prompt_length + STEPS):
        out = model(tokens[None, i:i + 1], past_key_values=out.past_key_values, use_cache=True)
        rows.append(out.logits[0, -1])
    return torch.stack(rows).float().cpu().contiguous()


@torch.no_grad()
def peakedness(model, rows):
    """(mean of the largest probability, mean entropy as a share of the uniform one) over all layers, heads
    and positions with at least 8 keys."""
    largest, entropy = [], []
    for tokens in rows:
        for layer in model(tokens[None], output_attentions=True).attentions:
            p = layer[0, :, 8:].double()  # (heads, positions, keys)
            keys = torch.arange(9, p.shape[1] + 9).double()
            h = -(p * (p + 1e-300).log()).sum(-1) / keys.log()
            largest.append(p.max(-1).values.flatten())
            entropy.append(h.flatten())
    return torch.cat(largest).mean().item(), torch.cat(entropy).mean().item()


def relative_l2(got, expected):
    got, expected = torch.cat(got).double(), torch.cat(expected).double()
    return ((got - expected).norm() / expected.norm()).item()


def make(name, shape, out, seed, peak, bf16_device):
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    write_config(folder, mla_config(**shape, dtype="float32"))
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
    randomise(model, generator, peak)
    save_weights(model, folder, name in TWO_FILES)

    exact, rounded = load(folder, torch.float32, "cpu"), load(folder, torch.bfloat16, bf16_device)
    for key, p in exact.named_parameters():
        if not torch.equal(p, model.get_parameter(key)):
            raise SystemExit(f"{name}: {key} is not loaded as it was saved")
    tensors, errors, rows = {}, {}, []
    for batch, lengths in BATCHES.items():
        expected, bf16 = [], []
        for i, length in enumerate(lengths):
            tokens = torch.randint(0, shape["vocab"], (length + STEPS,), generator=generator)
            rows.append(tokens)
            expected.append(run(exact, tokens, length))
            bf16.append(run(rounded, tokens, length))
            tensors[f"{batch}.row{i}.tokens"] = tokens.int()
            tensors[f"{batch}.row{i}.prompt_length"] = torch.tensor([length], dtype=torch.int32)
            tensors[f"{batch}.row{i}.logits"] = expected[-1]
        errors[batch] = relative_l2(bf16, expected)
    save_file(tensors, folder / "expected.safetensors")
    largest, entropy = peakedness(exact, rows)
    report = {
        "bf16_rel_l2": errors,
        "bf16_device": bf16_device,
        "attention_mean_max_probability": round(largest, 4),
        "attention_mean_entropy_over_uniform": round(entropy, 4),
        "seed": seed, "peak": peak, "torch": torch.__version__, "transformers": transformers.__version__,
    }
    (folder / "expected.json").write_text(json.dumps(report, indent=2) + "\n")
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size} bytes, bf16 error {errors}, mean max probability {largest:.3f}, "
          f"entropy {entropy:.3f} of uniform", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--seed", type=int, default=20261129)
    p.add_argument("--peak", type=float, default=1.3)
    args = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for i, (name, shape) in enumerate(FIXTURES.items()):
        make(name, shape, args.out, args.seed + i, args.peak, device)


if __name__ == "__main__":
    main()
