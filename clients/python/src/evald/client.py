"""The client."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

from . import _http
from .errors import ConnectionFailed, EvaldError, TooMany, Unavailable
from .models import Event, Marks, Results, Run, Sample, Watch

FINAL_STATES = ("done", "incomplete", "failed", "cancelled")

RunOrId = Union[str, Mapping[str, Any]]


class RunIncomplete(EvaldError):
    """A run ended without its results. `run` is the run; its `problems` say why."""

    def __init__(self, run: Run):
        self.run = run
        super().__init__(f"run {run['id']} is {run['state']}: {'; '.join(run['problems']) or 'no reason is given'}")


def _id(run: RunOrId) -> str:
    return _http.quoted(run if isinstance(run, str) else run["id"])


class Client:
    """A service. Any thread may use it.

    Args:
        url: of the service; default: EVALD_SERVER, else http://127.0.0.1:8642.
        token: of a user; default: EVALD_TOKEN, or what EVALD_TOKEN_FILE holds. On loopback none is needed.
        ca_file: certificates that sign the service's (PEM); default: EVALD_CA_FILE, else the system's.
        timeout: seconds without a byte of an answer after which a request has failed. Submissions are judged before
            they are answered, which may take a minute on a slow file system.
        patience: seconds for which a service that is away, or asks to come back later, is asked again, if a repeated
            request changes nothing.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, ca_file: Optional[str] = None,
                 timeout: float = 120, patience: float = 60):
        self._http = _http.Transport(
            url or os.environ.get("EVALD_SERVER") or "http://127.0.0.1:8642",
            _http.token_from_environment() if token is None else token,
            ca_file or os.environ.get("EVALD_CA_FILE") or None, timeout, patience)
        self._patience = patience

    @property
    def url(self) -> str:
        return self._http.url

    # ---- runs

    def submit(self, config: Union[Mapping[str, Any], str, Path], *, base: Union[str, Path, None] = None,
               set: Optional[List[str]] = None, user: Optional[str] = None, priority: Optional[int] = None,
               key: Optional[str] = None) -> Run:
        """Submits an evaluation.

        Args:
            config: what an eval.yaml says, as a dictionary, or the path of an eval.yaml here.
            base: the folder on the service's host from which relative paths start; default: the folder of the file, or
                the current one.
            set: overrides, "key.path=value".
            key: if a submission is repeated under its key, the answer is the first one's run. With a key a broken
                connection is mended by itself; without one it raises ConnectionFailed, and the run may be there.

        Raises:
            Refused: the submission could only fail; all its problems are named.
        """
        body: Dict[str, Any] = {"set": set, "user": user, "priority": priority}
        if isinstance(config, Mapping):
            body["config"] = dict(config)
            folder = Path.cwd()
        else:
            file = Path(config).absolute()
            body.update(yaml=file.read_text(encoding="utf-8"), file=str(file))
            folder = file.parent
        body["base"] = str(base if base is not None else folder)
        headers = {"Idempotency-Key": key} if key is not None else {}
        sent = {name: value for name, value in body.items() if value is not None}
        return self._http.json("POST", "/v1/runs", body=sent, headers=headers, again=key is not None)

    def run(self, run: RunOrId) -> Run:
        """The run as it is now."""
        return self._get(f"/v1/runs/{_id(run)}")

    def runs(self, *, state: Optional[str] = None, user: Optional[str] = None, name: Optional[str] = None,
             checkpoint: Optional[str] = None) -> Iterator[Run]:
        """All runs with these properties, the newest first. Further pages are asked for as they are needed."""
        return self._pages("/v1/runs", "runs", {"state": state, "user": user, "name": name, "checkpoint": checkpoint})

    def wait(self, run: RunOrId, timeout: Optional[float] = None, *, check: bool = True) -> Run:
        """Waits until the run is over and returns it.

        Raises:
            RunIncomplete: it ended without its results, unless `check` is False.
            TimeoutError: `timeout` seconds have passed; the run goes on.
        """
        until = None if timeout is None else time.monotonic() + timeout
        pause = 0.1
        while True:
            now = self.run(run)
            if now["state"] in FINAL_STATES:
                if check and now["state"] != "done":
                    raise RunIncomplete(now)
                return now
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"run {now['id']} is {now['state']} after {timeout:g} s")
            left = pause if until is None else min(pause, max(0.0, until - time.monotonic()))
            time.sleep(left)
            pause = min(1.5 * pause, 2.0)

    def cancel(self, run: RunOrId) -> Run:
        return self._act(run, "cancel")

    def pause(self, run: RunOrId) -> Run:
        """Trials under way are finished, and no more are begun."""
        return self._act(run, "pause")

    def resume(self, run: RunOrId) -> Run:
        """A paused run goes on; one that ended without its results is taken up again."""
        return self._act(run, "resume")

    def change(self, run: RunOrId, *, priority: Optional[int] = None, title: Optional[str] = None,
               tags: Optional[List[str]] = None, note: Optional[str] = None) -> Run:
        """Sets what is given, and leaves the rest as it is."""
        body = {"priority": priority, "title": title, "tags": tags, "note": note}
        sent = {name: value for name, value in body.items() if value is not None}
        return self._http.json("PATCH", f"/v1/runs/{_id(run)}", body=sent, again=True)

    # ---- results

    def results(self, run: RunOrId) -> Results:
        """results.json: lm-evaluation-harness's shape."""
        return self._get(f"/v1/runs/{_id(run)}/results")

    def samples(self, run: RunOrId, task: str, *, correct: Optional[bool] = None,
                filter: Optional[str] = None) -> Iterator[Sample]:
        """The samples of a task, also while it is at work: those that are scored so far."""
        path = f"/v1/runs/{_id(run)}/samples/{_http.quoted(task)}"
        return self._pages(path, "samples", {"correct": correct, "filter": filter})

    def marks(self, run: RunOrId, task: str, *, filter: Optional[str] = None) -> Iterator[Marks]:
        """Which documents are right ("r"), wrong ("w") or neither ("-"), by pages."""
        path, cursor = f"/v1/runs/{_id(run)}/marks/{_http.quoted(task)}", None
        while True:
            page = self._get(path, filter=filter, cursor=cursor)
            yield page
            cursor = page["next"]
            if cursor is None:
                return

    def verdict(self, run: RunOrId) -> Dict[str, Any]:
        """What the run's gates say. Raises NotFound for a run without gates."""
        return self._get(f"/v1/runs/{_id(run)}/verdict")

    def report(self, run: RunOrId) -> str:
        """The run's report, a page of HTML."""
        return self._http.ask("GET", f"/v1/runs/{_id(run)}/report", again=True).decode("utf-8")

    # ---- events

    def follow(self, run: Optional[RunOrId] = None, *, after: Optional[int] = None) -> Iterator[Event]:
        """Events as they happen: those of a run from its beginning until it is over, or those of all runs from now on
        without end. A broken connection is taken up again after the last event, for `patience` seconds."""
        path = "/v1/events" if run is None else f"/v1/runs/{_id(run)}/events"
        away_since = None
        while True:
            try:
                with self._http.open("GET", path, {"after": after}, None, {"Accept": "text/event-stream"}, 45) as stream:
                    away_since = None
                    for event in _http.events_of(stream):
                        after = event["sequence"]
                        yield event
                        if run is not None and event["type"] == "run.state" and event["data"]["state"] in FINAL_STATES:
                            return
                failure: EvaldError = ConnectionFailed(f"{self.url}: the stream of events ended")
            except (ConnectionFailed, TooMany, Unavailable) as error:
                failure = error
            except (OSError, EOFError, ValueError) as error:  # within the stream
                failure = ConnectionFailed(f"{self.url}: {error}")
            away_since = away_since or time.monotonic()
            if time.monotonic() - away_since > self._patience:
                raise failure
            time.sleep(getattr(failure, "retry_after", None) or 0.5)

    # ---- watches

    def add_watch(self, checkpoints: str, config: Mapping[str, Any], **settings: Any) -> Watch:
        """Evaluates the checkpoints that come into a folder. `settings` as in docs/serve.md: which, every, marker, ..."""
        body = {"checkpoints": checkpoints, "config": dict(config), **settings}
        return self._http.json("POST", "/v1/watches", body=body, again=True)

    def watches(self) -> List[Watch]:
        return self._get("/v1/watches")["watches"]

    def watch(self, watch: str) -> Watch:
        return self._get(f"/v1/watches/{_http.quoted(watch)}")

    def remove_watch(self, watch: str) -> Watch:
        return self._http.json("DELETE", f"/v1/watches/{_http.quoted(watch)}")

    def announce(self, path: str) -> Dict[str, Any]:
        """Tells the watches that a checkpoint is complete."""
        return self._http.json("POST", "/v1/checkpoints", body={"path": path}, again=True)

    # ---- the service

    def queue(self) -> List[Dict[str, Any]]:
        return self._get("/v1/queue")["queue"]

    def workers(self) -> List[Dict[str, Any]]:
        return self._get("/v1/workers")["workers"]

    def hosts(self) -> List[Dict[str, Any]]:
        return self._get("/v1/hosts")["hosts"]

    def launchers(self) -> List[Dict[str, Any]]:
        return self._get("/v1/launchers")["launchers"]

    # ---- requests

    def _get(self, path: str, **query: Any) -> Any:
        return self._http.json("GET", path, query=query, again=True)

    def _act(self, run: RunOrId, action: str) -> Run:
        return self._http.json("POST", f"/v1/runs/{_id(run)}/{action}", again=True)

    def _pages(self, path: str, member: str, query: Dict[str, Any]) -> Iterator[Any]:
        cursor = None
        while True:
            page = self._get(path, **query, cursor=cursor)
            yield from page[member]
            cursor = page["next"]
            if cursor is None:
                return
