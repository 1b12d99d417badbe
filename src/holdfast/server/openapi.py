"""The OpenAPI page of one app: its routes, and its own tasks with their parameters.

It is made to be tested with. What it allows is accepted, or conflicts with the state of things;
what it forbids is refused. So it names the tasks this server takes, each with its parameters'
schema, and says of texts and integers what no store could hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from holdfast.app import Holdfast
from holdfast.core.flow import BATCH
from holdfast.core.payload import MAX_INT, MIN_INT
from holdfast.core.task import Json
from holdfast.definitions.options import NO_OPTIONS
from holdfast.definitions.registry import AnyDefinition
from holdfast.errors import HoldfastError
from holdfast.schedules.rule_words import KINDS
from holdfast.server.access import SCHEDULES, TABLE, TASKS
from holdfast.server.bodies import JSON, LINES
from holdfast.server.documented import COMPONENTS, schema_of
from holdfast.server.models.answers import Problem
from holdfast.server.models.words import NO_NUL
from holdfast.server.routes.schedules import NEW
from holdfast.server.samples import sample
from holdfast.server.shape import REFERENCE
from holdfast.server.spelling import NULL
from holdfast.server.submission import MOST_AT_ONCE, SUBMIT

ABOUT: Final = (
    "Submit tasks, look at them and steer them. Every call but the health checks takes a token: "
    "`Authorization: Bearer hf_…`, made with `holdfast token create`."
)
ANY: Final = "AnyJson"
ANY_JSON: Final[Json] = {
    "description": "Any JSON that every store can hold.",
    "anyOf": [
        {"type": "null"},
        {"type": "boolean"},
        {"type": "number"},
        {"type": "string", "pattern": NO_NUL},
        {"type": "array", "items": {"$ref": REFERENCE.format(model=ANY)}},
        {
            "type": "object",
            "propertyNames": {"pattern": NO_NUL},
            "additionalProperties": {"$ref": REFERENCE.format(model=ANY)},
        },
    ],
}
_IN_OBJECTS: Final = ("properties", "$defs", "patternProperties")
_IN_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_INSIDE: Final = ("items", "additionalProperties", "not")


def page(app: FastAPI, holdfast: Holdfast, version: str) -> dict[str, Any]:
    """The whole page."""
    made = get_openapi(title="Holdfast", version=version, description=ABOUT, routes=app.routes)
    schemas: dict[str, Json] = made.setdefault("components", {}).setdefault("schemas", {})
    schema_of(Problem)
    schemas |= COMPONENTS | {ANY: ANY_JSON}
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"token": []}]
    schemas["Emit"] = emit = deepcopy(schemas["Emit"])
    emit["properties"]["payload"] = {"$ref": REFERENCE.format(model=ANY)}
    _describe_submit(made["paths"][TASKS]["post"], holdfast, schemas)
    _describe_schedules(made["paths"][SCHEDULES]["post"], holdfast, schemas)
    rules = {path.replace(":path}", "}"): methods for path, methods in TABLE.items()}
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            needed = rules.get(path, {}).get(method.upper())
            if needed is None:
                operation["security"] = []
            else:
                said = f"Scope: {needed}."
                operation["description"] = f"{operation.get('description', '')}\n\n{said}".strip()
    return made


# -- the tasks -----------------------------------------------------------------------------------


def _describe_submit(
    operation: dict[str, Any], holdfast: Holdfast, schemas: dict[str, Json]
) -> None:
    """Say which tasks may be submitted, also with a result: one variant for each that is defined,
    one for the rest on open queues.
    """
    variants: list[Json] = []
    examples: dict[str, Json] = {}
    for name, definition in sorted(holdfast.registry.items()):
        parameters = _parameters(definition, schemas)
        model = f"Submit.{_component(name)}"
        own = {"task_type": {"const": name, "type": "string"}}
        schemas[model] = _variant(f"The task {name}.", own, parameters)
        variants.append({"$ref": REFERENCE.format(model=model)})
        example = _example(definition, parameters, schemas)
        if example is not None and len(examples) < MOST_EXAMPLES:
            examples[name] = {"value": example}
    if holdfast.settings.open_queues:
        schemas["Submit.open"] = _open(sorted(holdfast.settings.open_queues), holdfast)
        variants.append({"$ref": REFERENCE.format(model="Submit.open")})
    one: Json = {"$ref": REFERENCE.format(model="Submit")}
    if variants:
        schemas["Submit.batch"] = _batch()
        one = {"anyOf": [*variants, {"$ref": REFERENCE.format(model="Submit.batch")}]}
        _describe_children(schemas, one["anyOf"])
    schemas["SubmitOne"] = one
    reference = {"$ref": REFERENCE.format(model="SubmitOne")}
    many = {"type": "array", "items": reference, "minItems": 1, "maxItems": MOST_AT_ONCE}
    content: dict[str, Json] = {"schema": {"anyOf": [reference, many]}}
    if examples:
        content["examples"] = examples
    lines = {"schema": {"type": "string", "description": "A JSON object per line, as above."}}
    operation["requestBody"] = {"required": True, "content": {JSON: content, LINES: lines}}
    schemas["Result"] = result = deepcopy(schemas["Result"])
    for brought in ("follow_ups", "children"):
        result["properties"][brought]["anyOf"][0]["items"] = reference


def _describe_schedules(
    operation: dict[str, Any], holdfast: Holdfast, schemas: dict[str, Json]
) -> None:
    """The same for what schedules submit. A rule is said by one of its words."""
    variants: list[Json] = []
    properties: dict[str, Json] = {
        name: _without_null(each) if name in KINDS else each
        for name, each in NEW.schema["properties"].items()
    }
    for model in [name for name in schemas if name.startswith("Submit.")]:
        if model == "Submit.batch":
            continue
        task = schemas[model]
        own = {name: task["properties"][name] for name in ("task_type", "parameters", "queue")}
        ours = f"NewSchedule{model.removeprefix('Submit')}"
        schemas[ours] = {
            **task,
            "properties": {**properties, **own},
            "oneOf": [{"required": [word]} for word in KINDS],
        }
        variants.append({"$ref": REFERENCE.format(model=ours)})
    if variants:
        operation["requestBody"]["content"][JSON]["schema"] = {"anyOf": variants}


def _without_null(schema: Json) -> Json:
    kinds = [each for each in schema.get("anyOf", ()) if each != NULL]
    return kinds[0] if len(kinds) == 1 else schema


def _describe_children(schemas: dict[str, Json], variants: Sequence[Json]) -> None:
    """The same tasks as children: each may have a name, too."""
    name = schemas["Child"]["properties"]["name"]
    children = []
    for variant in variants:
        model = variant["$ref"].rpartition("/")[2]
        own = deepcopy(schemas[model])
        own["properties"]["name"] = name
        schemas[f"Child{model.removeprefix('Submit')}"] = own
        children.append({"$ref": REFERENCE.format(model=f"Child{model.removeprefix('Submit')}")})
    schemas["Child"] = {"anyOf": children}


def _batch() -> Json:
    """A parent that only waits for its children."""
    own = {"task_type": {"const": BATCH, "type": "string"}}
    variant = _variant("A parent that only waits for its children.", own, {"maxProperties": 0})
    variant["required"] = ["task_type", "children"]
    return variant


MOST_EXAMPLES: Final = 5


def _variant(description: str, own: Mapping[str, Json], parameters: Json) -> Json:
    required = ["task_type"] + (["parameters"] if parameters.get("required") else [])
    if len(required) == 1:
        parameters = {"anyOf": [parameters, NULL]}
    properties = {**SUBMIT.schema["properties"], **own, "parameters": parameters}
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _open(queues: list[str], holdfast: Holdfast) -> Json:
    anything = {
        "type": "object",
        "propertyNames": {"pattern": r"^[^\x00$]*$"},
        "additionalProperties": {"$ref": REFERENCE.format(model=ANY)},
    }
    name = dict(SUBMIT.schema["properties"]["task_type"])
    taken = list(holdfast.registry)
    own = {"task_type": name | ({"not": {"enum": taken}} if taken else {})}
    variant: dict[str, Json] = _variant("A task of an HTTP worker.", own, anything)
    among: Json = {"type": "string", "enum": queues}
    if "default" not in queues:
        variant["required"].append("queue")
    else:
        among = {"anyOf": [among, NULL]}
    variant["properties"]["queue"] = among
    return variant


def _parameters(definition: AnyDefinition, schemas: dict[str, Json]) -> Json:
    """The parameters' schema, its definitions moved among the page's."""
    prefix = f"{_component(definition.name)}."
    try:
        schema = definition.json_schema(REFERENCE.replace("{model}", f"{prefix}{{model}}"))
    except HoldfastError:  # annotations that cannot be resolved: its submits say so themselves
        return {"type": "object"}
    for name, each in schema.pop("$defs", {}).items():
        schemas[f"{prefix}{name}"] = bounded(each)
    return bounded(schema)


def _component(name: str) -> str:
    """A task's name as OpenAPI allows it for a component."""
    return re.sub(r"[^a-zA-Z0-9._-]", "_", name)


def bounded(schema: Json) -> Json:
    """The schema with what holds for every payload written into it: no NUL, no integer beyond 64
    bits.
    """
    if schema is True or schema == {}:
        return {"$ref": REFERENCE.format(model=ANY)}
    if not isinstance(schema, dict):
        return schema
    new = dict(schema)
    for key in _IN_OBJECTS:
        if key in new:
            new[key] = {name: bounded(each) for name, each in new[key].items()}
    for key in _IN_LISTS:
        if key in new:
            new[key] = [bounded(each) for each in new[key]]
    for key in _INSIDE:
        if isinstance(new.get(key), dict) or new.get(key) is True:
            new[key] = bounded(new[key])
    return _own_bounds(new)


def _own_bounds(schema: dict[str, Json]) -> Json:
    match schema.get("type"):
        case "string" if not {"pattern", "enum", "const"} & schema.keys():
            if schema.get("format") in {None, "password"}:
                schema["pattern"] = NO_NUL
        case "integer":
            schema.setdefault("minimum", schema.get("exclusiveMinimum", MIN_INT))
            schema.setdefault("maximum", schema.get("exclusiveMaximum", MAX_INT))
        case "array":
            if "items" not in schema and "prefixItems" not in schema:
                schema["items"] = {"$ref": REFERENCE.format(model=ANY)}
        case "object":
            schema.setdefault("propertyNames", {"pattern": NO_NUL})
            schema.setdefault("additionalProperties", {"$ref": REFERENCE.format(model=ANY)})
        case None if schema.keys() <= {"title", "description", "default"}:
            schema["$ref"] = REFERENCE.format(model=ANY)
    return schema


def _example(definition: AnyDefinition, parameters: Json, schemas: Mapping[str, Json]) -> Json:
    """A body that works, if one can be made up."""
    made = sample(parameters, schemas)
    try:
        definition.make_json_call(made, NO_OPTIONS, strict=True)
    except (HoldfastError, AttributeError, TypeError, ValueError):
        return None
    return {"task_type": definition.name, "parameters": made}
