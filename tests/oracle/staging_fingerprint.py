#!/usr/bin/env python3
"""Golden fingerprints of staged checkpoints, by docs/staging.md and the xxhash package.

    python3 staging_fingerprint.py > ../golden/staging/fingerprints.json

Needs: pip install xxhash. File contents come from a linear congruential generator that the C++ test
repeats: state = (state * 1664525 + 1013904223) mod 2^32, starting at the seed. Each step gives one byte,
the top 8 bits of the state.
"""
import json

import xxhash

CHUNK = 4 * 1024 * 1024

CASES = {
    "one_small": {"config.json": (17, 1)},
    "empty_file": {"a.txt": (0, 0), "b.json": (1, 2)},
    "chunk_edges": {
        "exact.safetensors": (CHUNK, 3),
        "over.safetensors": (CHUNK + 1, 4),
        "under.safetensors": (CHUNK - 1, 5),
        "sub/two.safetensors": (2 * CHUNK, 6),
    },
}


def content(size, seed):
    out = bytearray(size)
    state = seed
    for i in range(size):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = state >> 24
    return bytes(out)


def digest(data):
    return xxhash.xxh3_128_hexdigest(data)


def fingerprint(files):
    tree = b"evald-tree-1\n"
    for name in sorted(files, key=lambda n: n.encode()):
        data = files[name]
        chunks = "".join(digest(data[i : i + CHUNK]) for i in range(0, len(data), CHUNK))
        tree += f"{name}\0{len(data)}\0{digest(chunks.encode())}\n".encode()
    return digest(tree)


def main():
    golden = []
    for case, spec in CASES.items():
        files = {name: content(size, seed) for name, (size, seed) in spec.items()}
        golden.append(
            {
                "case": case,
                "files": [{"name": n, "bytes": s, "seed": r} for n, (s, r) in spec.items()],
                "fingerprint": fingerprint(files),
            }
        )
    print(json.dumps(golden, indent=1))


if __name__ == "__main__":
    main()
