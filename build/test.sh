#!/usr/bin/env bash
# Runs tests and closes with the line "N passed, N failed".
#
#   build/test.sh go       all Go modules, on a private MariaDB, with the race detector; what speaks to
#                           the database once more on MySQL
#   build/test.sh pages    builds the binary with the web UI, and runs the pages' unit tests
#   build/test.sh browser  the browser test on that binary, and clients that are generated from
#                           docs/openapi.json
#   build/test.sh check    in two minutes what finds most: rules, engine, API and SDK, the store on SQLite,
#                           without the race detector and without a server
#
# A failure in one part does not keep the others from running. Failed tests of Go, if
# they are few, run once more alone; what passes then is named as flaky
# (docs/dev/testing.md). A quarter of the time of the Go tests with a server is waiting,
# and most of the browser's: all others run beside them, one after the other. Three at
# once kept two cores so busy that statements met their deadlines, and took no less time.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
for part in "$@"; do
  case "$part" in
    go) build/need.sh gcc mariadb mariadb-tools mysql galera postgresql redis rabbitmq python node php systemd || status=1 ;;
    check) ;; # Go is all that it takes
    pages) build/need.sh node || status=1 ;;
    browser) build/need.sh node chromium fonts pyvenv || status=1 ;;
    *) echo "test.sh: go, pages, browser or check, not $part" >&2; exit 2 ;;
  esac
done
[ "$status" -eq 0 ] || exit 1

go build -o .cache/bin/ ./internal/testenv/cmd/...
tally() { .cache/bin/tally "$@"; }

# run -as KIND -name NAME [-alone WORDS] -- COMMAND...
run() {
  printf '\n-- %s\n' "$4"
  tally run "$@" || true # counted
}

# beside LOG FUNCTION... runs the function until join waits for it and shows what it said.
beside() {
  log=.cache/$1.log
  ( "${@:2}" ) >"$log" 2>&1 &
  pid=$!
}
join() {
  wait "$pid" || status=1
  cat "$log"
}

# The race detector watches Go's memory. SQLite's, and that of the C library below
# it, is C translated to Go, which lives outside it: looking at each of its accesses
# finds nothing and took most of the time of the tests that use SQLite. Its driver is
# watched. A hash of a password shares nothing and takes 19 MiB: 78 ms of a processor
# when each access is looked at, 30 else, for each user of each test.
race=(-race)
for c in modernc.org/sqlite/lib modernc.org/libc modernc.org/memory golang.org/x/crypto/argon2; do
  race+=("-gcflags=$c=-race=false")
done

# The simulator is one coroutine at a time, and the race detector makes it ten
# times slower. Without it all is tested; a few seeds with it show that two
# simulations share nothing.
sim=./admin/internal/sim

# Nothing runs beside anything else in these, and nearly all of their time is
# arithmetic, which the race detector makes four times as long. That their
# caches may be shared, the tests of those who use them show.
arithmetic=(./admin/internal/ical ./admin/internal/run ./admin/internal/store/logchunk ./admin/verify/expand)

# Half as much work for the collector, and memory is plenty: a sixth of the time
# of tests with the race detector was its.
export GOGC=${GOGC:-400}

# Packages at once. More of them with race detector and a database each only make
# one another slow on two cores.
at_once=2

# test_packages NAME MODULE FLAG... -- PACKAGE... [-args ...]
# Without go vet, which make lint runs on all of it: 93 s of the processors where
# nothing is cached.
test_packages() {
  local name=$1 module=$2 flags=() command
  shift 2
  while [ "$1" != -- ]; do
    flags+=("$1")
    shift
  done
  shift
  # The race detector needs cgo, which the Makefile turns off.
  local cgo=0
  [ "${flags[0]-}" != -race ] || cgo=1
  command=("${parts[@]}" env CGO_ENABLED=$cgo go -C "$module" test -json -shuffle=on -vet=off
    -p "$at_once" -timeout 25m "${flags[@]}")
  run -as go -name "go-$name" -alone "${#command[@]}" -- "${command[@]}" "$@"
}

# The tests of the root module, on one server.
test_root() {
  local parts=(.cache/bin/withparts --) slow=(./admin ./admin/internal/store/gormstore) rest
  mapfile -t rest < <(go list ./... | grep -vxF "$(go list "$sim" "${arithmetic[@]}")")
  # go starts packages in the order of its arguments: the slowest first, or
  # they run alone in the end. The race detector sees the store suite on MariaDB.
  test_packages root . "${race[@]}" -skip "$store_on_sqlite" -- "${slow[@]}" "${rest[@]}"
}

# What needs no server, or one of its own.
test_others() {
  local module parts=() wire at_once=1
  test_packages plain . -- "$sim" "${arithmetic[@]}"
  test_packages sqlite . -run "$store_on_sqlite" -- ./admin/internal/store/gormstore
  # With the race detector the system calls of direct are others, and schedule is
  # arithmetic.
  test_packages proto-plain proto -- ./direct ./schedule
  mapfile -t wire < <(go -C proto list ./... | grep -v '/schedule$')
  test_packages proto proto "${race[@]}" -- "${wire[@]}"
  test_packages sim-race . "${race[@]}" -run '^TestSwarm$' -- "$sim" -args -seeds 6
  for module in executor-sdk executor-sdk/tracing; do
    test_packages "${module//\//-}" "$module" "${race[@]}" -- ./...
  done

  # The other product: storage and migrations, what starts servers, and paths
  # from end to end, one of them with several nodes and one with a server that is
  # killed. A server that was lent has had its turn. Go's code has been watched
  # by the race detector above, and SQLite has been tested.
  parts=(env -u CARILLON_TEST_MYSQL_DSN .cache/bin/withparts -product mysql --)
  test_packages mysql . -skip "$store_on_sqlite"'|/^sqlite$' -- ./admin/internal/store/gormstore/... ./internal/testenv ./internal/testenv/cmd/withparts
  test_packages mysql-path . -skip '/^sqlite$' -run "$mysql_paths" -- ./admin
}

# What the race detector, the other databases and whole paths find, is left to
# test_go: this is for the minutes between two edits.
test_check() {
  local parts=() rooms=(domain run lease scheduler completer dispatch alerting auth gateway api/... calljob store/logchunk)
  # The alert of a run in a server's database needs the server.
  test_packages check . -skip '^TestAFailedRunIsTold$' -- ./sql "${rooms[@]/#/./admin/internal/}"
  test_packages check-store . -run "$store_on_sqlite" -- ./admin/internal/store/gormstore
  test_packages check-proto proto -- ./schedule
  test_packages check-sdk executor-sdk -- ./...
}

store_on_sqlite='^TestSQLite'
mysql_paths='^(TestTheWholePath|TestSchedulesFireOnceOnSeveralNodes|TestNodesComeAndGoWhileJobsFire|TestTheDatabaseIsKilledWhileJobsFire|TestADatabaseThatBreaksPromisesIsRefused)$'

# Before everything else: tests build the server, which embeds the pages, and must
# not find half of them.
build_pages() {
  run -as step -name ui-build -- make --no-print-directory build
}

test_pages() {
  run -as lines -name ui-unit -- npm --prefix web-ui run --silent test
}

# Clients are made and the browser waits: at once.
test_browser() {
  beside clients run -as lines -name clients -- build/clients.sh
  CARILLON_BIN=$PWD/bin/carillon run -as lines -name ui-browser -- npm --prefix web-ui run --silent e2e
  join
}

asked=" $* "
asks() { [[ $asked = *" $1 "* ]]; }

others() {
  if asks go; then test_others; fi
  if asks pages; then test_pages; fi
  if asks browser; then test_browser; fi
}

tally clear
if asks check; then test_check; fi
if asks pages; then build_pages; fi
if asks go; then
  beside test-others others
  test_root
  join
else
  others
fi
printf '\n'
# Two cores are busy beside a test; it may have to be on time. What fails once more
# with nothing beside it has failed.
tally again || status=1
tally sum || status=1
exit "$status"
