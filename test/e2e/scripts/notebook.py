# SPDX-License-Identifier: Apache-2.0
"""Runs cells in a Jupyter kernel, as a notebook does, and prints what each put out: notebook.py KERNEL < JSON list of cells.

Each cell gives {"text": what it printed, "html": what it displayed as HTML, "error": the name of its error or null}.
"""
import json
import sys

import nbformat
from nbclient import NotebookClient

cells = [nbformat.v4.new_code_cell(text) for text in json.load(sys.stdin)]
NotebookClient(nbformat.v4.new_notebook(cells=cells), kernel_name=sys.argv[1], timeout=600, allow_errors=True).execute()
said = []
for cell in cells:
    errors = [output["ename"] for output in cell.outputs if output["output_type"] == "error"]
    said.append({
        "text": "".join(output["text"] for output in cell.outputs if output["output_type"] == "stream"),
        "html": "".join(output["data"].get("text/html", "") for output in cell.outputs if output["output_type"] == "display_data"),
        "error": errors[-1] if errors else None,
    })
print(json.dumps(said))
