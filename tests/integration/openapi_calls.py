"""Calls every route of a service through a client that openapi-python-client generated, and compares each answer with
plain HTTP's. Needs httpx and attrs: test_openapi_client.py runs this program in the generator's own environment.

usage: openapi_calls.py FOLDER-OF-THE-CLIENT URL SCRATCH-FOLDER

Prints the operationIds that were called, as a JSON list.
"""
import datetime
import importlib
import io
import json
import pathlib
import re
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
PACKAGE = pathlib.Path(sys.argv[1]).name
URL, SCRATCH = sys.argv[2], pathlib.Path(sys.argv[3])
QUICKSTART = pathlib.Path(__file__).resolve().parents[2] / "examples" / "quickstart"
OVER = ("done", "incomplete", "failed", "cancelled")
models = importlib.import_module(PACKAGE + ".models")
client = importlib.import_module(PACKAGE).Client(base_url=URL, timeout=60)
File = importlib.import_module(PACKAGE + ".types").File
called = set()


def operation(tag, name):
    """The generated module of an operation, which is counted as called."""
    called.add(re.sub(r"_(\w)", lambda found: found.group(1).upper(), name))
    return importlib.import_module(f"{PACKAGE}.api.{tag}.{name}")


def plain(method, path, body=None):
    request = urllib.request.Request(URL + path, method=method, data=body)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def same(value):
    """Times as moments: the client parses them, so they come back in another form."""
    if isinstance(value, dict):
        return {key: same(member) for key, member in value.items()}
    if isinstance(value, list):
        return [same(member) for member in value]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    return value


def get(tag, name, path, *arguments, status=200, **parameters):
    """The client's answer, once it is also that of a plain GET: the service may be at work between the two."""
    module = operation(tag, name)
    for _ in range(50):
        answer = module.sync_detailed(*arguments, client=client, **parameters)
        other_status, text = plain("GET", path)
        if answer.parsed is None:
            raise SystemExit(f"{name}: the client has nothing for status {answer.status_code}: {text[:500]}")
        if hasattr(answer.parsed, "to_dict"):
            mine, other = same(answer.parsed.to_dict()), same(json.loads(text))
        else:
            mine, other = answer.parsed, text.decode()
        if (int(answer.status_code), mine) == (other_status, other):
            if other_status != status:
                raise SystemExit(f"{name}: status {other_status}: {text[:500]}")
            return answer.parsed
        if name == "get_metrics" and re.sub(r" \S+$", "", mine, flags=re.M) == re.sub(r" \S+$", "", other, flags=re.M):
            return answer.parsed  # the same lines; each request changes their numbers
        time.sleep(0.1)
    raise SystemExit(f"{name}: status {answer.status_code} and {mine}\nagainst {other_status} and {other}")


def act(tag, name, *arguments, status=200, **parameters):
    answer = operation(tag, name).sync_detailed(*arguments, client=client, **parameters)
    if answer.status_code != status:
        raise SystemExit(f"{name}: status {answer.status_code}, not {status}: {answer.content[:1000]}")
    return answer.parsed


def submit(status=201, **changes):
    config = {"tasks": ["sums", "choice"], "task_dirs": str(SCRATCH / "tasks"), "engine": {"name": "emulated"}, **changes}
    body = models.Submission(config=models.Config.from_dict(config))
    return act("runs", "submit_run", body=body, idempotency_key=json.dumps(config).replace(" ", "")[:200], status=status)


def wait(run, states=OVER):
    for _ in range(600):
        now = get("runs", "get_run", f"/v1/runs/{run.id}", run.id)
        if now.state in states:
            return now
        time.sleep(0.05)
    raise SystemExit(f"{run.id} is {now.state}, not {states}")


def check(condition, what):
    if not condition:
        raise SystemExit(f"openapi_calls: {what}")


def runs():
    rules = [{"task": "sums", "metric": "exact_match", "min": 0}]
    run = submit(gates={"rules": rules})
    check(submit(gates={"rules": rules}, status=200).id == run.id, "the key gives the first run")
    done = wait(run)
    check(done.state == "done" and done.verdict == "pass", done)
    check(done.scores["sums"].metric == "exact_match", done.scores)
    page = get("runs", "list_runs", "/v1/runs?state=done&limit=10", state=models.RunState.DONE, limit=10)
    check([entry.id for entry in page.runs] == [run.id], page)
    changed = act("runs", "change_run", run.id, body=models.RunChange(title="a title", tags=["seed 1"]))
    check((changed.title, changed.tags) == ("a title", ["seed 1"]), changed)
    path = f"/v1/runs/{run.id}"
    results = get("results", "get_results", path + "/results", run.id)
    check("exact_match,none" in results.results["sums"].additional_properties, results.results)
    check(results.n_samples["sums"].effective == 40, results.n_samples)
    samples = get("results", "list_samples", path + "/samples/sums?correct=false&limit=3", run.id, "sums", correct=False, limit=3)
    check(len(samples.samples) == 3 and isinstance(samples.samples[0].answers[0][0], str), samples)
    choices = get("results", "list_samples", path + "/samples/choice", run.id, "choice")
    check(choices.samples[0].answers[0][0][1] in ("True", "False"), choices.samples[0].answers)
    check(len(get("results", "list_marks", path + "/marks/choice", run.id, "choice").marks) == 20, "marks")
    check(get("results", "get_timeline", path + "/timeline", run.id).trace_events[0].ph, "the timeline")
    check(get("results", "get_verdict", path + "/verdict", run.id).gates[0].outcome == "pass", "the verdict")
    check("<!doctype html>" in get("results", "get_report", path + "/report", run.id), "the report")
    wrong = get("runs", "get_run", "/v1/runs/none", "none", status=404)
    check(isinstance(wrong, models.Problem) and wrong.status == 404, wrong)
    return run


def actions():
    slow = submit(engine={"name": "emulated", "delay_ms": 1000, "concurrency": 1})
    wait(slow, ("running",))
    get("fleet", "list_queue", "/v1/queue")
    check(act("runs", "pause_run", slow.id).state == "paused", "paused")
    check(act("runs", "resume_run", slow.id).state in ("queued", "preparing", "running"), "resumed")
    check(act("runs", "cancel_run", slow.id).state in ("cancelling", "cancelled"), "cancelled")
    check(wait(slow).state == "cancelled", "cancelled in the end")


def events(run):
    """Both streams, line by line, up to the run's end."""
    kinds = dict(re.findall(r"([a-z.]+) ([A-Z]\w+)", document["components"]["schemas"]["Event"]["properties"]["type"]["description"]))
    check("run.state" in kinds, kinds)
    for name, arguments, parameters in (("follow_run", (run.id,), {}), ("follow_all", (), {"after": 0})):
        seen = []
        with client.get_httpx_client().stream(**operation("events", name)._get_kwargs(*arguments, **parameters)) as stream:
            for line in stream.iter_lines():
                if not line.startswith("data: "):
                    continue
                event = models.Event.from_dict(json.loads(line[6:]))
                data = event.data.to_dict()
                if event.type_ in kinds:
                    model = getattr(models, kinds[event.type_])
                    check(same(model.from_dict(data).to_dict()) == same(data), f"{event.type_} is no {kinds[event.type_]}: {data}")
                    check(not model.from_dict(data).additional_properties, f"{event.type_} has undocumented members: {data}")
                else:
                    check(event.type_ == "events.lost", f"an undocumented type: {event.type_}")
                seen.append(event.type_)
                if event.run == run.id and data.get("state") == "done":
                    break
        check({"run.state", "task.done", "run.verdict"} <= set(seen), seen)


def fleet():
    """A checkpoint is staged, by a run of evald's own engine, and announced to a watch."""
    folder = SCRATCH / "checkpoints"
    folder.mkdir()
    (folder / "step-1").symlink_to(QUICKSTART / "checkpoints" / "step-00100")
    config = {"checkpoint": str(QUICKSTART / "checkpoints" / "step-00100"), "engine": {"name": "native"}, "limit": 2}
    staged = submit(**config)
    registration = models.WatchRegistration.from_dict({
        "checkpoints": str(folder), "settle_s": 0, "poll_s": 60, "which": "newest",
        "config": {"tasks": ["sums"], "task_dirs": str(SCRATCH / "tasks"), "engine": {"name": "emulated"}}})
    watch = act("watches", "add_watch", body=registration, status=201)
    get("watches", "get_watch", f"/v1/watches/{watch.id}", watch.id)
    check([w.id for w in get("watches", "list_watches", "/v1/watches").watches] == [watch.id], "the watches")
    announced = act("fleet", "announce_checkpoint", body=models.NewCheckpoint(path=str(folder / "step-1")))
    check(announced.checkpoint.endswith("step-1") or announced.checkpoint.endswith("step-00100"), announced)
    check(act("watches", "remove_watch", watch.id).id == watch.id, "the removed watch")
    done = wait(staged)
    check(done.state == "done", f"{done.state}: {done.problems}")
    for _ in range(100):  # an agent tells a moment later what it staged
        if there := get("fleet", "list_staged", "/v1/staged").staged:
            break
        time.sleep(0.1)
    check([s.fingerprint for s in there] == [done.fingerprint], f"staged: {there}, not {done.fingerprint}")
    check(get("fleet", "list_workers", "/v1/workers").workers, "workers")
    check(get("fleet", "list_hosts", "/v1/hosts").hosts[0].id == "local", "hosts")
    check(get("fleet", "list_launchers", "/v1/launchers").launchers == [], "launchers")
    refused = act("fleet", "release_node", "slurm", "n1", status=404)
    check(isinstance(refused, models.Problem) and "no launcher" in refused.detail, refused)
    logs = get("fleet", "list_logs", "/v1/logs").logs
    check(get("fleet", "get_log", f"/v1/logs/{logs[0].log}", logs[0].log) is not None, "a log")


def agents():
    """No agent of another host is here: both ways are told so."""
    key, agent = "0" * 32, "agent-0"
    get("agents", "connect_agent", "/v1/agents/connect", status=plain("GET", "/v1/agents/connect")[0])
    for name, path, arguments in (
            ("list_prepared", f"/{agent}/prepared/{key}", (agent, key)),
            ("get_prepared", f"/{agent}/prepared/{key}/task.json", (agent, key, "task.json")),
            ("list_checkpoint", f"/{agent}/checkpoints/{key}", (agent, key)),
            ("get_checkpoint", f"/{agent}/checkpoints/{key}/config.json", (agent, key, "config.json")),
            ("get_generations", f"/{agent}/generations/{key}", (agent, key))):
        status = plain("GET", "/v1/agents" + path)[0]
        check(status in (403, 404), f"{name}: {status}")
        get("agents", name, "/v1/agents" + path, *arguments, status=status)
    put = operation("agents", "put_file")
    answer = put.sync_detailed(agent, key, client=client, body=File(payload=io.BytesIO(b"abcd")), file="scores.jsonl", offset=0,
                               bytes_=4)
    check(answer.status_code in (400, 403, 404), f"put_file: {answer.status_code} {answer.content}")
    check(isinstance(answer.parsed, models.Problem), answer.parsed)
    choose = operation("agents", "choose_source")
    answer = choose.sync_detailed(agent, key, client=client, body=models.SourceQuestion(have=1, total=2, source="service"))
    check(answer.status_code in (403, 404), f"choose_source: {answer.status_code} {answer.content}")


def service():
    check(get("service", "get_health", "/healthz").status == "ok", "health")
    check(get("service", "get_readiness", "/readyz").status == "ready", "readiness")
    check("evald_runs" in get("service", "get_metrics", "/metrics"), "metrics")
    check(get("service", "get_open_api", "/v1/openapi.json").to_dict() == document, "the document")


document = json.loads(plain("GET", "/v1/openapi.json")[1])
first = runs()
actions()
events(first)
fleet()
agents()
service()
print(json.dumps(sorted(called)))
