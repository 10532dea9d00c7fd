"""The server's interface: what it answers, what it refuses, and that a refusal is always a problem document."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from abound import Model
from abound.serve.journal import Correction, Journal, Proposal, journal_path
from abound.serve.web.app import make_app
from abound.serve.web.desk import Desk, Settings
from serve_data import TOKEN, make_model, make_vector_model

JSON = {"Content-Type": "application/json"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}
TEXT = "green leaf drink"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("served")
    return {
        "drinks": make_model(folder / "drinks"),
        "other": make_model(folder / "other", "ff", seed=5),
        "vectors": make_vector_model(folder / "vectors"),
        "fixed": make_model(folder / "fixed", "ind"),
    }


@pytest.fixture(scope="module")
def client(files: dict[str, Path]) -> Iterator[TestClient]:
    settings = Settings(files, TOKEN, max_body=20_000, max_batch=50, max_text=500)
    with TestClient(make_app(Desk(settings))) as client:
        yield client


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[TestClient]:
    files = {"drinks": make_model(tmp_path / "drinks"), "vectors": make_vector_model(tmp_path / "vectors")}
    with TestClient(make_app(Desk(Settings(files, TOKEN)))) as client:
        yield client


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("bounded")
    files = {name: make_vector_model(folder / name, name) for name in ("pa", "edge")}
    settings = Settings({"vectors": files["pa"], "edges": files["edge"]}, TOKEN)
    with TestClient(make_app(Desk(settings))) as client:
        yield client


def problem(answer: Any, status: int) -> Any:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    document = answer.json()
    assert document["status"] == status and document["detail"] and document["title"]
    assert document["type"].startswith("urn:abound:")
    return document


def suggest(client: TestClient, model: str = "drinks", **body: Any) -> Any:
    answer = client.post(f"/v1/models/{model}/suggest", json={"text": TEXT, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_suggestions_are_the_model_s(client: TestClient, files: dict[str, Path]) -> None:
    labels, scores = Model.load(files["drinks"]).predict_topk([TEXT], 3)
    answer = suggest(client, limit=3, id="mine")
    assert answer["id"] == "mine"
    assert [one["label"] for one in answer["suggestions"]] == labels[0].tolist()
    assert [one["score"] for one in answer["suggestions"]] == pytest.approx(scores[0].tolist(), rel=1e-5)
    assert answer["suggestions"][0]["title"] == "Tea and the like"
    assert "path" not in answer["suggestions"][0] and "id" not in suggest(client)


def test_paths_threshold_include_and_exclude(client: TestClient) -> None:
    path = suggest(client, paths=True, limit=1)["suggestions"][0]["path"]
    assert path == [{"label": "hot", "title": "Hot drinks"}]
    every = suggest(client)["suggestions"]
    high = suggest(client, threshold=every[1]["score"])["suggestions"]
    assert [one["label"] for one in high] == [one["label"] for one in every[:2]]
    assert {one["label"] for one in suggest(client, include=["beer", "water"])["suggestions"]} == {"beer", "water"}
    assert "tea" not in {one["label"] for one in suggest(client, exclude=["tea"])["suggestions"]}
    assert suggest(client, threshold=1e30)["suggestions"] == []


def test_many_at_once_get_what_each_asked_for(client: TestClient) -> None:
    words = ["green leaf", "bean roast", "hop malt", "orange fruit", "spring clear"]

    def ask(i: int) -> Any:
        more: dict[str, Any] = {"exclude": ["beer"]} if i % 7 == 0 else {}
        return suggest(client, text=words[i % 5], limit=1 + i % 4, id=str(i), **more)

    expected = [ask(i) for i in range(35)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(35))) == expected
    assert [len(answer["suggestions"]) for answer in expected[:4]] == [1, 2, 3, 4]


def test_a_batch_is_its_items(client: TestClient) -> None:
    texts = ["green leaf", "bean roast", "", "hop malt"]
    body = {"items": [{"text": text, "id": str(i)} for i, text in enumerate(texts)], "limit": 2}
    answer = client.post("/v1/models/drinks/suggest-batch", json=body).json()
    single = [suggest(client, text=text, limit=2)["suggestions"] for text in texts]
    assert [item["suggestions"] for item in answer["items"]] == single
    assert [item["id"] for item in answer["items"]] == ["0", "1", "2", "3"]


def test_vectors(client: TestClient, files: dict[str, Path]) -> None:
    features = {"indices": [3, 1], "values": [0.9, 0.2]}
    answer = client.post("/v1/models/vectors/suggest", json={"features": features, "limit": 2}).json()
    row = [[0, 0.2, 0, 0.9, 0, 0, 0, 0]]
    assert [one["label"] for one in answer["suggestions"]] == [
        str(label) for label in Model.load(files["vectors"]).predict_topk(row, 2).labels[0]
    ]
    explained = client.post("/v1/models/vectors/explain", json={"features": features, "limit": 1}).json()
    assert {vote["feature"] for vote in explained["classes"][0]["votes"]} <= {"1", "3", "bias"}


def test_votes_add_up_and_are_found_in_the_text(client: TestClient) -> None:
    text = "Hop, 🍵 green LEAF!"
    answer = client.post("/v1/models/drinks/explain", json={"text": text, "limit": 2}).json()
    for one in answer["classes"]:
        assert sum(vote["value"] for vote in one["votes"]) == pytest.approx(one["score"], abs=1e-4)
        for vote in one["votes"]:
            found = [text[begin:end].lower() for begin, end in vote["places"]]
            assert found == ([] if vote["feature"] == "bias" else [vote["feature"]])
    only = client.post("/v1/models/drinks/explain", json={"text": text, "label": "beer"}).json()
    assert [one["label"] for one in only["classes"]] == ["beer"]
    assert only["classes"][0]["path"] == [{"label": "cold", "title": "Cold drinks"}]


def test_classes_are_found(client: TestClient) -> None:
    def find(query: str, limit: int = 5) -> list[str]:
        found = client.get("/v1/models/drinks/classes", params={"query": query, "limit": limit}).json()
        return [one["label"] for one in found["classes"]]

    assert find("TEA") == ["tea"]
    assert find("like cof") == ["coffee"]
    assert find("nothing") == []
    assert len(find("", 2)) == 2


def test_models_and_metrics(client: TestClient) -> None:
    suggest(client)
    models = client.get("/v1/models").json()["models"]
    assert [model["name"] for model in models] == ["drinks", "other", "vectors", "fixed"]
    one = client.get("/v1/models/drinks").json()
    assert (one["learner"], one["takes"], one["classes"], one["taxonomy"]) == ("pa", "texts", 5, True)
    assert one["suggestions"] >= 1 and one["learning"]["accepted"] and one["bytes"] > 1000
    assert not client.get("/v1/models/fixed").json()["learning"]["possible"]
    metrics = client.get("/metrics").text
    assert 'abound_requests_total{route="/v1/models/{m}/suggest",status="200"}' in metrics
    assert 'abound_model_classes{model="drinks"} 5.0' in metrics


def test_open_inference_protocol(client: TestClient, files: dict[str, Path]) -> None:
    assert client.get("/v2").json()["name"] == "abound"
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2/models/drinks/ready").json() == {"ready": True}
    about = client.get("/v2/models/drinks").json()
    assert about["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    texts = ["green leaf", "hop malt"]
    tensor = {"name": "text", "shape": [2], "datatype": "BYTES", "data": texts}
    body = {"id": "x", "inputs": [tensor], "parameters": {"limit": 3}}
    answer = client.post("/v2/models/drinks/infer", json=body).json()
    labels, scores = Model.load(files["drinks"]).predict_topk(texts, 3)
    assert (answer["id"], answer["model_name"]) == ("x", "drinks")
    assert answer["outputs"][0]["data"] == labels.ravel().tolist() and answer["outputs"][0]["shape"] == [2, 3]
    assert answer["outputs"][1]["data"] == pytest.approx(scores.ravel().tolist())
    rows = {"indptr": ("INT64", [0, 2, 2]), "indices": ("INT32", [1, 3]), "values": ("FP32", [0.2, 0.9])}
    tensors = [
        {"name": name, "datatype": kind, "shape": [len(data)], "data": data} for name, (kind, data) in rows.items()
    ]
    answer = client.post("/v2/models/vectors/infer", json={"inputs": tensors}).json()
    assert answer["outputs"][0]["shape"] == [2, 5]
    none = client.post("/v2/models/drinks/infer", json={"inputs": [{**tensor, "shape": [0], "data": []}]})
    assert none.json()["outputs"][0] == {"name": "labels", "shape": [0, 5], "datatype": "BYTES", "data": []}


@pytest.mark.parametrize(
    "inputs",
    [
        [{"name": "txt", "shape": [1], "datatype": "BYTES", "data": ["x"]}],
        [{"name": "text", "shape": [2], "datatype": "BYTES", "data": ["x"]}],
        [{"name": "text", "shape": [1], "datatype": "FP32", "data": [1.0]}],
        [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [7]}],
        [],
    ],
)
def test_tensors_that_do_not_fit(client: TestClient, inputs: Any) -> None:
    problem(client.post("/v2/models/drinks/infer", json={"inputs": inputs}), 422)


def test_corrections_count_at_once_and_are_echoed(fresh: TestClient) -> None:
    body = {"text": TEXT, "labels": ["beer"], "id": "c1", "wait": True}
    answer = fresh.post("/v1/models/drinks/learn", json=body, headers=BEARER)
    assert answer.json() == {"id": "c1", "entry": 1, "learned": True}
    assert suggest(fresh)["suggestions"][0]["label"] == "beer"
    assert fresh.post("/v1/models/drinks/learn", json=body, headers=BEARER).json()["entry"] == 1
    clash = {**body, "labels": ["tea"]}
    assert "c1" in problem(fresh.post("/v1/models/drinks/learn", json=clash, headers=BEARER), 409)["detail"]
    learning = fresh.get("/v1/models/drinks").json()["learning"]
    assert (learning["corrections"], learning["waiting"]) == (1, 0)
    assert learning["recent"][0] | {"at": ""} == {
        "entry": 1,
        "at": "",
        "labels": ["beer"],
        "was_right": False,
        "tries": learning["recent"][0]["tries"],
    }


def test_new_classes(fresh: TestClient) -> None:
    body = {"text": "yerba gourd", "labels": ["mate"], "wait": True}
    said = problem(fresh.post("/v1/models/drinks/learn", json=body, headers=BEARER), 422)
    assert "set new_class" in said["detail"]
    new = {**body, "new_class": True, "title": "Mate, hot or cold"}
    assert fresh.post("/v1/models/drinks/learn", json=new, headers=BEARER).status_code == 200
    best = suggest(fresh, text="gourd", paths=True)["suggestions"][0]
    assert (best["label"], best["title"], best["path"]) == ("mate", "Mate, hot or cold", [])
    again = fresh.post("/v1/models/drinks/learn", json=body, headers=BEARER)
    assert again.json()["entry"] == 2
    found = fresh.get("/v1/models/drinks/classes", params={"query": "hot or"}).json()
    assert found["classes"] == [{"label": "mate", "title": "Mate, hot or cold"}]


def test_vectors_are_learned(fresh: TestClient) -> None:
    features = {"indices": [20], "values": [1.0]}
    body = {"features": features, "labels": ["3"], "wait": True}
    assert fresh.post("/v1/models/vectors/learn", json=body, headers=BEARER).json()["learned"]
    answer = fresh.post("/v1/models/vectors/suggest", json={"features": features, "limit": 1}).json()
    assert answer["suggestions"][0]["label"] == "3"
    for wrong in ({"features": {"indices": [2_000_000], "values": [1.0]}}, {"labels": ["three"], "new_class": True}):
        problem(fresh.post("/v1/models/vectors/learn", json={**body, **wrong}, headers=BEARER), 422)


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": ""}, {"Authorization": f"Basic {TOKEN}"}, {"Authorization": "Bearer wrong"}]
)
def test_wrong_tokens(client: TestClient, headers: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answer = client.post("/v1/models/drinks/learn", json={"text": TEXT, "labels": ["tea"]}, headers=headers)
    problem(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "wrong" not in caplog.text and TOKEN not in caplog.text and TEXT not in caplog.text


def test_learning_is_off_without_a_token(files: dict[str, Path]) -> None:
    with TestClient(make_app(Desk(Settings({"drinks": files["drinks"]})))) as client:
        body = {"text": TEXT, "labels": ["tea"]}
        problem(client.post("/v1/models/drinks/learn", json=body, headers=BEARER), 403)
        assert not client.get("/v1/models/drinks").json()["learning"]["accepted"]


def test_models_that_cannot_learn_say_so(client: TestClient) -> None:
    body = {"text": TEXT, "labels": ["tea"]}
    problem(client.post("/v1/models/fixed/learn", json=body, headers=BEARER), 409)


BAD_BODIES = {
    b"": 400,
    b"{": 400,
    b'{"text": "x"} {': 400,
    b'{"text": "\xff\xfe"}': 400,
    b'{"text": "\\ud800"}': 400,
    b"[" * 5000: 400,
    b'{"text":' * 2000: 400,
    b"null": 422,
    b'{"text": 3}': 422,
    b'{"text": null}': 422,
    b'{"text": "x", "features": {"indices": [], "values": []}}': 422,
    b'{"text": "x", "limit": 0}': 422,
    b'{"text": "x", "limit": "3"}': 422,
    b'{"text": "x", "limit": 1e9}': 422,
    b'{"text": "x", "threshold": NaN}': 422,
    b'{"text": "x", "threshold": 1e400}': 422,
    b'{"text": "x", "unknown": 1}': 422,
    b'{"text": "x", "include": ["cocoa"]}': 422,
    b'{"text": "x", "include": []}': 422,
    b'{"text": "x", "id": ""}': 422,
    b'{"text": "x", "max_ms": -1}': 422,
    b'{"features": {"indices": [1], "values": [1.0]}}': 422,
    b'{"features": {"indices": [1], "values": []}}': 422,
    b'{"text": "' + b"x" * 600 + b'"}': 413,
    b'{"text": "' + b"x" * 30_000 + b'"}': 413,
}


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda body: repr(body[:40]))
def test_bad_bodies(client: TestClient, body: bytes) -> None:
    document = problem(client.post("/v1/models/drinks/suggest", content=body, headers=JSON), BAD_BODIES[body])
    assert len(json.dumps(document)) < 5000
    if BAD_BODIES[body] == 422:
        assert all(set(fault) == {"field", "detail"} for fault in document["errors"])


def test_bodies_of_unknown_length_are_limited(client: TestClient) -> None:
    chunks = (b"x" * 1000 for _ in range(1000))
    problem(client.post("/v1/models/drinks/suggest", content=chunks, headers=JSON), 413)


def test_batches_are_limited(client: TestClient) -> None:
    body = {"items": [{"text": "x"}] * 51}
    problem(client.post("/v1/models/drinks/suggest-batch", json=body), 413)
    tensor = {"name": "text", "shape": [51], "datatype": "BYTES", "data": ["x"] * 51}
    problem(client.post("/v2/models/drinks/infer", json={"inputs": [tensor]}), 413)
    mixed = {"items": [{"text": "x"}, {"features": {"indices": [], "values": []}}]}
    problem(client.post("/v1/models/drinks/suggest-batch", json=mixed), 422)


def test_bodies_that_are_not_json_are_refused(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = client.post("/v1/models/drinks/suggest", content=b'{"text": "x"}', headers={"Content-Type": kind})
        problem(answer, 415)


@pytest.mark.parametrize(
    "name", ["nothing", "..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "drinks%00", "drinks%2f..", "a" * 3000, "%f0%9f%8d%b5"]
)
def test_path_tricks(client: TestClient, name: str) -> None:
    for route in (f"/v1/models/{name}", f"/v1/models/{name}/classes", f"/v2/models/{name}", f"/page/{name}"):
        answer = client.get(route)
        if answer.status_code != 200 or name != "..":
            assert answer.status_code in (404, 422)
            problem(answer, answer.status_code)


def test_wrong_methods_and_parameters(client: TestClient) -> None:
    answer = client.get("/v1/models/drinks/suggest")
    problem(answer, 405)
    assert "POST" in answer.headers["allow"]
    problem(client.get("/v1/models/drinks/classes?limit=0"), 422)
    problem(client.get("/v1/models/drinks/classes?limit=many"), 422)


def test_time_limits(client: TestClient) -> None:
    assert suggest(client, max_ms=60_000)["suggestions"]
    late = client.post("/v1/models/drinks/suggest", json={"text": TEXT, "max_ms": 1e-6})
    assert problem(late, 503)["detail"].startswith("there was no answer within")


def test_faults_are_not_told(client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def fail(*given: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("abound.serve.web.v1.explain", fail)
    strict = TestClient(client.app, raise_server_exceptions=False)
    answer = strict.post("/v1/models/drinks/explain", json={"text": "a private text"})
    assert "secret" not in json.dumps(problem(answer, 500))
    assert "a private text" not in caplog.text


def test_headers_and_page(client: TestClient) -> None:
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert "<script src=" in page.text and "<script>" not in page.text and "style=" not in page.text
    for file in ("page.js", "page.css", "icon.svg"):
        answer = client.get(f"/page/{file}")
        assert answer.status_code == 200 and answer.headers["x-content-type-options"] == "nosniff"
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in answer.text
    assert client.get("/v1/models").headers["cache-control"] == "no-store"
    assert "total;dur=" in client.get("/v1/models").headers["server-timing"]


def test_the_document_has_examples_that_work(fresh: TestClient) -> None:
    document = fresh.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    n_tried = 0
    for path, methods in document["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body is None:
            continue
        content = body["content"]["application/json"]
        assert content["schema"]["$ref"].rpartition("/")[2] in document["components"]["schemas"]
        for example in content["examples"].values():
            answer = fresh.post(path.replace("{m}", "drinks"), json=example["value"], headers=BEARER)
            assert answer.status_code == (422 if path.endswith("/learn") else 200), answer.text
            n_tried += 1
    assert n_tried == 5


def value_requests(values: list[float], indices: list[int]) -> Iterator[tuple[str, Any]]:
    """The same vector, as each route takes it."""
    features = {"indices": indices, "values": values}
    yield "/v1/models/vectors/learn", {"features": features, "labels": ["3"], "wait": True}
    for model in ("vectors", "edges"):
        yield f"/v1/models/{model}/suggest", {"features": features}
        yield (
            f"/v1/models/{model}/suggest-batch",
            {"items": [{"features": {"indices": [], "values": []}}] * 2 + [{"features": features}]},
        )
        yield f"/v1/models/{model}/explain", {"features": features}
        data: dict[str, tuple[str, list[Any]]] = {
            "indptr": ("INT64", [0, len(indices)]),
            "indices": ("INT64", indices),
            "values": ("FP64", values),
        }
        tensors = [{"name": n, "shape": [len(d)], "datatype": kind, "data": d} for n, (kind, d) in data.items()]
        yield f"/v2/models/{model}/infer", {"inputs": tensors}


@pytest.mark.parametrize(
    "values, indices, told",
    [
        ([1.0, 2.9e38], [1, 3], "feature 3 is 2.9e+38"),
        ([-1.1e15], [2], "feature 2 is -1.1e+15"),
        ([0.9e15, 0.9e15], [5, 5], "feature 5 is 1.8e+15"),
        ([1e300], [0], "feature 0 is 1e+300"),
    ],
)
def test_values_that_cannot_be_ranked_are_named(
    bounded: TestClient, values: list[float], indices: list[int], told: str
) -> None:
    for route, body in value_requests(values, indices):
        detail = problem(bounded.post(route, json=body, headers=BEARER), 422)["detail"]
        assert f"{told}: a value beyond ±1e+15 cannot be ranked" in detail, route


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_values_that_are_no_numbers_are_refused(bounded: TestClient, word: str) -> None:
    for route, body in value_requests([0.25, 77.5], [1, 3]):
        content = json.dumps(body).replace("77.5", word)
        detail = problem(bounded.post(route, content=content, headers=JSON | BEARER), 422)["detail"]
        assert "finite" in detail, route


def test_the_largest_values_are_ranked_and_learned(bounded: TestClient) -> None:
    for value in (1e15, -1e15, 1e-45):
        for route, body in value_requests([value, -value, value / 2], [1, 3, 7]):
            answer = bounded.post(route, json=body, headers=BEARER)
            assert answer.status_code == 200, answer.text
            json.loads(answer.text, parse_constant=pytest.fail)


def test_many_huge_values_end_no_server(bounded: TestClient) -> None:
    rng = np.random.default_rng(0)
    features = {"indices": rng.integers(0, 8, 3000).tolist(), "values": rng.choice([-2.9e38, 2.9e38], 3000).tolist()}
    for model in ("vectors", "edges"):
        for _ in range(20):
            problem(bounded.post(f"/v1/models/{model}/suggest", json={"features": features}), 422)
        assert bounded.post(
            f"/v1/models/{model}/suggest", json={"features": {"indices": [1], "values": [1]}}
        ).is_success


def test_corrections_from_before_values_were_limited_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_vector_model(tmp_path / "vectors")
    with closing(Journal(journal_path(model), create=True)) as journal:
        for features in (((1, 3e38),), ((2, 1.0),)):
            journal.append([Proposal(Correction((3,), features=features), "v1")])
    with TestClient(make_app(Desk(Settings({"vectors": model}, TOKEN)))) as client:
        learning = client.get("/v1/models/vectors").json()["learning"]
    assert (learning["waiting"], learning["corrections"]) == (0, 2)
    assert f"entry 1 of {journal_path(model)} is left out: column 1 is 3e+38, beyond ±1e+15" in caplog.text
    assert "Traceback" not in caplog.text and "entry 2" not in caplog.text
