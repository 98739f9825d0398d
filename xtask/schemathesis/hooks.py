"""Cases that reach what there is: ids that exist, and claims that do not wait."""

import hashlib
import json
import os
import re

import schemathesis

# What the server was filled with: a list of ids for each kind of path.
KNOWN = json.loads(os.environ.get("LAVRA_KNOWN_IDS", "{}"))

DAY = re.compile(r"^[0-9]{4}-(0[1-9]|1[0-2])(-[0-9]{2})?$")
PLANNED = re.compile(r"_[0-9]{4}-[0-9]{2}-[0-9]{2}$")
TYPE = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$")


def half(value):
    """Whether this value is one of every second, the same in every run."""
    return hashlib.sha256(repr(value).encode()).digest()[0] % 2 == 0


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Every second id is one that exists."""
    path = context.operation.path if context.operation else ""
    for prefix, ids in KNOWN.items():
        value = (path_parameters or {}).get("id")
        if path.startswith(prefix) and isinstance(value, str) and half(value):
            place = hashlib.sha256(value.encode()).digest()[1] % len(ids)
            path_parameters["id"] = ids[place]
    return path_parameters


@schemathesis.hook
def map_body(context, body):
    """A claim that is right waits for nothing; days and months that are right come in their order, and
    tasks are of a type that is known. What is wrong stays as it is."""
    if not isinstance(body, dict) or not context.operation:
        return body
    path = context.operation.path
    wait = body.get("wait_seconds")
    if path == "/tasks:claim" and type(wait) in (int, float) and 0 < wait <= 30:
        body["wait_seconds"] = 0
    first, last = body.get("from"), body.get("to")
    if isinstance(first, str) and isinstance(last, str) and DAY.match(first) and DAY.match(last):
        body["from"], body["to"] = sorted(["2024" + first[4:], "2024" + last[4:]])
    if "type" in body and isinstance(body["type"], str) and TYPE.match(body["type"]):
        body["type"] = "wordcount" if half(body["type"]) else body["type"]
    return body


@schemathesis.hook
def before_call(context, case, kwargs):
    """A task of an extraction's plan is not one of the queue: a chain of calls that takes it for one asks for a
    task that there is."""
    value = (case.path_parameters or {}).get("id")
    if case.operation.path.startswith("/tasks/") and isinstance(value, str) and PLANNED.search(value):
        case.path_parameters["id"] = KNOWN["/tasks/"][0]
