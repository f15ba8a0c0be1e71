"""Writes tests/golden/thinking/cases.json: how lm_eval takes the thinking out of an answer.

Usage: HF_HUB_OFFLINE=1 python3 tests/oracle/thinking_golden.py tests/golden/native/linear tests/golden/thinking

Made with torch 2.13, transformers 5.23, lm_eval 0.4.13, in fp32 with batches of one. The first argument is the
checkpoint whose tokenizer and weights the cases use.

  texts   made-up texts, as lm_eval.models.utils.postprocess_generated_text leaves them
  tokens  made-up generated tokens, as HFLM.generate_until leaves them; "think_end_token" may be an id or a text
  engine  requests with the answers of the model, as HFLM.generate_until leaves them if the task's stop strings do not
          end the generation, as in lm_eval's vllm backend
"""

import json
import pathlib
import random
import sys

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import postprocess_generated_text

ENDS = ["</think>", "aa", "<|message|>", "\n\n", "é", "-"]
PIECES = ["</think>", "</think", "<think>", "aa", "a", "aaa", "<|message|>", "\n", "\n\n", " ", "\t", "\u00a0", "\u2028", "é",
          "-", "--", "Q:", "Question:", "42", "The answer is", ".", "stop", "日本"]
STOPS = [[], ["\n\n"], ["Q:"], ["Question:", "\n\n"], ["stop", "The"], [""], ["", "."], ["a"], ["日本", "42"], ["</think>"]]
PROMPTS = ["The answer is", "Question: What is the capital of France?\n", "for i in range(10):", "Once upon a time",
           "She has 3 apples and buys 5 more, so she has"]
MOST = 48


def texts(rng: random.Random) -> list:
    cases = []
    for _ in range(1500):
        case = {"text": "".join(rng.choices(PIECES, k=rng.randrange(0, 14))), "until": rng.choice(STOPS),
                "think_end_token": rng.choice(ENDS)}
        case["answer"] = postprocess_generated_text(case["text"], list(case["until"]), case["think_end_token"])
        cases.append(case)
    return cases


class Scripted(HFLM):
    """Answers with `script`, or, if that is None, with what the model generates until its EOS token."""

    script = None

    def _model_generate(self, context, max_length, stop, **kwargs):
        if self.script is None:
            eos = self.tok_decode(self.eot_token_id, skip_special_tokens=False)
            self.last = super()._model_generate(context, max_length, [eos], **kwargs)
            return self.last
        row = context[0].tolist() + self.script
        return context.new_tensor([row])


def answer(lm: HFLM, context: str, until: list, most: int) -> str:
    request = Instance(request_type="generate_until", doc={}, idx=0,
                       arguments=(context, {"until": list(until), "max_gen_toks": most}))
    return lm.generate_until([request], disable_tqdm=True)[0]


def load(checkpoint: str, end) -> HFLM:
    return Scripted(pretrained=checkpoint, device="cpu", dtype="float32", batch_size=1, think_end_token=end)


def tokens(checkpoint: str, rng: random.Random) -> list:
    cases = []
    for end in (65, "65", "e", "th", 32):
        lm = load(checkpoint, end)
        ids = [i for i in range(lm.tokenizer.vocab_size) if i not in lm.tokenizer.all_special_ids]
        for _ in range(60):
            lm.script = rng.choices([65, 32, *rng.sample(ids, 8)], k=rng.randrange(1, 20))
            until = rng.choice(STOPS)
            cases.append({"tokens": lm.script, "until": until, "think_end_token": end,
                          "answer": answer(lm, "x", until, MOST)})
    return cases


def engine(checkpoint: str) -> list:
    cases = []
    for context in PROMPTS:
        plain = load(checkpoint, None)
        answer(plain, context, [], MOST)
        said = plain.last[0].tolist()[-MOST:]
        text = plain.tok_decode(said)
        middle = len(said) // 2
        word = plain.tok_decode(said[middle:middle + 2])
        early = text[2:4]  # a stop string that stands in the thinking, too
        late = text[-3:-1]
        for end in (said[middle], str(said[middle]), word, "never said"):
            for until in ([], [early], [late, early]):
                lm = load(checkpoint, end)
                case = {"context": context, "until": until, "max_gen_toks": MOST, "think_end_token": end}
                case["answer"] = answer(lm, context, until, MOST)
                cases.append(case)
    return cases


def main() -> None:
    checkpoint, out = sys.argv[1], pathlib.Path(sys.argv[2])
    rng = random.Random(7)
    cases = {"texts": texts(rng), "tokens": tokens(checkpoint, rng), "engine": engine(checkpoint)}
    out.mkdir(parents=True, exist_ok=True)
    lines = [f'"{name}": [\n' + ",\n".join(json.dumps(case, ensure_ascii=False) for case in of) + "\n]"
             for name, of in cases.items()]
    (out / "cases.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
    print({name: len(of) for name, of in cases.items()})


if __name__ == "__main__":
    main()
