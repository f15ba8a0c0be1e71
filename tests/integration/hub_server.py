"""A small Hugging Face hub on this machine: the routes that evald fetch calls, a second host for large files, and faults."""
import hashlib
import http.server
import json
import threading
import urllib.parse

BRANCH = "main"
CONVERTED = "refs/convert/parquet"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repository:
    """`files` by branch: {path: bytes}. Those of `large` paths are in large-file storage, on the other host."""

    def __init__(self, files, large=(), gated=False, converted=None):
        self.large, self.gated = set(large), gated
        self.branches = {}
        self.commits = {}
        self.put(BRANCH, files)
        if converted is not None:
            self.put(CONVERTED, converted)

    def put(self, branch, files):
        """Makes a commit of the files."""
        commit = hashlib.sha1(json.dumps([branch, len(self.commits)]).encode()).hexdigest()
        self.branches[branch] = commit
        self.commits[commit] = dict(files)

    def commit(self, revision):
        return self.branches.get(revision, revision if revision in self.commits else None)

    def is_large(self, path):
        return path in self.large or path.endswith(".parquet")


class HubServer:
    """Faults are consumed in order: `faults[path]` is a list of functions that get the handler and the bytes that would
    be sent, and answer themselves. A path is that of a file, or of an API route."""

    def __init__(self, repositories, page=1000, moved=None):
        self.repositories, self.page, self.moved = repositories, page, moved or {}
        self.faults = {}
        self.calls = []          # (host, path, fields)
        self.lock = threading.Lock()
        self.token = "hf_secret"
        self.hub, self.url = self.serve(self.answer_hub)
        self.cdn, self.cdn_url = self.serve(self.answer_cdn)

    def serve(self, answer):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_GET(self):
                with outer.lock:
                    outer.calls.append((answer.__name__[7:], self.path, dict(self.headers)))
                try:
                    answer(self)
                except OSError:
                    self.close_connection = True

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.handle_error = lambda *arguments: None
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server, f"http://127.0.0.1:{server.server_port}"

    def close(self):
        for server in (self.hub, self.cdn):
            server.shutdown()
            server.server_close()

    def called(self, part):
        with self.lock:
            return [call for call in self.calls if part in call[1]]

    # ---- answers

    def answer_hub(self, handler):
        path = urllib.parse.urlsplit(handler.path).path
        parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] == ["api", "datasets"]:
            name, rest = "/".join(parts[2:4]), parts[4:]
        elif parts[0] == "datasets":
            name, rest = "/".join(parts[1:3]), parts[3:]
        else:
            return self.refuse(handler, 404, "")
        if name in self.moved:
            return self.send(handler, 307, b"", Location=path.replace(name, self.moved[name]))
        fault = self.fault(path)
        if fault:
            return fault(handler, b"")
        repository = self.repositories.get(name)
        if repository is None:
            return self.refuse(handler, 401, "RepoNotFound")
        commit = repository.commit(rest[1])
        if commit is None:
            return self.refuse(handler, 404, "RevisionNotFound")
        files = repository.commits[commit]
        if rest[0] == "revision":
            return self.send_json(handler, {"id": name, "sha": commit, "gated": repository.gated})
        if rest[0] == "tree":
            return self.send_tree(handler, repository, files)
        file = "/".join(rest[2:])
        if repository.gated and handler.headers.get("Authorization") != f"Bearer {self.token}":
            return self.refuse(handler, 401, "GatedRepo")
        if file not in files:
            return self.refuse(handler, 404, "EntryNotFound")
        if repository.is_large(file):
            to = f"{self.cdn_url}/{sha256(files[file])}?name={urllib.parse.quote(file)}&signature=x"
            return self.send(handler, 302, b"", Location=to)
        self.send_file(handler, file, files[file])

    def answer_cdn(self, handler):
        oid = urllib.parse.urlsplit(handler.path).path.strip("/")
        for repository in self.repositories.values():
            for files in repository.commits.values():
                for path, data in files.items():
                    if sha256(data) == oid:
                        return self.send_file(handler, path, data)
        self.refuse(handler, 404, "")

    def send_tree(self, handler, repository, files):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)
        begin = int(query.get("cursor", ["0"])[0])
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "data"}]
        for path, data in sorted(files.items()):
            entry = {"type": "file", "path": path, "size": len(data), "oid": git_blob(data)}
            if repository.is_large(path):
                entry["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 130}
            entries.append(entry)
        fields = {}
        if begin + self.page < len(entries):
            route = handler.path.split("?")[0]
            # As a mirror does that passes on the link of the hub
            fields["Link"] = f'<https://huggingface.co{route}?recursive=true&cursor={begin + self.page}>; rel="next"'
        self.send_json(handler, entries[begin:begin + self.page], **fields)

    def send_file(self, handler, path, data):
        fault = self.fault(path)
        if fault:
            return fault(handler, data)
        first, fields = self.first_byte(handler, data)
        if first >= len(data) > 0:
            return self.send(handler, 416, b"")
        self.send(handler, 206 if first else 200, data[first:], **fields)

    @staticmethod
    def first_byte(handler, data):
        """The first byte that is asked for, and the header's fields of the answer."""
        fields = {"ETag": f'"{sha256(data)}"'}
        wanted = handler.headers.get("Range")
        if not wanted or handler.headers.get("If-Range", fields["ETag"]) != fields["ETag"]:
            return 0, fields
        first = int(wanted.removeprefix("bytes=").split("-")[0])
        return first, {**fields, "Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"}

    # ---- faults

    def fault(self, path):
        with self.lock:
            waiting = self.faults.get(path)
            return waiting.pop(0) if waiting else None

    @staticmethod
    def cut(share=0.5):
        """The connection ends within what was asked for; the length and the ETag are right."""
        def answer(handler, data):
            first, fields = HubServer.first_byte(handler, data)
            HubServer.head(handler, 206 if first else 200, len(data) - first, fields)
            handler.wfile.write(data[first:first + int((len(data) - first) * share)])
            handler.wfile.flush()
            handler.close_connection = True
            handler.connection.close()
        return answer

    @staticmethod
    def status(code, **fields):
        def answer(handler, data):
            HubServer.send(handler, code, b"later", **{name.replace("_", "-"): value for name, value in fields.items()})
        return answer

    @staticmethod
    def short(by=7):
        return lambda handler, data: HubServer.send(handler, 200, data[:-by])

    @staticmethod
    def other():
        """As many bytes as expected, and not those."""
        return lambda handler, data: HubServer.send(handler, 200, bytes(byte ^ 1 for byte in data))

    @staticmethod
    def page_of_proxy():
        return lambda handler, data: HubServer.send(handler, 200, b"<html>log in</html>", **{"Content-Type": "text/html"})

    # ---- HTTP

    @staticmethod
    def head(handler, status, length, fields):
        handler.send_response(status)
        handler.send_header("Content-Length", str(length))
        for name, value in fields.items():
            handler.send_header(name, value)
        handler.end_headers()

    @staticmethod
    def send(handler, status, data, **fields):
        HubServer.head(handler, status, len(data), fields)
        handler.wfile.write(data)

    @staticmethod
    def send_json(handler, value, **fields):
        HubServer.send(handler, 200, json.dumps(value).encode(), **{"Content-Type": "application/json", **fields})

    @staticmethod
    def refuse(handler, status, code):
        HubServer.send(handler, status, b'{"error": "no"}', **({"X-Error-Code": code} if code else {}))
