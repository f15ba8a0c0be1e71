"""Client of evald's REST interface, by Python's standard library alone.

    client = evald.Client("http://127.0.0.1:8642")
    run = client.wait(client.submit("eval.yaml"))
"""

from .client import FINAL_STATES, Client, RunIncomplete
from .errors import (
    Conflict,
    ConnectionFailed,
    EvaldError,
    Forbidden,
    InvalidRequest,
    NotFound,
    Refused,
    ServiceError,
    TooMany,
    Unauthorized,
    Unavailable,
)
from .models import Event, Marks, Progress, Results, Run, Sample, Watch

__all__ = [
    "FINAL_STATES", "Client", "Conflict", "ConnectionFailed", "EvaldError", "Event", "Forbidden", "InvalidRequest",
    "Marks", "NotFound", "Progress", "Refused", "Results", "Run", "RunIncomplete", "Sample", "ServiceError", "TooMany",
    "Unauthorized", "Unavailable", "Watch",
]
