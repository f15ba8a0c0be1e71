"""A server that plays judge: an OpenAI-compatible API whose answers a test decides."""
import collections
import hashlib
import http.server
import json
import re
import socket
import struct
import threading
import time

RESET = b"RESET"  # the connection is reset in place of an answer


class JudgeServer:
    """Answers each call with what `answer(server, number, body)` says for the document of that number, the first number
    in the prompt: a text for a whole answer, or bytes for the raw end of the connection, or a pair of a status and a
    body."""

    def __init__(self, answer, tokens=(20, 5), key=None):
        self.answer, self.tokens, self.key = answer, tokens, key
        self.calls = collections.Counter()      # by body
        self.documents = collections.Counter()  # by number
        self.bodies, self.paths, self.keys = [], set(), set()
        self.lock, self.under_way, self.most_under_way = threading.Lock(), 0, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.lock:
                    outer.under_way += 1
                    outer.most_under_way = max(outer.most_under_way, outer.under_way)
                try:
                    outer.play(self, body)
                except OSError:
                    self.close_connection = True
                finally:
                    with outer.lock:
                        outer.under_way -= 1

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *arguments: None  # a client that was killed resets its connections
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def play(self, handler, body):
        call = json.loads(body)
        number = int(re.search(r"\d+", call["messages"][-1]["content"]).group())
        with self.lock:
            self.calls[body] += 1
            self.documents[number] += 1
            self.bodies.append(call)
            self.paths.add(handler.path)
            self.keys.add(handler.headers.get("Authorization"))
        said = self.answer(self, number, call)
        if said is RESET:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            handler.close_connection = True
            return
        if isinstance(said, bytes):
            handler.wfile.write(said)
            handler.wfile.flush()
            handler.close_connection = True
            return
        status, text = said if isinstance(said, tuple) else (200, json.dumps({
            "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": self.tokens[0], "completion_tokens": self.tokens[1]}}))
        data = text.encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        if status == 429:
            handler.send_header("Retry-After", "0")
        handler.end_headers()
        handler.wfile.write(data)

    def forget(self):
        with self.lock:
            self.calls.clear()
            self.documents.clear()
            self.bodies.clear()

    def key_of(self, body):
        """The name under which evald keeps the answer to a call (docs/formats.md)."""
        return hashlib.sha256(self.url.encode() + b"\n" + body).hexdigest()[:32]


def hang(seconds):
    time.sleep(seconds)
    return b""
