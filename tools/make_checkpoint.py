#!/usr/bin/env python3
"""Writes a big random checkpoint: bf16, dense DeepSeek-V3-style MLA, byte-level vocabulary, in shards.

  python3 tools/make_checkpoint.py --gib 16 --out build/model-16g

Needs only numpy, and is as fast as the disk: one block of normal numbers is drawn, and every tensor is
pieces of it from random places. Its text is noise; its activations stay of order one.
"""

import argparse
import json
import pathlib
import struct
import time

import numpy as np

from mla_config import mla_config, write_config

BLOCK_ELEMENTS = 32 << 20  # 64 MiB of bf16
GIB = 1 << 30


def to_bf16(x):
    """float32 -> the bf16 bits as uint16, rounded to nearest even. No NaN here."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def layer_tensors(c, i):
    """(name, shape, standard deviation; None = all ones) of one layer."""
    h, heads, latent = c["hidden_size"], c["num_attention_heads"], c["kv_lora_rank"]
    nope, rope, v, wide = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"], c["intermediate_size"]
    into_residual = (2 * c["num_hidden_layers"]) ** -0.5
    p = f"model.layers.{i}."
    return [
        (p + "input_layernorm.weight", (h,), None),
        (p + "self_attn.q_proj.weight", (heads * (nope + rope), h), h**-0.5),
        (p + "self_attn.kv_a_proj_with_mqa.weight", (latent + rope, h), h**-0.5),
        (p + "self_attn.kv_a_layernorm.weight", (latent,), None),
        (p + "self_attn.kv_b_proj.weight", (heads * (nope + v), latent), latent**-0.5),
        (p + "self_attn.o_proj.weight", (h, heads * v), (heads * v) ** -0.5 * into_residual),
        (p + "post_attention_layernorm.weight", (h,), None),
        (p + "mlp.gate_proj.weight", (wide, h), h**-0.5),
        (p + "mlp.up_proj.weight", (wide, h), h**-0.5),
        (p + "mlp.down_proj.weight", (h, wide), wide**-0.5 * into_residual),
    ]


def all_tensors(c):
    h, vocab = c["hidden_size"], c["vocab_size"]
    out = [("model.embed_tokens.weight", (vocab, h), 1.0)]
    for i in range(c["num_hidden_layers"]):
        out += layer_tensors(c, i)
    return out + [("model.norm.weight", (h,), None), ("lm_head.weight", (vocab, h), 3 * h**-0.5)]


def bytes_of(tensor):
    return 2 * int(np.prod(tensor[1], dtype=np.int64))


def split_into_shards(tensors, shard_bytes):
    shards, used = [[]], 0
    for t in tensors:
        if used + bytes_of(t) > shard_bytes and shards[-1]:
            shards.append([])
            used = 0
        shards[-1].append(t)
        used += bytes_of(t)
    return shards


class Noise:
    """Normal numbers in bf16, cut from one block per standard deviation."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.normal = self.random.standard_normal(BLOCK_ELEMENTS, dtype=np.float32)
        self.blocks = {}

    def write(self, file, elements, std):
        if std not in self.blocks:
            self.blocks[std] = to_bf16(self.normal * np.float32(std))
        block = self.blocks[std]
        while elements:
            at = int(self.random.integers(0, BLOCK_ELEMENTS))
            piece = block[at:at + elements]
            file.write(memoryview(piece))
            elements -= piece.size


def write_shard(path, tensors, noise):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for t in tensors:
        header[t[0]] = {"dtype": "BF16", "shape": list(t[1]), "data_offsets": [at, at + bytes_of(t)]}
        at += bytes_of(t)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data starts 8-byte aligned
    with open(path, "wb", buffering=0) as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors:
            if t[2] is None:
                f.write(memoryview(to_bf16(np.ones(t[1], np.float32))))
            else:
                noise.write(f, bytes_of(t) // 2, t[2])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--gib", type=float, default=16, help="about this many GiB, by whole layers")
    p.add_argument("--shard-gib", type=float, default=4)
    p.add_argument("--hidden", type=int, default=4096)
    p.add_argument("--heads", type=int, default=32)
    p.add_argument("--intermediate", type=int, default=12288)
    p.add_argument("--max-position", type=int, default=4096)
    p.add_argument("--seed", type=int, default=20261129)
    args = p.parse_args()

    def config(layers):
        return mla_config(hidden=args.hidden, layers=layers, heads=args.heads, kv_lora_rank=512, qk_nope=128,
                          qk_rope=64, v_head=128, intermediate=args.intermediate, vocab=256,
                          max_position=args.max_position)

    per_layer = sum(map(bytes_of, layer_tensors(config(1), 0)))
    c = config(max(1, round(args.gib * GIB / per_layer)))
    shards = split_into_shards(all_tensors(c), int(args.shard_gib * GIB))
    total = sum(bytes_of(t) for s in shards for t in s)
    started = time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    write_config(args.out, c)
    noise, weight_map = Noise(args.seed), {}
    for i, tensors in enumerate(shards):
        name = f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        write_shard(args.out / name, tensors, noise)
        weight_map |= {t[0]: name for t in tensors}
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (args.out / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    print(f"{args.out}: {total / GIB:.2f} GiB, {c['num_hidden_layers']} layers, {len(shards)} shards, "
          f"{time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
