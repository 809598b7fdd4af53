"""Whatever is sent to whatever endpoint or route: refused in words, and nothing of the inside."""

import json
import tempfile
from pathlib import Path

import httpx
import pytest

from tests.mutations import VALUES

ROOT = Path(__file__).resolve().parents[2]
INSIDE = (
    "Traceback",
    "site-packages",
    'File "',
    str(ROOT),
    str(Path.home()),
    tempfile.gettempdir(),
)
TEXTS = (
    "",
    "a [MASK]",
    "x" * 200,
    "<img src=x onerror=alert(1)>",
    "../../etc/passwd",
    "a\0b",
    "1e999",
)
NESTED = ({"text": ["a"]}, [[[[]]]], {"value": {"text": 3}}, [None] * 40, {"__class__": "x"})
SENT = (*VALUES, *TEXTS, *NESTED)
OUTSIDE = (
    "/cloze/%2e%2e/primer/english-life.txt",
    "/cloze/app/%2e%2e/tests/app/driver.js",
    "/cloze/..%2fprimer/english-life.txt",
    "/gradio_api/file=assets/primer/english-life.txt",
)
"""What lies on the disk beside what is served."""
ROUTES = (
    *("/train/runs", "/train/shown", "/train/texts", "/train/followed", "/train/runs/x"),
    *("/train/runs/..%2f..%2fetc", "/train/runs/x/start", "/train/runs/x/config"),
    *("/train/runs/x/reports.csv", "/train/runs/x/model.zip", "/train/runs/x/guess"),
    *("/train/runs/x/try", "/health", "/metrics", "/config", "/", "/gradio_api/info"),
    *("/gradio_api/file=/etc/passwd", "/gradio_api/file=app.py", "/gradio_api/heartbeat/x"),
    *("/gradio_api/run/predict", "/gradio_api/queue/join", "/gradio_api/call/fill"),
    *(
        "/gradio_api/component_server",
        "/gradio_api/reset",
        "/gradio_api/cancel",
        "/gradio_api/stream/x",
    ),
    *("/gradio_api/startup-events", "/gradio_api/queue/data", "/theme.css"),
    *(
        "/proxy=http://127.0.0.1/",
        "/gradio_api/upload",
        "/login",
        "/token",
        "/user",
        "/monitoring/x",
    ),
    *(
        "/gradio_api/deep_link",
        "/gradio_api/process_recording",
        "/gradio_api/dev/reload",
        "/robots.txt",
    ),
    *("/assets/x", "/svelte/x", "/custom_component/x/y/z/w", "/manifest.json"),
    *OUTSIDE,
)


@pytest.fixture(scope="module")
def client(server):
    headers = {"x-cloze": "train", "content-type": "application/json"}
    with httpx.Client(base_url=server, timeout=60, headers=headers) as client:
        yield client


@pytest.fixture(scope="module")
def endpoints(client):
    """Every function of the page that Python answers, the private ones too."""
    found = [each for each in client.get("/config").json()["dependencies"] if each["backend_fn"]]
    assert len(found) > 80
    return found


def value(draw):
    return json.loads(json.dumps(draw.choice(SENT)))


def check(answer):
    said = answer.text
    assert not [each for each in INSIDE if each in said], said[:2000]
    assert answer.status_code < 500 or answer.json()["error"], said[:2000]
    assert '"error":null' not in said.replace(" ", "") or '"success":true' in said, said[:2000]


def test_wrong_calls_of_endpoints(gate, client, endpoints):
    for draw in gate.cases(60, 1_000):
        endpoint = draw.choice(endpoints)
        count = max(0, len(endpoint["inputs"]) + draw.choice((0, 0, 0, 0, 0, -1, 1)))
        session = f"gate{draw.randrange(3)}"
        body = {
            "data": [value(draw) for _ in range(count)],
            "fn_index": endpoint["id"],
            "session_hash": session,
            "event_data": value(draw) if draw.random() < 0.5 else None,
            "trigger_id": draw.choice((None, 1)),
        }
        if draw.random() < 0.1:
            body[draw.choice(sorted(body))] = value(draw)
        content = json.dumps(body).encode()
        if endpoint["queue"] is not False:
            joined = client.post("/gradio_api/queue/join", content=content)
            check(joined)
            if joined.status_code == 200 and body["session_hash"] == session:
                check(client.get("/gradio_api/queue/data", params={"session_hash": session}))
        else:
            check(client.post("/gradio_api/run/predict", content=content))


def test_wrong_calls_of_routes(gate, client):
    for beside in ("assets/primer/english-life.txt", "tests/app/driver.js"):
        assert (ROOT / beside).is_file()
    for path in OUTSIDE:
        check_route(path, client.get(path))
    for draw in gate.cases(60, 500):
        path = draw.choice(ROUTES)
        query = {
            draw.choice(("offset", "step", "name", "kind", "full")): str(value(draw))[:500].encode(
                "utf-8", "replace"
            )
        }
        method = draw.choice(("GET", "GET", "POST", "POST", "PUT", "DELETE", "HEAD"))
        content = json.dumps(value(draw)).encode() if draw.random() < 0.8 else b"{\xff"
        if draw.random() < 0.3:
            content = json.dumps(
                {draw.choice(("run", "seen", "text", "confirm")): value(draw)}
            ).encode()
        with client.stream(method, path, params=query, content=content) as answer:
            if "event-stream" not in answer.headers.get("content-type", ""):
                answer.read()
                if "javascript" not in answer.headers.get("content-type", ""):
                    check_route(path, answer)


def check_route(path, answer):
    """Gradio's own configuration names its version and no place; a page is no error."""
    assert path not in OUTSIDE or answer.status_code >= 400, path
    if answer.status_code >= 400 or path.startswith("/train"):
        check(answer)
