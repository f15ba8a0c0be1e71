"""Requests to the service: tokens, TLS, and repetition of what may be repeated."""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional

from .errors import ConnectionFailed, EvaldError, ServiceError, error_of

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_PASSING = (429, 502, 503, 504)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token goes to the service that was named, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Transport:
    """Any thread may use it: each request has a connection of its own."""

    def __init__(self, url: str, token: str, ca_file: Optional[str], timeout: float, patience: float):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise EvaldError(f"url: found '{url}', expected an address such as http://127.0.0.1:8642")
        self.url = url.rstrip("/")
        self._token, self._timeout, self._patience = token, timeout, patience
        context = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        handlers = [urllib.request.ProxyHandler({}), _NoRedirects()]
        if context:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def open(self, method: str, path: str, query: Mapping[str, Any], body: Any, headers: Mapping[str, str],
             timeout: Optional[float] = None) -> http.client.HTTPResponse:
        """One request. Raises ServiceError or ConnectionFailed."""
        words = [(key, _word(value)) for key, value in query.items() if value is not None]
        address = self.url + path + ("?" + urllib.parse.urlencode(words) if words else "")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address, data, dict(headers), method=method)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            return self._opener.open(request, timeout=timeout or self._timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise error_of(error.code, error.read(1 << 20), error.headers.get("Retry-After")) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise ConnectionFailed(f"{self.url}: {reason}") from error

    def ask(self, method: str, path: str, query: Optional[Mapping[str, Any]] = None, body: Any = None,
            headers: Optional[Mapping[str, str]] = None, again: bool = False) -> bytes:
        """The answer's body. `again`: the request changes nothing if it is repeated, so a broken connection and
        refusals that pass are waited out for `patience` seconds."""
        begin = time.monotonic()
        pause = _FIRST_PAUSE_S
        while True:
            try:
                with self.open(method, path, query or {}, body, headers or {}) as answer:
                    return answer.read()
            except ServiceError as error:
                if not again or error.status not in _PASSING:
                    raise
                failure: EvaldError = error
                wait = error.retry_after if error.retry_after is not None else pause
            except ConnectionFailed as error:
                failure, wait = error, pause
                if not again:
                    raise
            except (OSError, http.client.HTTPException) as error:  # within the body
                failure, wait = ConnectionFailed(f"{self.url}: {error}"), pause
                if not again:
                    raise failure from error
            if time.monotonic() - begin + wait > self._patience:
                raise failure
            time.sleep(wait * random.uniform(0.5, 1.0) if wait == pause else wait)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def json(self, method: str, path: str, **options: Any) -> Any:
        return json.loads(self.ask(method, path, **options))


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def quoted(part: str) -> str:
    """A part of a path."""
    return urllib.parse.quote(part, safe="")


def token_from_environment() -> str:
    """EVALD_TOKEN, or the first line of the file EVALD_TOKEN_FILE; "" without either."""
    if os.environ.get("EVALD_TOKEN"):
        return os.environ["EVALD_TOKEN"]
    file = os.environ.get("EVALD_TOKEN_FILE")
    return Path(file).read_text(encoding="utf-8").strip() if file else ""


def events_of(answer: http.client.HTTPResponse) -> Iterator[Any]:
    """The events of a stream (Server-Sent Events) as long as the connection lasts."""
    data: List[str] = []
    for raw in answer:
        line = raw.decode("utf-8").rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].lstrip(" "))
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []
