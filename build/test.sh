#!/usr/bin/env bash
# Runs tests and closes with the line "N passed, N failed".
#
#   build/test.sh check     two minutes: rules, engine, API, SDK and the store on SQLite, without a server
#   build/test.sh test      what `make test` runs: all that finds faults for its time
#   build/test.sh engine    what CI adds: the engine with the race detector
#   build/test.sh PART ...  parts of `make proof-all`: race, mysql, mysql-path, browser, clients
#
# docs/dev/testing.md lists what is tested where. A failure in one part does not keep the
# others from running. If at most three tests of Go failed, they run once more alone. A
# test that passes then is named as flaky and counted in .cache/flaky.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
for part in "$@"; do
  case "$part" in
    check) ;; # Go is all that it takes
    test) build/need.sh gcc node mariadb redis python protoc chromium fonts || status=1 ;;
    engine) build/need.sh gcc mariadb redis || status=1 ;;
    race) build/need.sh gcc node mariadb mariadb-tools galera postgresql redis rabbitmq python php systemd || status=1 ;;
    mysql | mysql-path) build/need.sh mysql || status=1 ;;
    browser) build/need.sh node chromium fonts || status=1 ;;
    clients) build/need.sh node pyvenv || status=1 ;;
    *) echo "test.sh: check, test, engine, race, mysql, mysql-path, browser or clients, not $part" >&2; exit 2 ;;
  esac
done
[ "$status" -eq 0 ] || exit 1

go build -o .cache/bin/ ./tools/tally ./tools/withparts

# run -as KIND -name NAME [-alone WORDS] [-repeat COMMAND] -- COMMAND...
run() {
  printf '\n-- %s\n' "$4"
  .cache/bin/tally run "$@" || true # counted
}

# beside LOG FUNCTION... runs the function until join LOG waits for it and shows its output.
declare -A beside_pid
beside() {
  ( "${@:2}" ) >".cache/$1.log" 2>&1 &
  beside_pid[$1]=$!
}
join() {
  wait "${beside_pid[$1]}" || status=1
  cat ".cache/$1.log"
}

# The race detector watches Go's memory. SQLite's memory, and that of the C library below
# it, belongs to C that was translated to Go. It lies outside of Go's memory, and checks of
# its accesses find nothing. They took most of the time of tests on SQLite. Its driver is
# watched. A hash of a password shares nothing: 78 ms of a processor with the checks, 30
# without, for each user of each test.
race=(-race)
for c in modernc.org/sqlite/lib modernc.org/libc modernc.org/memory golang.org/x/crypto/argon2; do
  race+=("-gcflags=$c=-race=false")
done

# The collector does half as much work. It took a sixth of the time of tests with the race
# detector.
export GOGC=${GOGC:-400}

# Packages at once, and parallel tests of a package at once. Most tests wait most of the
# time.
at_once=2
parallel=6

# test_packages NAME MODULE FLAG... -- PACKAGE... [-args ...]
# Without go vet, which `make lint` runs.
test_packages() {
  local name=$1 module=$2 flags=() command tags=nomsgpack cgo=0 watched=
  shift 2
  while [ "$1" != -- ]; do
    flags+=("$1")
    shift
  done
  shift
  [ -z "${proof-}" ] || tags+=,proof
  if [ "${flags[0]-}" = -race ]; then # it needs cgo, which the Makefile turns off
    cgo=1 watched=' -race'
  fi
  command=("${parts[@]}" env CGO_ENABLED=$cgo go -C "$module" test -tags="$tags" -json -shuffle=on -vet=off
    -p "$at_once" -parallel "$parallel" -timeout 25m "${flags[@]}")
  run -as go -name "go-$name" -alone "${alone-${#command[@]}}" \
    -repeat "CGO_ENABLED=$cgo go -C $module test -tags=$tags$watched -run '^{test}\$' {package}" -- "${command[@]}" "$@"
}

parts=() # words before the go command: a server for its tests
own_server=(.cache/bin/withparts --)
sim=./admin/tools/sim
store=./admin/internal/store/gormstore
store_on_sqlite='^TestSQLite'
# The server's module, those of the machines, whose tests want the same server, and the
# sample shop's. "./..." ends at the next go.mod.
beside_sdk=(./... ./tools/... ./admin/tools/... ./examples/sample-shop/...)

# In these packages goroutines share memory, and few libraries have to be compiled once
# more for the race detector. The others are watched by `make proof-race`.
watched=(batch callback gateway httpconn)

test_root() {
  local parts=("${own_server[@]}") first=(./admin "$store") rest
  mapfile -t rest < <(go list "${beside_sdk[@]}" | grep -vxF "$(go list "$sim" "${first[@]}" "${watched[@]/#/./admin/internal/}")")
  # go starts packages in the order of its arguments. The slowest come first.
  test_packages root . -skip "$store_on_sqlite" -- "${first[@]}" "${rest[@]}"
}

# Tests that need no server, or one of their own, one after the other. More of them beside
# the root module kept two cores so busy that statements met their deadlines.
test_others() {
  test_pages
  local at_once=1
  test_packages sqlite . -run "$store_on_sqlite" -- "$store"
  # With the race detector direct has other system calls, and schedule is arithmetic.
  test_packages direct proto -- ./direct
  test_packages schedule schedule -- ./...
  test_packages proto proto "${race[@]}" -- ./...
  test_packages executor-sdk executor-sdk "${race[@]}" -- ./... ./generate/...
  test_packages tracing executor-sdk/tracing "${race[@]}" -- ./...
  test_packages watched . "${race[@]}" -- "${watched[@]/#/./admin/internal/}"
}

test_pages() {
  run -as lines -name ui-unit -- npm --prefix web-ui run --silent test
  CARILLON_BIN=$PWD/bin/carillon run -as lines -name ui-tour -- npm --prefix web-ui run --silent e2e -- e2e/tour.mjs
  # One short row of the fault matrix on real processes, without the parts that other rows need.
  run -as lines -name fault-row -- go run ./tools/faults run --product mariadb --ci --only F01
}

# They have no deadlines to meet, and take the time that tests wait.
test_patient() {
  run -as step -name lint -- nice -n 19 make --no-print-directory lint
  test_simulator
}

# The simulator is one coroutine at a time, so that nothing is shared in it. A seed gives the
# same verdict on every machine. So a failure is final, and does not run again alone.
test_simulator() {
  local parts=(nice -n 19) alone=0
  test_packages sim . -- "$sim" -args -for 60s
}

test_all() {
  # Before everything else. Tests build the server, which embeds the pages, and generate-check
  # writes the files that the others read.
  run -as step -name build -- make --no-print-directory build
  run -as step -name generate-check -- make --no-print-directory generate-check
  beside patient test_patient
  beside others test_others
  test_root
  join others
  join patient
}

# What the race detector, the other databases and whole paths find is left to
# the others. This is for the minutes between two edits.
test_check() {
  local rooms=(domain run lease scheduler completer dispatch addon/alerting/notify auth gateway api/... calljob store/logchunk)
  # The alert of a run in a server's database needs the server.
  test_packages check . -skip '^TestAFailedRunIsTold$' -- ./sql "${rooms[@]/#/./admin/internal/}"
  test_packages check-store . -run "$store_on_sqlite" -- "$store"
  test_packages check-schedule schedule -- ./...
  test_packages check-sdk executor-sdk -- ./... ./generate/...
}

# The rooms in which a trigger becomes a run, and a run an alert.
test_engine() {
  local parts=("${own_server[@]}") rooms=(dispatch scheduler completer lease sweeper addon/alerting/notify hotset)
  test_packages engine . "${race[@]}" -- "${rooms[@]/#/./admin/internal/}"
  parts=()
  test_packages engine-sim . "${race[@]}" -run '^TestSwarm$' -- "$sim" -args -seeds 4
}

# ---- parts of make proof-all ----

# All tests of the server, the machines and the sample shop with the race detector, on
# MariaDB. The simulator gets a few seeds: the race detector makes it ten times slower.
test_race() {
  local proof=1 parts=("${own_server[@]}") rest
  mapfile -t rest < <(go list "${beside_sdk[@]}" | grep -vxF "$(go list "$sim" ./admin "$store")")
  test_packages race . "${race[@]}" -- ./admin "$store" "${rest[@]}"
  parts=()
  test_packages race-sim . "${race[@]}" -run '^TestSwarm$' -- "$sim" -args -seeds 6
}

# The other product: the storage suite and the tests that start servers.
mysql_server=(env -u CARILLON_TEST_MYSQL_DSN .cache/bin/withparts -product mysql --)
test_mysql() {
  local proof=1 parts=("${mysql_server[@]}")
  test_packages mysql . -skip "$store_on_sqlite"'|/^sqlite$' -- "$store/..." ./internal/testenv ./tools/withparts
}

# Paths from end to end, one of them with several nodes and one with a server that is killed.
test_mysql_path() {
  local proof=1 parts=("${mysql_server[@]}")
  test_packages mysql-path . -skip '/^sqlite$' -run '^(TestTheWholePath|TestSchedulesFireOnceOnSeveralNodes|TestNodesComeAndGoWhileJobsFire|TestTheDatabaseIsKilledWhileJobsFire|TestADatabaseThatBreaksPromisesIsRefused)$' -- ./admin
}

test_browser() {
  run -as step -name build -- make --no-print-directory build
  # The pictures of the tour as they are now lie in .cache/tour.
  CARILLON_BIN=$PWD/bin/carillon CARILLON_E2E_TOUR=$PWD/.cache/tour run -as lines -name ui-browser -- npm --prefix web-ui run --silent e2e
  # The tour once more, behind a proxy that has the server at a path of its host.
  CARILLON_BIN=$PWD/bin/carillon CARILLON_E2E_PATH=/ops/carillon run -as lines -name ui-subpath -- npm --prefix web-ui run --silent e2e -- e2e/tour.mjs
}

test_clients() {
  run -as step -name build -- make --no-print-directory build
  run -as lines -name clients -- build/clients.sh
}

.cache/bin/tally clear
for part in "$@"; do
  case "$part" in
    test) test_all ;;
    *) "test_${part//-/_}" ;;
  esac
done
printf '\n'
# Two cores are busy beside a test, and the test may have to be on time. A test that fails
# once more with nothing beside it has failed.
.cache/bin/tally again || status=1
.cache/bin/tally sum || status=1
exit "$status"
