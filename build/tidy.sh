#!/usr/bin/env bash
# Tidies go.mod and go.sum of each module of the workspace:
#
#   build/tidy.sh            writes them
#   build/tidy.sh --check    shows the differences, and fails if there are any
#
# The modules require one another in a version that no proxy has, and go mod tidy does not
# read go.work. So it gets a copy of go.mod that replaces the modules by their folders.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOWORK=off

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

mapfile -t folders < <(build/modules.sh)
replace=() drop=()
for folder in "${folders[@]}"; do
  path=$(sed -n 's/^module //p' "$folder/go.mod")
  replace+=("-replace=$path=$PWD/$folder")
  drop+=("-dropreplace=$path")
done

check=()
[ "${1:-}" != --check ] || check=(-diff)
status=0
for folder in "${folders[@]}"; do
  rm -f "$copy"/*
  cp "$folder"/go.mod "$copy"
  [ ! -f "$folder/go.sum" ] || cp "$folder/go.sum" "$copy"
  go mod edit "${replace[@]}" "$copy/go.mod"
  go -C "$folder" mod tidy -modfile="$copy/go.mod" "${check[@]}" || { status=1; echo "tidy.sh: $folder/go.mod: run build/tidy.sh" >&2; }
  [ ${#check[@]} -eq 0 ] || continue
  go mod edit "${drop[@]}" "$copy/go.mod"
  cp "$copy"/go.* "$folder"
done
exit "$status"
