#!/usr/bin/env bash
# Writes every generated file anew; the generated files are committed.
#
#   build/generate.sh           write them; make generate puts the tools on the PATH
#   build/generate.sh --check   and fail if that changed any
#
# First whatever the Go packages ask for with //go:generate lines (proto asks
# for protoc, internal/apiclient for oapi-codegen, after admin/internal/api has
# written the API's description), then the web UI's types from that description.
set -euo pipefail
cd "$(dirname "$0")/.."

# fingerprint prints a line per file that git knows or would add. Comparing
# with the state before, and not with HEAD, lets contributors check work that
# they have not committed yet; in CI's fresh clone both are the same.
fingerprint() {
  git ls-files --cached --others --exclude-standard -z | sort -zu |
    while IFS= read -r -d '' file; do
      [ -f "$file" ] && sha256sum "$file"
    done
}

before=$(fingerprint)

build/need.sh protoc node
for module in $(build/modules.sh); do
  go -C "$module" generate ./...
done
npm --prefix web-ui run --silent gen:api

[ "${1:-}" = --check ] || exit 0
changed=$({ diff <(printf '%s\n' "$before") <(fingerprint) || true; } | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u)
[ -z "$changed" ] || {
  printf 'generated files were out of date; they are written anew, commit them:\n%s\n' "$changed" >&2
  exit 1
}
