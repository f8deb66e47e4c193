# SPDX-License-Identifier: Apache-2.0
"""What HolisticTraceAnalysis answers, as JSON can hold it."""
import json


def plain(value):
    if hasattr(value, "to_json"):
        return json.loads(value.reset_index().to_json(orient="records", default_handler=str))
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    return value.item() if hasattr(value, "item") else value
