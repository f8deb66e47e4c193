# lib.sh - what scripts of *.programs share: waiting for a server, an end for all of them
# shellcheck shell=bash
# A nap that is nobody's program: it is not recorded.
nap() { LD_PRELOAD='' sleep "${1:-0.05}"; }
await() { # port: until something listens there, 30 s at most
  local i
  for ((i = 0; i < 600; i++)); do
    { : <>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null && return 0
    nap
  done
  echo "nothing listens at $1"
  return 1
}
await_file() { # path
  local i
  for ((i = 0; i < 600; i++)); do [ -e "$1" ] && return 0; nap; done
  echo "no $1"
  return 1
}
stop() { # process numbers of children: ended and waited for; their statuses
  local p
  for p in "$@"; do kill "$p"; wait "$p"; echo "ended $?"; done
}
