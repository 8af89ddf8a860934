"""The config.json of a dense DeepSeek-V3-style MLA checkpoint, readable by transformers 4 and 5."""

import json
import pathlib


def mla_config(*, hidden, layers, heads, kv_lora_rank, qk_nope, qk_rope, v_head, intermediate, vocab,
               max_position, q_lora_rank=None, rope_interleave=True, tied=False, rope_theta=10000.0,
               rms_eps=1e-6, dtype="bfloat16"):
    return {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "q_lora_rank": q_lora_rank,
        "kv_lora_rank": kv_lora_rank,
        "qk_nope_head_dim": qk_nope,
        "qk_rope_head_dim": qk_rope,
        "v_head_dim": v_head,
        "intermediate_size": intermediate,
        "first_k_dense_replace": layers,  # every layer is dense: no experts
        "num_nextn_predict_layers": 0,
        "vocab_size": vocab,
        "max_position_embeddings": max_position,
        "rms_norm_eps": rms_eps,
        # transformers 4 reads the first, transformers 5 the second.
        "rope_theta": rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": rope_theta},
        "rope_interleave": rope_interleave,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": tied,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": dtype,
    }


def write_config(folder, config):
    path = pathlib.Path(folder) / "config.json"
    path.write_text(json.dumps(config, indent=2) + "\n")
