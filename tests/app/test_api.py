"""The named endpoints as a script uses them, and what the server lets in and out."""

import http.client
import re
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from app.serving import api
from app.serving.server import APP, STATIC
from core_models.prediction import fill

SENTENCE = "The capital of France is Paris."


@pytest.fixture(scope="module")
def client(server):
    return Client(server, verbose=False)


def test_the_documented_endpoints_exist_and_no_others(client):
    listed = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    pages = {"/models", "/tokenize", "/mask", "/fill", "/attention", "/runs", "/run"}
    assert set(listed) == pages
    documented = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    for name in listed:
        assert f"## {name}" in documented


def test_models(client):
    names = [entry["name"] for entry in client.predict(api_name="/models")]
    assert "bert-mini" in names


def test_tokenize(client, model):
    answer = client.predict(SENTENCE, api_name="/tokenize")
    assert [token["id"] for token in answer["tokens"]] == model.encode([SENTENCE])[0].ids


def test_what_a_model_does_not_read_is_told(client):
    notes = client.predict("北京是中国的首都", api_name="/tokenize")["notes"]
    some = "“北”, “京”, “是”, “中”, “国”, “的”, …"
    assert notes == [f"bert-mini has no piece for {some} and reads [UNK] instead."]


def test_fill_gives_the_cores_numbers(client, model):
    answer = client.predict(text=SENTENCE, positions=[6], words=["london"], api_name="/fill")
    expected = fill(model, SENTENCE, masks=[6], watch=["london"]).predictions[0]
    (found,) = answer["predictions"]
    assert [c["piece"] for c in found["candidates"]] == [c.piece for c in expected.candidates]
    assert found["candidates"][0]["probability"] == pytest.approx(
        expected.candidates[0].probability, rel=1e-5
    )
    assert found["original"]["rank"] == expected.original.rank
    assert found["watched"][0]["rank"] == expected.watched[0].rank


def test_a_mask_in_the_text_is_a_gap(client):
    answer = client.predict("The capital of France is [MASK] .", api_name="/fill")
    assert [entry["position"] for entry in answer["predictions"]] == [6]


def test_a_drawn_masking_can_be_filled(client):
    text = SENTENCE * 6
    drawn = client.predict(text, seed=4, rate=0.4, api_name="/mask")
    assert drawn == client.predict(text, seed=4, rate=0.4, api_name="/mask")
    answer = client.predict(text, marks=drawn["marks"], api_name="/fill")
    positions = [mark["position"] for mark in drawn["marks"]]
    assert [entry["position"] for entry in answer["predictions"]] == positions


def test_attention(client, model):
    answer = client.predict(SENTENCE, positions=[6], api_name="/attention")
    length = len(answer["tokens"])
    assert len(answer["weights"]) == answer["layers"] == len(model.config.schedule)
    assert len(answer["weights"][0]) == answer["heads"]
    for row in answer["weights"][0][0]:
        assert len(row) == length
        assert sum(row) == pytest.approx(1, abs=1e-4)
    one = client.predict(SENTENCE, positions=[6], layer=1, head=0, api_name="/attention")
    assert one["weights"] == [[answer["weights"][1][0]]]


@pytest.mark.parametrize(
    ("place", "message"),
    [({"layer": 1}, "Ask for one layer, or"), ({"layer": 1, "head": 0}, "One head has 81 weights")],
)
def test_too_many_weights_are_refused_with_what_helps(client, monkeypatch, place, message):
    monkeypatch.setattr(api, "MOST_WEIGHTS", 80)
    with pytest.raises(AppError, match=message):
        client.predict(SENTENCE, **place, api_name="/attention")


@pytest.mark.parametrize(
    ("endpoint", "values", "message"),
    [
        ("/fill", {"text": ""}, "no text yet"),
        ("/fill", {"text": "x" * 100_000}, "100,000 characters"),
        ("/fill", {"text": "a", "model": "nope"}, "no model “nope”"),
        ("/fill", {"text": "a", "model": "../../etc"}, "Known models: "),
        ("/fill", {"text": "a", "positions": [99]}, "99"),
        ("/fill", {"text": "a", "positions": "x"}, "positions must be a list"),
        ("/fill", {"text": "a", "positions": [1, 1]}, "twice"),
        ("/fill", {"text": "a", "top_k": 0}, "top_k is 0"),
        ("/fill", {"text": "a", "words": ["x" * 99]}, "99 characters"),
        ("/mask", {"text": "a", "seed": -1}, "seed is -1"),
        ("/mask", {"text": "a", "rate": 2}, "rate is 2"),
        ("/tokenize", {"text": " "}, "no text yet"),
        ("/attention", {"text": "a", "layer": 99}, "layer is 99"),
    ],
)
def test_bad_values_get_a_message(client, endpoint, values, message):
    with pytest.raises(AppError, match=re.escape(message)) as caught:
        client.predict(**values, api_name=endpoint)
    assert "Traceback" not in str(caught.value)
    assert "/" not in str(caught.value).replace("../../etc", "")


def test_the_page_names_no_other_host(server):
    page = httpx.get(server).text
    assert "<title>Cloze</title>" in page
    hosts = set(re.findall(r'(?:src|href|content)="https?://([^/"]+)', page))
    assert hosts == set()
    assert page.count('<link rel="stylesheet" href="/cloze/') >= 1


def test_a_page_goes_packed_and_the_same_to_all(server):
    plain = httpx.get(server, headers={"accept-encoding": "identity"})
    for _ in range(3):
        packed = httpx.get(server, headers={"accept-encoding": "gzip"})
        assert packed.text == plain.text
        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) < len(plain.content) / 8
        assert len(packed.headers.get_list("content-security-policy")) == 1
    port = server.rpartition(":")[2]
    other = httpx.get(server, headers={"host": f"localhost:{port}"})
    assert f'"root":"http://localhost:{port}"' in other.text


def test_every_linked_file_is_there(server):
    page = httpx.get(server).text
    links = re.findall(r'(?:src|href)="(/cloze/[^"]+)"', page)
    assert len(links) > 8
    for link in links:
        assert httpx.get(server + link).status_code == 200, link


@pytest.mark.parametrize("path", ["/", "/cloze/app/page/page.css", "/config", "/nothing"])
def test_answers_carry_the_security_headers(server, path):
    headers = httpx.get(server + path).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_uploads_are_refused(server):
    for path in ("/gradio_api/upload", "/upload", "/gradio_api/upload?x=1"):
        answer = httpx.post(server + path, files={"files": ("a.html", b"<script>")})
        assert answer.status_code == 403


def test_large_bodies_are_refused(server):
    path = f"{server}/gradio_api/queue/join"
    assert httpx.post(path, content=b"x" * (2 << 20)).status_code == 413
    assert httpx.post(path, content=iter([b"{}"])).status_code == 411
    both = {"content-length": "2", "transfer-encoding": "chunked"}  # the chunks would be read
    assert httpx.post(path, content=iter([b"{}"]), headers=both).status_code == 411


@pytest.mark.parametrize(
    "path",
    [
        "/openapi.json",
        "/docs",
        "/monitoring",
        "/monitoring/summary",
        "/gradio_api/runs",
        "/gradio_api/file=app.py",
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/run/predict",
    ],
)
def test_nothing_else_is_served(server, path):
    assert httpx.get(server + path).status_code in {401, 403, 404, 405}


def raw(server, path):
    """What a path gives that is asked for as it is written: others take the dots out of it."""
    line = http.client.HTTPConnection(urlsplit(server).netloc, timeout=60)
    try:
        line.request("GET", path)
        return line.getresponse().status
    finally:
        line.close()


@pytest.mark.parametrize("up", ["..", "%2e%2e", "..%2f.", "%2e%2e%2f%2e"])
def test_files_beside_those_that_are_served_are_not(server, up):
    assert (STATIC / "../primer/english-life.txt").is_file()
    assert (APP / "../tests/app/driver.js").is_file()
    assert raw(server, "/cloze/favicon.svg") == raw(server, "/cloze/app/page/page.css") == 200
    assert raw(server, f"/cloze/{up}/primer/english-life.txt") == 404
    assert raw(server, f"/cloze/app/{up}/tests/app/driver.js") == 404
    assert raw(server, f"/cloze/app/page/{up}/page/page.css") == 200, "the dots are read"


def test_the_queue_cannot_be_skipped(server):
    answer = httpx.post(f"{server}/gradio_api/run/fill", json={"data": ["a [MASK]"]})
    assert answer.status_code == 404


def test_the_example_in_the_docs_runs(server, capsys):
    documented = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", documented, re.DOTALL)
    assert "http://127.0.0.1:7860" in code
    names = {}
    exec(code.replace("http://127.0.0.1:7860", server), names)
    assert names["answer"]["predictions"]
    assert "[CLS]" in capsys.readouterr().out
