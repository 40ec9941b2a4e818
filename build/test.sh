#!/usr/bin/env bash
# Runs tests and closes with the line "N passed, N failed".
#
#   build/test.sh go      all Go modules, on a private MariaDB, with the race detector; what speaks to
#                          the database once more on MySQL
#   build/test.sh ui      the web UI's tests, then the browser test on the real binary, and clients that
#                          are generated from docs/openapi.json
#   build/test.sh check   in two minutes what finds most: rules, engine, API and SDK, the store on SQLite,
#                          without the race detector and without a server
#   build/test.sh go ui   both; a failure in one does not keep the other from running
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
for part in "$@"; do
  case "$part" in
    go) build/need.sh gcc mariadb mysql python node php || status=1 ;;
    check) ;; # Go is all that it takes
    ui) build/need.sh node chromium fonts pyvenv || status=1 ;;
    *) echo "test.sh: go, ui, both or check, not $part" >&2; exit 2 ;;
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

# The race detector watches Go's memory. SQLite's is C translated to Go, which
# lives outside it: looking at each of its accesses finds nothing and took
# most of the time of the tests that use SQLite. Its driver is watched.
race=(-race '-gcflags=modernc.org/sqlite/lib=-race=false')

# The simulator is one coroutine at a time, and the race detector makes it ten
# times slower. Without it all is tested; a few seeds with it show that two
# simulations share nothing.
sim=./admin/internal/sim

# Nothing runs beside anything else in these, and nearly all of their time is
# arithmetic, which the race detector makes four times as long. That their
# caches may be shared, the tests of those who use them show.
arithmetic=(./admin/internal/ical ./admin/internal/store/logchunk ./admin/verify/expand)

# Half as much work for the collector, and memory is plenty: a sixth of the time
# of tests with the race detector was its.
export GOGC=${GOGC:-400}

# test_packages NAME MODULE FLAG... -- PACKAGE... [-args ...]
# -p 2: packages at once. More of them with race detector and a database each
# only make one another slow on two cores.
test_packages() {
  local name=$1 module=$2 flags=()
  shift 2
  while [ "$1" != -- ]; do
    flags+=("$1")
    shift
  done
  shift
  # The race detector needs cgo, which the Makefile turns off.
  local cgo=0
  [ "${flags[0]-}" != -race ] || cgo=1
  run -as go -name "go-$name" -- "${parts[@]}" env CGO_ENABLED=$cgo \
    go -C "$module" test -json -shuffle=on -p 2 -timeout 25m "${flags[@]}" "$@"
}

test_go() {
  local module parts=() slow=(./admin ./admin/internal/store/gormstore) rest wire
  mapfile -t rest < <(go list ./... | grep -vxF "$(go list "$sim" "${arithmetic[@]}")")
  test_packages plain . -- "$sim" "${arithmetic[@]}"
  # With the race detector the system calls of direct are others, and schedule is
  # arithmetic.
  test_packages proto-plain proto -- ./direct ./schedule
  mapfile -t wire < <(go -C proto list ./... | grep -v '/schedule$')
  test_packages proto proto "${race[@]}" -- "${wire[@]}"
  test_packages sim-race . "${race[@]}" -run '^TestSwarm$' -- "$sim" -args -seeds 6
  for module in executor-sdk executor-sdk/tracing; do
    test_packages "${module//\//-}" "$module" "${race[@]}" -- ./...
  done
  # go starts packages in the order of its arguments: the slowest first, or
  # they run alone in the end.
  parts=(.cache/bin/withparts --)
  test_packages root . "${race[@]}" -- "${slow[@]}" "${rest[@]}"

  # The other product: storage and migrations, what starts servers, and paths
  # from end to end, one of them with several nodes and one with a server that is
  # killed. A server that was lent has had its turn. Go's code has been watched
  # by the race detector above, and SQLite has been tested.
  parts=(env -u CARILLON_TEST_MYSQL_DSN .cache/bin/withparts -product mysql --)
  test_packages mysql . -skip '^TestSQLite|/^sqlite$' -- ./admin/internal/store/gormstore/... ./internal/testenv ./internal/testenv/cmd/withparts
  test_packages mysql-path . -skip '/^sqlite$' -run "$mysql_paths" -- ./admin
}

# What the race detector, the other databases and whole paths find, is left to
# test_go: this is for the minutes between two edits.
test_check() {
  local parts=() rooms=(domain run lease scheduler completer dispatch alerting auth gateway api calljob store/logchunk)
  # The alert of a run in a server's database needs the server.
  test_packages check . -skip '^TestAFailedRunIsTold$' -- ./sql "${rooms[@]/#/./admin/internal/}"
  test_packages check-store . -run '^TestSQLite' -- ./admin/internal/store/gormstore
  test_packages check-proto proto -- ./schedule
  test_packages check-sdk executor-sdk -- ./...
}

mysql_paths='^(TestTheWholePath|TestSchedulesFireOnceOnSeveralNodes|TestNodesComeAndGoWhileJobsFire|TestTheDatabaseIsKilledWhileJobsFire|TestADatabaseThatBreaksPromisesIsRefused)$'

test_ui() {
  run -as step -name ui-build -- make --no-print-directory build
  run -as lines -name ui-unit -- npm --prefix web-ui run --silent test
  # Clients are made and the browser waits: at once.
  local clients
  tally run -as lines -name clients -- build/clients.sh >.cache/clients.log 2>&1 &
  clients=$!
  CARILLON_BIN=$PWD/bin/carillon run -as lines -name ui-browser -- npm --prefix web-ui run --silent e2e
  wait "$clients" || status=1
  printf '\n-- clients\n'
  cat .cache/clients.log
}

tally clear
for part in "$@"; do
  "test_$part"
done
printf '\n'
tally sum || status=1
exit "$status"
