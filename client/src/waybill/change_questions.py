"""The questions that change a pipeline as it is, without a manifest. Never talks to anything."""

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from waybill.errors import Unusable
from waybill.models import RestartMode, RestartState, StartFrom, StopMode
from waybill.questions import Question, pipeline_path, post


def start(name: str, stage: str | None = None) -> Question:
    params = None if stage is None else {"stage": stage}
    return Question(method="POST", path=f"{pipeline_path(name)}/start", params=params)


def stop(name: str, mode: StopMode) -> Question:
    params = None if mode == "checkpoint" else {"mode": mode}
    return Question(method="POST", path=f"{pipeline_path(name)}/stop", params=params)


def pause(name: str) -> Question:
    return Question(method="POST", path=f"{pipeline_path(name)}/pause")


def resume(name: str) -> Question:
    return Question(method="POST", path=f"{pipeline_path(name)}/resume")


def restart(
    name: str,
    start_from: StartFrom | None,
    mode: RestartMode,
    *,
    state: RestartState | None,
    stage: str | None,
    yes: bool,
) -> Question:
    confirmed = "true" if yes else None
    said = {"stage": stage, "from": start_from, "state": state, "yes": confirmed}
    params = {key: value for key, value in said.items() if value is not None}
    if mode != "safe":
        params["mode"] = mode
    return Question(method="POST", path=f"{pipeline_path(name)}/restart", params=params)


def set_offsets(name: str, start_from: StartFrom, *, stage: str | None, yes: bool) -> Question:
    body = {"from": start_from} if stage is None else {"from": start_from, "stage": stage}
    params = {"yes": "true"} if yes else None
    return replace(post(f"{pipeline_path(name)}/offsets", body, params=params), method="PATCH")


def reset_offsets(name: str) -> Question:
    return Question(method="DELETE", path=f"{pipeline_path(name)}/offsets")


def change(name: str, what: str, body: Mapping[str, object]) -> Question:
    return post(f"{pipeline_path(name)}/{what}", body)


def maintain(name: str, sink: str, *, dry_run: bool) -> Question:
    if not sink:
        raise Unusable("the name of the sink is empty")
    path = f"{pipeline_path(name)}/sinks/{quote(sink, safe='')}/maintain"
    return Question(method="POST", path=path, params={"dry_run": "true"} if dry_run else None)


def delete(name: str) -> Question:
    return Question(method="DELETE", path=pipeline_path(name))
