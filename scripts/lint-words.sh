#!/usr/bin/env bash
# lint-words.sh - shellcheck, codespell, and the words of docs/internals/STYLE.md
#
# usage: lint-words.sh [--self-test]
# A tool that is not installed is named and skipped. The names in scripts/words-retired.txt are errors in every tracked file.
# scripts/words-held.txt lists the files that are held to STYLE.md's words: there the phrases below are errors, and so are
# wide lines of prose in .md files.
set -uo pipefail
bad=0
here=$(cd "$(dirname "$0")" && pwd)
phrases='kin|anew|nobody|somebody|whoever|of ours|as likely as not|for good'

# Prints FILE:LINE: what is wrong in the files given. Text between backquotes may quote a log line: no phrase is an error there.
words() { # files
  LC_ALL=C awk -v phrases="(^|[^A-Za-z0-9_-])($phrases)([^A-Za-z0-9_-]|$)" '
    function say(text) { print FILENAME ":" FNR ": " text; bad = 1 }
    { plain = tolower($0); gsub(/`[^`]*`/, "", plain)
      if (match(plain, phrases)) say("\"" substr(plain, RSTART, RLENGTH) "\" is not plain: docs/internals/STYLE.md, Words")
      widest = FILENAME ~ /docs\/decisions\/[0-9]/ ? 100 : 120
      wide = $0; gsub(/[\200-\277]/, "", wide)
      if (FILENAME ~ /\.md$/ && !/^[|#]/ && length(wide) > widest) say("is " length(wide) " columns wide, of " widest) }
    END { exit bad }' "$@"
}

# Prints FILE:LINE: the name that is gone, and what is said now.
retired() { # arguments of git grep that say where, words-retired.txt left out
  local list pattern now found=0 all
  list=$here/words-retired.txt
  all=$(grep -v '^#' "$list" | cut -d' ' -f1 | paste -sd'|')
  git grep -qE -e "$all" "$@" || return 0
  while read -r pattern now; do
    git grep -noE -e "$pattern" "$@" | sed "s|$| is retired: $now|" | grep . && found=1
  done < <(grep -v '^#' "$list")
  return $found
}

# A page of docs/decisions has a date and a status, and the index has its row, in order.
decisions() {
  local page file rows
  for page in docs/decisions/[0-9]*.md; do
    file=${page##*/}
    grep -qE '^Date: [0-9]{4}-[0-9]{2}-[0-9]{2}\. Status: (holds|in part|superseded by [0-9]{3})' "$page" ||
      { echo "$page: has no line \"Date: YYYY-MM-DD. Status: ...\""; bad=1; }
    grep -qF "| [${file%%-*}]($file) |" docs/decisions/README.md || { echo "$page: is not in docs/decisions/README.md"; bad=1; }
  done
  rows=$(grep -oE '^\| \[[0-9]{3}\]' docs/decisions/README.md)
  [ "$rows" = "$(sort <<<"$rows")" ] || { echo "docs/decisions/README.md: rows are not in order"; bad=1; }
}

self_test() {
  local made wrong
  made=$(mktemp -d) || exit 2
  # shellcheck disable=SC2064
  trap "rm -rf '$made'" EXIT
  echo "The writer refills the list; \`nobody\` is quoted." >"$made/right.md"
  words "$made/right.md" || { echo "lint-words: plain text was refused"; return 1; }
  for wrong in 'a thread of ours' 'Nobody waits.' 'It begins anew' "$(printf 'x%.0s' {1..121})"; do
    echo "$wrong" >"$made/wrong.md"
    words "$made/wrong.md" >/dev/null && { echo "lint-words: not seen: $wrong"; return 1; }
  done
  echo "see preload/""native/walk.c" >"$made/wrong.md"
  (cd "$made" && retired --no-index -- wrong.md >/dev/null) && { echo "lint-words: a retired name was not seen"; return 1; }
  return 0
}

[ "${1:-}" != --self-test ] || { self_test; exit; }
mapfile -t held < <(grep -v '^#' "$here/words-held.txt" | xargs -d '\n' git ls-files --)
words "${held[@]}" || bad=1
retired -- . ':!scripts/words-retired.txt' ':!CHANGELOG.md' || bad=1
decisions
self_test || bad=1
"$here/check-strings" || bad=1 # strings that a user reads

# a builtin reads the first line: two processes for each file took three seconds
is_shell() { local first=; IFS= read -r -n 80 first <"$1"; [[ $first =~ ^#!(.*[^A-Za-z0-9_])?(ba)?sh([^A-Za-z0-9_]|$) ]]; }
mapfile -t shell < <(git ls-files | while read -r f; do [ -f "$f" ] && is_shell "$f" && echo "$f"; done)
if command -v shellcheck >/dev/null; then
  shellcheck -x -S warning "${shell[@]}" || bad=1
else
  echo "lint: SKIP shellcheck is not installed"
fi
if command -v codespell >/dev/null; then
  mapfile -t text < <(git ls-files '*.c' '*.h' '*.S' '*.def' '*.md' '*.mk' '*.sh' '*.py' Makefile 'scripts/*')
  codespell -q 3 -L 'ans,te,fo,ot,ro,rela,inout,hist,strat,crate,nd,ist,lod,ba,datas,addd,iif,ue,fpr,wit,optin,clen,tage,activ,reenable' "${text[@]}" || bad=1
else
  echo "lint: SKIP codespell is not installed"
fi
exit $bad
