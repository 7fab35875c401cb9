"""Decodes Lumio's values with fastavro: a line {"schema": <file>, "value": <base64>} each, answered by the value as JSON; bytes as base64."""

import base64
import io
import json
import struct
import sys
import uuid

import fastavro
from fastavro.schema import load_schema

schemas = {}


def plain(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(repr(value))


for line in sys.stdin:
    asked = json.loads(line)
    file = asked["schema"]
    if file not in schemas:
        schemas[file] = load_schema(file)
    value = base64.b64decode(asked["value"])
    magic, schema_id = struct.unpack(">bI", value[:5])
    body = io.BytesIO(value[5:])
    decoded = fastavro.schemaless_reader(body, schemas[file], None)
    if body.read() != b"":
        raise ValueError("the body is longer than its record")
    print(json.dumps({"magic": magic, "id": schema_id, "value": decoded}, default=plain))
