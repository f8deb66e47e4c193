# SPDX-License-Identifier: Apache-2.0
"""What mkdocs calls for each page: links that leave docs (to a program, to CONTRIBUTING.md) become the file's name, since a site has no such file."""
import posixpath
import re


def on_page_markdown(markdown, page, **_):
    folder = posixpath.dirname(page.file.src_uri)

    def shown(match):
        target = posixpath.normpath(posixpath.join(folder, match[2].partition("#")[0]))
        return match[0] if re.match(r"[a-z]+:", match[2]) or not target.startswith("../") else f"`{target.lstrip('./')}`"
    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", shown, markdown)
