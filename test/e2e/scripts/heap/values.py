# SPDX-License-Identifier: Apache-2.0
"""Lists, texts and numbers, the same each time."""
import json
import re

table = {str(i): [i] * (i % 7) for i in range(3000)}
text = json.dumps(table)
assert json.loads(text) == table
print(len(text), len(re.findall("[0-9]+", text)))
