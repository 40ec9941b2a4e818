#!/usr/bin/env bash
# Runs make test and all heavier proofs, one after the other, and closes with "N passed, N
# failed". It is for a release. After a change, run the proof of its subject alone.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o .cache/bin/ ./tools/tally
tally() { .cache/bin/tally "$1" -dir .cache/tally-proof "${@:2}"; }

tally clear
tally run -as lines -name test -- make test || true # counted
tally run -as lines -name proof-race -- make proof-race || true
tally run -as lines -name proof-mysql -- make proof-mysql || true
tally run -as lines -name proof-ui -- make proof-ui || true
tally run -as step -name proof-large -- make proof-large || true
tally run -as step -name mutants -- make mutants || true
tally run -as step -name crosscheck -- make crosscheck || true
tally run -as step -name proof -- make proof || true
tally run -as lines -name faults -- make faults || true
tally run -as lines -name faults-mysql -- make faults-ci PRODUCT=mysql || true
tally run -as step -name sim -- make sim ARGS="-for 1h" || true
printf '\n'
tally sum
