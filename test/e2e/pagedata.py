# SPDX-License-Identifier: Apache-2.0
"""Reads a page of kprof html without a browser: the blocks of data in it (decisions/065)."""
import array
import base64
import json
import re
import struct
import zlib

BLOCK = re.compile(r'<script type="text/plain" class="(\w+)">([A-Za-z0-9+/=\s]*)</script>')


def blocks(page):
    """(class, head, columns) of each block; a column is a list of numbers."""
    for name, text in BLOCK.findall(page.read_text()):
        whole = zlib.decompress(base64.b64decode(text))
        size, = struct.unpack_from("<I", whole)
        directory = json.loads(whole[8:8 + size])
        columns = {key: column(whole, 8 + size + at, count, bits // 8) for key, (bits, at, count) in directory["columns"].items()}
        yield name, directory["head"], columns


def column(whole, at, count, width):
    """The numbers of a column; one of no width is zeros."""
    return array.array({0: "B", 1: "B", 2: "H", 4: "I"}[width], whole[at:at + count * width] or bytes(count))


def traces(page):
    """(head, columns, texts) of each trace in the page."""
    for name, head, columns in blocks(page):
        if name == "trace":
            of = head
        elif name == "columns":
            yield of, columns, columns["texts"].tobytes().decode().split("\0") if "texts" in columns else []


def wide(columns, key):
    """The numbers of a column that is kept in two halves."""
    return [low + (high << 32) for low, high in zip(columns[key + "Low"], columns[key + "High"])]
