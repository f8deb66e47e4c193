#!/bin/sh
# debian_torch.sh - print the python that has Debian's python3-torch; install it when root, else say the line
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  if [ "$(id -u)" != 0 ]; then
    echo "run: sudo apt-get install --no-install-recommends python3-torch" >&2
    exit 2
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-torch >&2 </dev/null || exit 2
fi
echo /usr/bin/python3
