#!/usr/bin/env bash
# install-hooks.sh - lets git run `make lint` before each commit here (git commit --no-verify goes round it)
set -euo pipefail
hooks=$(git rev-parse --git-path hooks)
mkdir -p "$hooks"
if [ -e "$hooks/pre-commit" ] && ! grep -q 'make -s lint' "$hooks/pre-commit"; then
  echo "install-hooks: $hooks/pre-commit is somebody else's: left alone" >&2
  exit 1
fi
printf '#!/bin/sh\nexec make -s lint\n' >"$hooks/pre-commit"
chmod +x "$hooks/pre-commit"
echo "install-hooks: $hooks/pre-commit runs make lint"
