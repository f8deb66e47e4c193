# kprof.bash - bash completion of kprof; the commands and flags are asked of kprof itself
# shellcheck shell=bash disable=SC2207
_kprof() {
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} i
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "$(kprof help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p') --version" -- "$word"))
    return
  fi
  if [ "$command" = run ]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      # behind -- stands a command of its own
      if [ "${COMP_WORDS[i]}" = -- ]; then
        if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else COMPREPLY=($(compgen -c -f -- "$word")); fi
        return
      fi
    done
  fi
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(kprof "$command" --help 2>/dev/null | grep -o -e '--[a-z\[][]a-z-]*' | sed 's/\[no-\]//' | sort -u)" -- "$word"))
  elif [ "$command" = help ]; then
    COMPREPLY=($(compgen -W "$(kprof help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _kprof kprof
