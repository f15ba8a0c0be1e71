"""Writes tests/golden/generation/: the effect of generation settings in lm_eval's `hf` backend and transformers. The
settings are those of generation_config.json (or config.json) and those of generation_kwargs.

Usage: HF_HUB_OFFLINE=1 python3 tests/oracle/generation_golden.py tests/golden/native/linear tests/golden/generation

Made with torch 2.13, transformers 5.23, lm_eval 0.4.13, in fp32 with batches of one. The first argument is the
checkpoint. Each case puts its own generation_config.json into a copy of the checkpoint.

  cases.json         "greedy": requests with their texts. If the two best tokens of a case are ever nearer than 2e-3,
                     the case is not written: its name is printed, and another prompt is needed.
                     "sampled": requests with the tokens before each draw
  logits.bin         fp32 logits of the model before each draw of "sampled", [draw][vocab_size]
  probabilities.bin  fp32 probabilities of each draw, [draw][vocab_size]
"""

import json
import pathlib
import shutil
import sys
import tempfile

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import PreTrainedTokenizerFast

PROMPTS = ["The answer is", "Question: What is the capital of France?\n", "for i in range(10):", "Once upon a time",
           "She has 3 apples and buys 5 more, so she has"]
END = {"eos_token_id": 1}
SAID = "SAID"  # replaced by a token that the model generates

# name: (generation_config.json or None, keys added to config.json, generation_kwargs)
GREEDY = {
    "none": (None, {}, {}),
    "repetition": ({**END, "repetition_penalty": 1.05, "do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8},
                   {}, {}),
    "repetition_strong": ({**END, "repetition_penalty": 1.5}, {}, {}),
    "repetition_reward": ({**END, "repetition_penalty": 0.7}, {}, {}),
    "repetition_of_config_json": (None, {"repetition_penalty": 1.3, "top_k": 7}, {}),
    "config_json_beside_a_file": (END, {"repetition_penalty": 1.3}, {}),
    "request_goes_first": ({**END, "repetition_penalty": 1.5}, {}, {"repetition_penalty": 1.1}),
    "request_switches_off": ({**END, "repetition_penalty": 1.5, "no_repeat_ngram_size": 2}, {},
                             {"repetition_penalty": None, "no_repeat_ngram_size": 0}),
    "prompt_repetition": ({**END, "encoder_repetition_penalty": 1.4}, {}, {}),
    "ngrams": ({**END, "no_repeat_ngram_size": 2}, {}, {}),
    "ngrams_of_one": (END, {}, {"no_repeat_ngram_size": 1}),
    "prompt_ngrams": ({**END, "encoder_no_repeat_ngram_size": 1}, {}, {}),
    "max_new_tokens": ({**END, "max_new_tokens": 40}, {}, {"max_gen_toks": 10}),
    "max_new_tokens_fewer": ({**END, "max_new_tokens": 5}, {}, {"max_gen_toks": 10}),
    "max_new_tokens_beyond_the_context": ({**END, "max_new_tokens": 270}, {}, {"max_gen_toks": 10}),
    "max_length_of_the_file": ({**END, "max_length": 12}, {}, {"max_gen_toks": 20}),
    "max_length_of_the_request": (END, {}, {"max_length": 90}),
    "max_length_and_max_new_tokens": ({**END, "max_new_tokens": 7}, {}, {"max_length": 30}),
    "one_beam": (END, {}, {"num_beams": 1, "early_stopping": True, "length_penalty": 2.0}),
    "top_p_of_nothing": (END, {}, {"top_p": 0, "do_sample": False}),
    "top_p_above_one": (END, {}, {"top_p": 1.5, "min_p": 7, "typical_p": 0, "top_h": "x"}),
    "temperature_as_text": (END, {}, {"temperature": "0.0", "do_sample": None}),
    "temperature_as_text_of_no_sampling": (END, {}, {"temperature": " 1_0.5 ", "do_sample": False}),
    "max_gen_toks_as_text": (END, {}, {"max_gen_toks": " 1_2 "}),
    "max_gen_toks_with_a_fraction": (END, {}, {"max_gen_toks": 12.9}),
    "invalid_values_removed": ({**END, "remove_invalid_values": True, "no_repeat_ngram_size": 1}, {}, {}),
    "empty_stop": (END, {}, {"until": [""]}),
    "end_tokens": ({"eos_token_id": [1, SAID]}, {}, {}),
    "end_token_of_the_request": (END, {}, {"eos_token_id": SAID}),
    "min_new_tokens": ({"eos_token_id": [1, SAID], "min_new_tokens": 24}, {}, {}),
    "min_length": ({"eos_token_id": [1, SAID], "min_length": 30}, {}, {}),
    "suppressed": (END, {}, {"suppress_tokens": [SAID, 32], "begin_suppress_tokens": [40, 41, 42, 43, 44, 45]}),
    "bad_words": ({**END, "bad_words_ids": [[SAID], [32, 97], [1]]}, {}, {}),
    "biased": ({**END, "sequence_bias": [[[SAID], -4.0], [[65, 66], 3.0], [[32], 1.5]]}, {}, {}),
    "forced_end": ({**END, "forced_eos_token_id": SAID}, {}, {"max_gen_toks": 9}),
    "decay": ({**END, "exponential_decay_length_penalty": [4, 1.6]}, {}, {}),
    "together": ({**END, "repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "min_new_tokens": 5,
                  "suppress_tokens": [SAID], "bad_words_ids": [[40]]}, {}, {}),
    "without_effect": ({**END, "do_sample": True, "temperature": 0.3, "top_k": 5, "top_p": 0.2, "typical_p": 0.5,
                        "min_p": 0.3, "epsilon_cutoff": 0.1, "eta_cutoff": 0.1, "renormalize_logits": True,
                        "remove_invalid_values": True, "pad_token_id": 1, "bos_token_id": 0, "use_cache": True,
                        "num_beam_groups": 1, "length_penalty": 1.0, "transformers_version": "4.37.0"}, {}, {}),
    # If several biases have the same tokens, the last one counts.
    "biased_twice": ({**END, "sequence_bias": [[[SAID], 6.0], [[32], 2.5], [[65, 66], -9.0], [[65, 66], 3.0],
                                               [[SAID], -4.0], [[32], 2.5]]}, {}, {}),
    "decay_of_one_end_token_named_twice": ({"eos_token_id": [SAID, 1, SAID],
                                            "exponential_decay_length_penalty": [4, 1.04]}, {}, {}),
    "end_token_that_is_none": ({"eos_token_id": -1}, {}, {}),
    "end_tokens_of_which_one_is_none": ({"eos_token_id": [-1, SAID]}, {}, {}),
    "unknown_keys": ({**END, "chat_format": "chatml", "trust_remote_code": True, "max_window_size": 6,
                      "user_token_id": 195, "assistant_token_id": 196, "generation_kwargs": {"num_beams": 3},
                      "return_legacy_cache": True, "presence_penalty": 1.5, "frequency_penalty": 0.5,
                      "repitition_penalty": 1.9, "max_tokens": 3}, {}, {}),
}

WARM = {"do_sample": True, "temperature": 1.0}
SAMPLED = {
    "nothing_set": (None, {}, WARM),
    "top_k_of_the_file": ({**END, "top_k": 20, "top_p": 0.8, "temperature": 0.3}, {}, WARM),
    "top_k_off_in_the_file": ({**END, "top_k": 0}, {}, WARM),
    "top_k_off_in_the_request": ({**END, "top_k": 20}, {}, {**WARM, "top_k": None}),
    "request_goes_first": ({**END, "top_k": 20, "top_p": 0.8}, {}, {**WARM, "top_k": 7, "top_p": 0.95}),
    "cold": ({**END, "top_k": 0}, {}, {**WARM, "temperature": 0.4}),
    "hot": ({**END, "top_k": 0, "top_p": 0.7}, {}, {**WARM, "temperature": 2.5}),
    "min_p": ({**END, "top_k": 0, "min_p": 0.1}, {}, WARM),
    "typical_p": ({**END, "top_k": 0, "typical_p": 0.6}, {}, WARM),
    "typical_p_after_top_k": ({**END, "typical_p": 0.3}, {}, {**WARM, "temperature": 3.0}),
    "epsilon_cutoff": ({**END, "top_k": 0, "epsilon_cutoff": 0.02}, {}, WARM),
    "epsilon_cutoff_of_all": ({**END, "top_k": 0, "epsilon_cutoff": 0.9}, {}, {**WARM, "temperature": 3.0}),
    "eta_cutoff": ({**END, "top_k": 0, "eta_cutoff": 0.05}, {}, {**WARM, "temperature": 2.0}),
    "top_h": ({**END, "top_k": 0, "top_h": 0.5}, {}, {**WARM, "temperature": 2.0}),
    "repetition": ({**END, "repetition_penalty": 1.3}, {}, WARM),
    "together": ({**END, "repetition_penalty": 1.1, "no_repeat_ngram_size": 1, "top_k": 30, "top_p": 0.9, "min_p": 0.02,
                  "typical_p": 0.9, "epsilon_cutoff": 0.001, "eta_cutoff": 0.001, "suppress_tokens": [83]},
                 {}, {**WARM, "temperature": 1.7}),
    "temperature_alone": (END, {}, {"temperature": 0.9}),
    "top_p_of_nothing": ({**END, "top_k": 0}, {}, {**WARM, "top_p": 0}),
    "shares_above_one": ({**END, "top_k": 0, "typical_p": 2.0}, {}, {**WARM, "top_p": 1.5}),
    "invalid_values_removed": ({**END, "top_k": 0, "remove_invalid_values": True, "suppress_tokens": [83]}, {}, WARM),
}


class Recorder:
    """The harness's backend on a copy of the checkpoint. Keeps the last call of generate()."""

    def __init__(self, checkpoint, folder, generation, config):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(checkpoint, folder)
        path = folder / "generation_config.json"
        path.unlink(missing_ok=True)
        if generation is not None:
            path.write_text(json.dumps(generation))
        whole = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**whole, **config}))
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        self.lm = HFLM(pretrained=str(folder), tokenizer=tokenizer, dtype="float32", batch_size=1, device="cpu")
        generate = self.lm.model.generate

        def recording(**kwargs):
            self.prompt = kwargs["input_ids"][0].tolist()
            self.made = generate(**kwargs, return_dict_in_generate=True, output_scores=True, output_logits=True)
            return self.made.sequences

        self.lm.model.generate = recording

    def text(self, prompt, kwargs):
        request = Instance("generate_until", {}, (prompt, kwargs), 0)
        return self.lm.generate_until([request], disable_tqdm=True)[0]

    def generated(self):
        return self.made.sequences[0, len(self.prompt):].tolist()


def lead(scores):
    best = torch.topk(scores[0], 2).values
    return float("inf") if torch.isinf(best[1]) else float(best[0] - best[1])


def with_said(value, token):
    """`value` with SAID replaced by the token."""
    if value == SAID:
        return token
    if isinstance(value, list):
        return [with_said(item, token) for item in value]
    if isinstance(value, dict):
        return {key: with_said(item, token) for key, item in value.items()}
    return value


def greedy_cases(checkpoint, folder):
    # The last prompts contain the model's own text, so that the model would repeat it.
    recorder = Recorder(checkpoint, folder, END, {})
    prompts = PROMPTS + [p + recorder.text(p, {"until": [], "max_gen_toks": 24}) for p in PROMPTS[:4]]
    recorder.text(PROMPTS[0], {"until": [], "max_gen_toks": 24})
    said = recorder.generated()[10]
    cases = []
    for name, (generation, config, kwargs) in ((n, with_said(list(spec), said)) for n, spec in GREEDY.items()):
        recorder = Recorder(checkpoint, folder, generation, config)
        kept = 0
        for prompt in prompts:
            request = {"until": ["\n\n\n"], "max_gen_toks": 32, "do_sample": False, **kwargs}
            text = recorder.text(prompt, dict(request))
            if min(lead(s) for s in recorder.made.scores) < 2e-3:
                continue
            cases.append({"name": name, "generation_config": generation, "config": config, "context": prompt,
                          "generation_kwargs": request, "text": text, "generated": recorder.generated()})
            kept += 1
        print(name, kept)
        assert kept > 0, name
    # Each setting with an effect must have changed something.
    plain = {c["context"]: c["generated"] for c in cases if c["name"] == "none"}
    same = {"none", "config_json_beside_a_file", "one_beam", "without_effect", "request_switches_off",
            "end_token_that_is_none", "unknown_keys", "top_p_of_nothing", "top_p_above_one", "temperature_as_text",
            "temperature_as_text_of_no_sampling"}
    for name in GREEDY:
        changed = any(c["generated"] != plain.get(c["context"]) for c in cases if c["name"] == name)
        assert changed == (name not in same), name
    return cases


def sampled_cases(checkpoint, folder):
    cases, logits, probabilities = [], [], []
    for name, (generation, config, kwargs) in SAMPLED.items():
        recorder = Recorder(checkpoint, folder, generation, config)
        torch.manual_seed(7)
        request = {"until": ["\n\n\n"], "max_gen_toks": 4, **kwargs}
        recorder.text(PROMPTS[len(cases) % len(PROMPTS)], dict(request))
        draws = len(recorder.made.scores)
        cases.append({"name": name, "generation_config": generation, "config": config, "generation_kwargs": request,
                      "prompt": recorder.prompt, "generated": recorder.generated()[:draws], "draws": draws})
        logits += [step[0] for step in recorder.made.logits]
        probabilities += [torch.softmax(step[0], -1) for step in recorder.made.scores]
        print(name, draws, [int((p > 0).sum()) for p in probabilities[-draws:]])
    return cases, torch.stack(logits), torch.stack(probabilities)


def main(checkpoint, out):
    torch.set_num_threads(1)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "checkpoint"
        greedy = greedy_cases(checkpoint, folder)
        sampled, logits, probabilities = sampled_cases(checkpoint, folder)
    (out / "cases.json").write_text(json.dumps({"greedy": greedy, "sampled": sampled}, indent=0) + "\n")
    (out / "logits.bin").write_bytes(logits.float().numpy().tobytes())
    (out / "probabilities.bin").write_bytes(probabilities.float().numpy().tobytes())


main(*sys.argv[1:])
