"""The service's objects that programs read most. docs/openapi.json describes all members."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class Progress(TypedDict):
    documents: int
    generated: int
    scored: int
    elapsed_seconds: float
    documents_per_second: Optional[float]
    remaining_seconds: Optional[float]
    phases: List[Dict[str, Any]]
    tasks: List[Dict[str, Any]]


class Run(TypedDict):
    id: str
    name: str
    user: str
    priority: int
    state: str
    checkpoint: str
    fingerprint: Optional[str]
    created: str
    started: Optional[str]
    ended: Optional[str]
    directory: str
    progress: Progress
    exit_status: Optional[int]
    problems: List[str]
    scores: Dict[str, Any]
    groups: Dict[str, Any]
    title: str
    tags: List[str]
    note: str
    verdict: Optional[str]


class Sample(TypedDict):
    doc_id: Optional[int]
    filter: Optional[str]
    correct: Optional[bool]
    scores: Dict[str, Any]
    prompt: Optional[str]
    continuations: List[str]
    answers: List[Any]
    thinking: Optional[List[Any]]
    truncated: Optional[List[bool]]
    detail: Any
    filtered: Any
    target: Any
    doc: Any


class Marks(TypedDict):
    run: str
    task: str
    so_far: Optional[Dict[str, int]]
    filters: List[str]
    filter: str
    documents: List[int]
    marks: str
    next: Optional[str]


class Event(TypedDict):
    sequence: int
    run: Optional[str]
    type: str
    data: Dict[str, Any]


class _Watch(TypedDict):
    id: str
    checkpoints: str
    which: str
    every: Optional[int]
    marker: Optional[str]
    settle_s: float
    poll_s: float
    user: str
    priority: int
    configured: bool
    created: Optional[str]
    submitted: int
    passed_over: int
    refused: int
    recent: List[Dict[str, Any]]
    problem: Optional[str]


class Watch(_Watch, total=False):
    sequence: int


# lm-evaluation-harness's shape: {"results": {task: {metric: value}}, "groups": ..., "configs": ...}
Results = Dict[str, Any]
