"""The service's refusals as exceptions."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional


class EvaldError(Exception):
    """Any error of this package."""


class ConnectionFailed(EvaldError):
    """The service was not reached, or the connection broke."""


class ServiceError(EvaldError):
    """The service refused a request. The text is the service's own: its `detail`, its remedy, and each of its `errors`.

    Attributes:
        status: of the answer (HTTP).
        type: of the problem, "urn:evald:problem:..." (RFC 9457).
        detail: what is wrong.
        remedy: what to do; "" if the service does not say.
        errors: [{"pointer": "/priority", "detail": ...}], one for each wrong member.
        retry_after: seconds after which the request may be repeated; None if the service does not say.
    """

    def __init__(self, status: int, problem: Dict[str, Any], retry_after: Optional[float] = None):
        self.status = status
        self.type: str = problem.get("type", "about:blank")
        self.detail: str = problem.get("detail") or problem.get("title") or f"status {status}"
        self.remedy: str = problem.get("remedy", "")
        self.errors: List[Dict[str, str]] = problem.get("errors", [])
        self.retry_after = retry_after
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [self.detail + (f" ({self.remedy})" if self.remedy else "")]
        more = [error.get("detail", "") for error in self.errors]
        if len(more) > 1 or (more and more[0] not in self.detail):
            lines += [f"- {text}" for text in more]
        return "\n".join(lines)


class InvalidRequest(ServiceError):
    """The request is not understood (400, 413, 415, 421, 431)."""


class Unauthorized(ServiceError):
    """No token, or an unknown one (401)."""


class Forbidden(ServiceError):
    """The token's role does not allow this (403)."""


class NotFound(ServiceError):
    """There is no such thing, or not yet (404)."""


class Conflict(ServiceError):
    """The thing is in a state that does not allow this (409)."""


class Refused(ServiceError):
    """The eval.yaml, a checkpoint or a task is wrong (422)."""


class TooMany(ServiceError):
    """Too many requests, runs or watches (429)."""


class Unavailable(ServiceError):
    """The service cannot answer now (5xx)."""


_CLASSES = {401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 422: Refused, 429: TooMany}


def error_of(status: int, body: bytes, retry_after: Optional[str]) -> ServiceError:
    """The exception for an answer. A body that is no problem document (of a proxy, say) is quoted."""
    try:
        problem = json.loads(body)
        if not isinstance(problem, dict):
            raise ValueError
    except ValueError:
        problem = {"detail": f"status {status}: {body[:200].decode('utf-8', 'replace')}"}
    try:
        seconds = float(retry_after) if retry_after else None
    except ValueError:  # a date
        seconds = None
    kind = _CLASSES.get(status, Unavailable if status >= 500 else InvalidRequest)
    return kind(status, problem, seconds)
