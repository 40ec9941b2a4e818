#!/usr/bin/env bash
# Runs tests and closes with the line "N passed, N failed".
#
#   build/test.sh go      all Go modules, on a private MariaDB, with the race detector
#   build/test.sh ui      the web UI's tests, then the browser test on the real binary
#   build/test.sh go ui   both; a failure in one does not keep the other from running
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
for part in "$@"; do
  case "$part" in
    go) build/need.sh gcc mariadb python || status=1 ;;
    ui) build/need.sh node chromium fonts || status=1 ;;
    *) echo "test.sh: go, ui or both, not $part" >&2; exit 2 ;;
  esac
done
[ "$status" -eq 0 ] || exit 1

go build -o .cache/bin/ ./internal/testenv/cmd/...
tally() { .cache/bin/tally "$@"; }

# run -as KIND -name NAME -- COMMAND...
run() {
  printf '\n-- %s\n' "$4"
  tally run "$@" || status=1
}

test_go() {
  local module
  for module in . proto executor-sdk executor-sdk/tracing; do
    local name=go-${module//\//-}
    # -p 2: packages at once. More of them with race detector and a database
    # each only make one another slow on two cores.
    run -as go -name "${name/go-./go-root}" -- .cache/bin/withparts -- \
      go -C "$module" test -json -race -shuffle=on -p 2 -timeout 10m ./...
  done
}

test_ui() {
  run -as step -name ui-build -- make --no-print-directory build
  run -as lines -name ui-unit -- npm --prefix web-ui run --silent test
  CARILLON_BIN=$PWD/bin/carillon run -as lines -name ui-browser -- npm --prefix web-ui run --silent e2e
}

tally clear
for part in "$@"; do
  "test_$part"
done
printf '\n'
tally sum || status=1
exit "$status"
