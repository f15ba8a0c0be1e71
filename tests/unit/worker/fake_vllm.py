"""A server that speaks vLLM 0.32's protocol, as recorded from its CPU build: `serve FOLDER --uds=SOCKET ...`. The
model is a function of the weights' bytes and of the last three tokens; a token is a byte. FAKE_FAULT (environment)
names a fault; FAKE_NOTES a file to which each call and each start adds a line."""
import functools
import http.server
import json
import math
import os
import socketserver
import sys
import zlib

FAULT = os.environ.get("FAKE_FAULT", "")
BLOCK = 16
LETTERS = [ord(c) for c in "abcdefghij klmnopqrstuvwxyz"] + [0]  # 0 ends a text
END = 0
state = {"folder": "", "weights": b"", "cached": set(), "reloads": 0}


def note(text):
    with open(os.environ["FAKE_NOTES"], "a") as notes:
        notes.write(text + "\n")


def weights_of(folder):
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        return file.read()[-64:]


def distribution(context):
    return distribution_after(state["weights"], bytes(t % 256 for t in context[-3:]))


@functools.cache
def distribution_after(weights, last):
    values = {}
    for token in LETTERS:
        key = weights + last + bytes([token])
        values[token] = 6 * (zlib.crc32(key) % 10007) / 10007 - (4 if token == END else 0)
    total = math.log(sum(math.exp(v) for v in values.values()))
    return {token: value - total for token, value in values.items()}


def logprob(context, token):
    return distribution(context).get(token, -12.0 - token % 7)


def best(context):
    values = distribution(context)
    return max(sorted(values), key=lambda token: values[token])


def rank(context, token):
    values = distribution(context)
    return 1 + sum(value > logprob(context, token) for value in values.values())


class Refused(Exception):
    pass


def completions(body):
    prompt = body["prompt"]
    if not all(isinstance(token, int) for token in prompt):
        raise Refused("the prompt is no list of tokens")
    if len(body.get("stop", [])) > int(os.environ.get("VLLM_MAX_STOP_STRINGS", "4")):
        raise Refused("List should have at most 4 items after validation")
    made, text, reason, stop = [], "", "length", None
    while len(made) < body["max_tokens"]:
        made.append(best(prompt + made))
        if made[-1] == END:
            reason = "stop"
            break
        text += chr(made[-1])
        found = [s for s in body.get("stop", []) if s in text]
        if found:
            reason, stop = "stop", found[0]
            text = text[:text.index(stop)]
            break
    choice = {"index": 0, "text": "text of the server" if body.get("return_token_ids") else text,
              "finish_reason": reason, "stop_reason": stop, "logprobs": None}
    if body.get("return_token_ids"):
        choice["token_ids"] = made
    if "logprobs" in body:
        as_ids = body.get("return_tokens_as_token_ids")
        name = (lambda token: f"token_id:{token}") if as_ids else chr
        ids = body.get("logprob_token_ids")
        begin = 0 if body.get("echo") else len(prompt)
        whole, values, tops = prompt + made, [], []
        for at in range(begin, len(whole)):
            if at == 0:
                values.append(None), tops.append(None)
                continue
            every = distribution(whole[:at])
            likely = sorted(every, key=lambda token: -every[token])[:body["logprobs"]]
            chosen = set(ids if ids is not None else likely) | {whole[at]}
            values.append(logprob(whole[:at], whole[at]))
            tops.append({name(token): logprob(whole[:at], token) for token in chosen})
        if FAULT == "wrong next tokens" and ids is not None:
            tops = [{key: -1.5 for key in top} for top in tops]
        choice["logprobs"] = {"token_logprobs": values, "top_logprobs": tops}
    return {"choices": [choice], "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(made)}}


def generate(body):
    tokens, sampling = body["token_ids"], body["sampling_params"]
    cached = 0
    if sampling.get("skip_reading_prefix_cache") is False:
        if sampling["detokenize"]:
            os._exit(1)  # as the real one does after a hit
        while cached + BLOCK < len(tokens) and tuple(tokens[:cached + BLOCK]) in state["cached"]:
            cached += BLOCK
    if cached and FAULT == "not a number":
        raise Refused("Out of range float values are not JSON compliant")
    for end in range(BLOCK, len(tokens) + 1, BLOCK):
        state["cached"].add(tuple(tokens[:end]))
    entries = [None]
    for at in range(1, len(tokens)):
        if at <= cached:
            entries.append({str(2**31 + at): {"logprob": -3e38, "rank": 0}})  # memory that nobody wrote
            continue
        entry = {str(tokens[at]): {"logprob": logprob(tokens[:at], tokens[at]), "rank": rank(tokens[:at], tokens[at])}}
        likeliest = best(tokens[:at])
        entry[str(likeliest)] = {"logprob": logprob(tokens[:at], likeliest), "rank": 1}
        entries.append(entry)
    return {"prompt_logprobs": entries, "choices": [{"token_ids": [best(tokens)]}],
            "usage": {"prompt_tokens": len(tokens), "prompt_tokens_details": {"cached_tokens": cached}}}


def reload_weights(body):
    state["reloads"] += 1
    if FAULT == "reload":
        raise RuntimeError("Worker failed with error 'incomplete metadata, file not fully covered'")
    if FAULT == "dies at reload":
        os._exit(0)
    if FAULT != "stale":
        state["weights"] = weights_of(body["kwargs"]["weights_path"])
    return {"results": [None]}


def reset(_):
    state["cached"].clear()
    return {"success": FAULT != "reset"}


def tokenize(body):
    tokens = list(body["prompt"].encode())
    if FAULT == "other tokens":
        tokens[7:9] = [tokens[8]]
    return {"count": len(tokens), "max_model_len": 512, "tokens": tokens, "token_strs": None}


POSTS = {"/v1/completions": completions, "/tokenize": tokenize, "/inference/v1/generate": generate, "/collective_rpc": reload_weights,
         "/reset_prefix_cache": reset, "/pause?mode=wait": lambda _: {"status": "paused"},
         "/resume": lambda _: {"status": "resumed"}, "/update_weight_version": lambda _: {"success": True}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "socket"

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        pages = {
            "/health": {},
            "/version": {"version": os.environ.get("FAKE_VERSION", "0.32.0")},
            "/v1/models": {"data": [{"id": "checkpoint", "root": state["folder"], "max_model_len": 512}]},
            "/server_info?config_format=json": {
                "vllm_config": {"scheduler_config": {"max_num_seqs": 7}},
                "vllm_env": {"VLLM_MAX_STOP_STRINGS": int(os.environ.get("VLLM_MAX_STOP_STRINGS", "4"))}}}
        self.reply(200 if self.path in pages else 404, pages.get(self.path, {}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        note(self.path + (" " + json.dumps(body, sort_keys=True)))
        if FAULT == "dies" and state["folder"] and body.get("max_tokens") == 9:
            os._exit(0)
        try:
            self.reply(200, POSTS[self.path](body))
        except Refused as refused:
            self.reply(400, {"error": {"message": str(refused), "code": 400}})
        except RuntimeError as failed:
            self.reply(500, {"error": {"message": f"Call to collective_rpc method failed: {failed}", "code": 500}})


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    if FAULT == "does not start":
        print("(EngineCore) ERROR ValueError: Available memory on node 0 (15.73/19.59 GiB) is less than requested",
              flush=True)
        print("RuntimeError: Engine core initialization failed. See root cause above.", flush=True)
        sys.exit(1)
    words = sys.argv[sys.argv.index("serve"):]
    state["folder"], state["weights"] = words[1], weights_of(words[1])
    socket = next(word for word in words if word.startswith("--uds=")).removeprefix("--uds=")
    note("start " + " ".join(words[1:]))
    Server(socket, Handler).serve_forever()


main()
