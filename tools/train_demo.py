#!/usr/bin/env python3
"""Trains the demo checkpoint: a byte-level DeepSeek-V3-style MLA model (latent 512, rope 64), all dense.

  tools/kjv_text.sh > build/kjv.txt
  python3 tools/train_demo.py --text build/kjv.txt --out models/demo

Needs torch, transformers and safetensors; a GPU makes it minutes instead of days. The model is written out
below in plain PyTorch with Hugging Face's weight names; after saving, transformers loads the folder and must
give the same logits. Every 20th chunk of the text is never trained on; its bits per byte are reported.
"""

import argparse
import hashlib
import json
import math
import os
import pathlib
import sys
import time

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from mla_config import mla_config, write_config

CHUNK_BYTES = 4096
HELD_OUT_EVERY = 20  # chunk i is held out if i % 20 == 19
MAX_FILE_BYTES = 9_900_000


class RmsNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * self.weight.float()).to(x.dtype)


def rotate_pairs(x, cos, sin):
    """x (..., T, rope): turns the pair (2i, 2i+1) by the angle of position t and frequency i. cos, sin (T, rope/2)."""
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
    return turned.flatten(-2).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.nope, self.rope = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"]
        self.v_head, self.latent = c["v_head_dim"], c["kv_lora_rank"]
        hidden = c["hidden_size"]
        self.q_proj = nn.Linear(hidden, self.heads * (self.nope + self.rope), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(hidden, self.latent + self.rope, bias=False)
        self.kv_a_layernorm = RmsNorm(self.latent, 1e-6)
        self.kv_b_proj = nn.Linear(self.latent, self.heads * (self.nope + self.v_head), bias=False)
        self.o_proj = nn.Linear(self.heads * self.v_head, hidden, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q = self.q_proj(x).view(b, t, self.heads, -1).transpose(1, 2)  # (b, heads, t, nope + rope)
        q_nope, q_rope = q.split((self.nope, self.rope), dim=-1)
        latent, k_rope = self.kv_a_proj_with_mqa(x).split((self.latent, self.rope), dim=-1)
        kv = self.kv_b_proj(self.kv_a_layernorm(latent)).view(b, t, self.heads, -1).transpose(1, 2)
        k_nope, v = kv.split((self.nope, self.v_head), dim=-1)
        k_rope = rotate_pairs(k_rope.unsqueeze(1), cos, sin).expand(b, self.heads, t, self.rope)
        q = torch.cat((q_nope, rotate_pairs(q_rope, cos, sin)), dim=-1)
        k = torch.cat((k_nope, k_rope), dim=-1)
        # Scale 1 / sqrt(nope + rope), the default.
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, wide = c["hidden_size"], c["intermediate_size"]
        self.gate_proj = nn.Linear(hidden, wide, bias=False)
        self.up_proj = nn.Linear(hidden, wide, bias=False)
        self.down_proj = nn.Linear(wide, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c, dropout):
        super().__init__()
        self.input_layernorm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        self.mlp = FeedForward(c)
        self.dropout = dropout

    def forward(self, x, cos, sin):
        x = x + F.dropout(self.self_attn(self.input_layernorm(x), cos, sin), self.dropout, self.training)
        return x + F.dropout(self.mlp(self.post_attention_layernorm(x)), self.dropout, self.training)


class Body(nn.Module):
    def __init__(self, c, dropout):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c, dropout) for _ in range(c["num_hidden_layers"]))
        self.norm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        self.dropout = dropout
        rope = c["qk_rope_head_dim"]
        frequency = c["rope_theta"] ** (-torch.arange(0, rope, 2, dtype=torch.float64) / rope)
        angle = torch.arange(c["max_position_embeddings"], dtype=torch.float64)[:, None] * frequency
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def forward(self, tokens):
        t = tokens.shape[1]
        x = F.dropout(self.embed_tokens(tokens), self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, self.cos[:t], self.sin[:t])
        return self.norm(x)


class MlaModel(nn.Module):
    """tokens (b, t) int64 -> logits (b, t, vocab)."""

    def __init__(self, c, dropout):
        super().__init__()
        self.model = Body(c, dropout)
        self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        deep = 0.02 / math.sqrt(2 * c["num_hidden_layers"])  # for what writes into the residual stream
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=deep if name.endswith(("o_proj.weight", "down_proj.weight")) else 0.02)

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


def split_text(data):
    """The text as uint8 -> (training text, list of held-out chunks). Training windows never cross into a
    held-out chunk, because these are cut out before windows are drawn."""
    chunks = data.split(CHUNK_BYTES)
    train = [c for i, c in enumerate(chunks) if i % HELD_OUT_EVERY != HELD_OUT_EVERY - 1]
    held = [c for i, c in enumerate(chunks) if i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1]
    return torch.cat(train), held


class Batches:
    """Windows of `length` + 1 bytes at random places, half of them moved back to the start of their line."""

    def __init__(self, text, length, batch, seed, device):
        self.text, self.length, self.batch, self.device = text.to(device), length, batch, device
        starts = torch.cat((torch.zeros(1, dtype=torch.int64), (text == 10).nonzero()[:, 0] + 1))
        self.starts = starts
        self.generator = torch.Generator().manual_seed(seed)

    def next(self):
        limit = self.text.numel() - self.length - 1
        at = torch.randint(0, limit, (self.batch,), generator=self.generator)
        line = self.starts[torch.searchsorted(self.starts, at, right=True) - 1]
        snap = torch.rand(self.batch, generator=self.generator) < 0.5
        at = torch.where(snap, line, at).to(self.device)
        window = self.text[at[:, None] + torch.arange(self.length + 1, device=self.device)].long()
        return window[:, :-1], window[:, 1:]


@torch.no_grad()
def bits_per_byte(logits_of, held, length, device, limit=None):
    """Mean over the held-out bytes, in windows of `length` that overlap by half, so that each byte but
    those of a chunk's first half window has at least length / 2 bytes of context."""
    inputs, targets, counted = [], [], []
    stride = length // 2
    for chunk in held[:limit]:
        for at in range(0, max(1, chunk.numel() - 1 - stride), stride):
            window = chunk[at:at + length + 1].long()
            if window.numel() < 2:
                continue
            n = window.numel() - 1
            pad = length - n
            mask = torch.zeros(length)
            mask[0 if at == 0 else min(stride, n):n] = 1
            inputs.append(F.pad(window[:-1], (0, pad)))
            targets.append(F.pad(window[1:], (0, pad)))
            counted.append(mask)
    nats, count = 0.0, 0.0
    for i in range(0, len(inputs), 32):
        x, y, m = (torch.stack(v[i:i + 32]).to(device) for v in (inputs, targets, counted))
        loss = F.cross_entropy(logits_of(x).float().flatten(0, 1), y.flatten(), reduction="none")
        nats += (loss * m.flatten()).sum().item()
        count += m.sum().item()
    return nats / count / math.log(2)


def learning_rate(step, steps, peak, warmup):
    if step < warmup:
        return peak * (step + 1) / warmup
    t = min(1.0, (step - warmup) / max(1, steps - warmup))
    return peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * t)))


def mixed(device):
    """bf16 products on a GPU; CPUs without bf16 units would be much slower for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def train(args, config, text, held, device):
    """-> (model in fp32, facts about the run)."""
    torch.manual_seed(args.seed)
    model = MlaModel(config, args.dropout).to(device)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {text.numel()} training bytes, "
          f"{sum(c.numel() for c in held)} held out, torch {torch.__version__}, {device}", flush=True)
    decay = [p for p in model.parameters() if p.dim() == 2]
    plain = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": decay, "weight_decay": args.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), fused=device.type == "cuda")
    batches = Batches(text, args.length, args.batch, args.seed, device)

    def loss_of(net, x, y):
        with mixed(device):
            logits = net(x)
        return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())

    net, compiled = model, False
    if args.compile and device.type == "cuda":
        try:
            candidate = torch.compile(model)
            loss_of(candidate, *batches.next()).backward()
            net, compiled = candidate, True
        except Exception as e:  # no compiler on this machine, or a kernel it cannot build: slower, same result
            print(f"torch.compile does not work here ({type(e).__name__}): eager", flush=True)
        model.zero_grad(set_to_none=True)

    steps, step, started = args.steps, 0, time.monotonic()
    model.train()
    while step < steps:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, args.lr, args.warmup)
        loss = loss_of(net, *batches.next())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if step == 100:  # the time budget may shorten the schedule, once, before the rate has left its peak
            loss.item()
            fit = int(args.minutes * 60 / ((time.monotonic() - started) / step))
            if fit < steps:
                steps = max(fit, 200)
                print(f"{args.minutes} minutes are enough for {steps} steps instead of {args.steps}", flush=True)
        if step % args.log_every == 0 or step == steps:
            model.eval()
            with mixed(device):
                quick = bits_per_byte(model, held, args.length, device, limit=12)
            model.train()
            print(f"step {step}/{steps} loss {loss.item() / math.log(2):.3f} held-out (12 chunks) {quick:.3f} "
                  f"bits/byte, {time.monotonic() - started:.0f} s", flush=True)
    model.eval()
    return model, {"steps": steps, "compiled": compiled, "tokens": steps * args.batch * args.length,
                   "seconds": round(time.monotonic() - started, 1)}


def save(model, folder, config):
    folder.mkdir(parents=True, exist_ok=True)
    write_config(folder, config)
    weights = {name: p.detach().to("cpu", torch.bfloat16).contiguous() for name, p in model.named_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    size = (folder / "model.safetensors").stat().st_size
    if size > MAX_FILE_BYTES:
        sys.exit(f"model.safetensors has {size} bytes, more than {MAX_FILE_BYTES}")
    return size


@torch.no_grad()
def check_with_transformers(model, folder, held, device):
    """The saved folder, loaded by transformers in fp32, against this module with the same rounded weights."""
    from transformers import AutoModelForCausalLM
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    theirs = theirs.to(device).eval()
    for p in model.parameters():
        p.copy_(p.to(torch.bfloat16).float())
    x = torch.stack([c[:256].long() for c in held[:4]]).to(device)
    a, b = model(x).double(), theirs(x).logits.double()
    error = ((a - b).norm() / b.norm()).item()
    print(f"logits against transformers: relative L2 {error:.2e}", flush=True)
    if not error < 1e-4:
        sys.exit("the saved checkpoint does not give the trained model's logits in transformers")
    prompt = torch.tensor([list(b"And the LORD said unto Moses, ")], device=device)
    out = theirs.generate(prompt, max_new_tokens=200, do_sample=True, temperature=0.7, top_k=40, pad_token_id=0)
    print("sample:", bytes(out[0].tolist()).decode("utf-8", "replace"), flush=True)
    return error


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--text", type=pathlib.Path, required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--seed", type=int, default=20261129)
    p.add_argument("--steps", type=int, default=6000)
    p.add_argument("--minutes", type=float, default=4, help="fewer steps if these would take longer")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--length", type=int, default=512)
    p.add_argument("--lr", type=float, default=1.5e-3)
    p.add_argument("--warmup", type=int, default=150)
    p.add_argument("--weight-decay", type=float, default=0.1)
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--log-every", type=int, default=500)
    p.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = p.parse_args()

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cuda.matmul.allow_tf32 = False  # what is compared and reported in fp32 is fp32
    torch.backends.cudnn.allow_tf32 = False
    device = torch.device(args.device)
    config = mla_config(hidden=256, layers=4, heads=4, kv_lora_rank=512, qk_nope=64, qk_rope=64, v_head=64,
                        intermediate=704, vocab=256, max_position=512)
    raw = args.text.read_bytes()
    text, held = split_text(torch.frombuffer(bytearray(raw), dtype=torch.uint8))

    model, facts = train(args, config, text, held, device)
    fp32 = bits_per_byte(model, held, args.length, device)
    size = save(model, args.out, config)
    logit_error = check_with_transformers(model, args.out, held, device)  # rounds the weights to bf16
    rounded = bits_per_byte(model, held, args.length, device)
    print(f"held-out bits per byte: {fp32:.4f} with fp32 weights, {rounded:.4f} with the saved bf16 weights")
    report = {
        "script": "tools/train_demo.py",
        "text": "King James Bible, Debian packages bible-kjv and bible-kjv-text, by tools/kjv_text.sh",
        "text_sha256": hashlib.sha256(raw).hexdigest(),
        "text_bytes": len(raw),
        "held_out": f"every {HELD_OUT_EVERY}th chunk of {CHUNK_BYTES} bytes",
        "held_out_bits_per_byte": {"fp32": round(fp32, 4), "bf16_weights": round(rounded, 4)},
        "logits_rel_l2_vs_transformers_fp32": logit_error,
        "model_bytes": size,
        "seed": args.seed, "batch": args.batch, "length": args.length, "learning_rate": args.lr,
        "weight_decay": args.weight_decay, "dropout": args.dropout,
        **facts,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
    }
    (args.out / "training.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
