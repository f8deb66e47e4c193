#!/usr/bin/env bash
# lint-words.sh - shellcheck and codespell over what they are for; a tool that is missing is said to be
set -uo pipefail
bad=0
mapfile -t shell < <(git ls-files | while read -r f; do [ -f "$f" ] && head -n 1 "$f" 2>/dev/null | grep -qE '^#!.*\b(ba)?sh\b' && echo "$f"; done)
if command -v shellcheck >/dev/null; then
  shellcheck -S warning "${shell[@]}" || bad=1
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
