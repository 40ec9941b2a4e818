#!/usr/bin/env bash
# Prints the folders of the workspace's modules, one a line, as go.work lists them.
set -euo pipefail
awk '/^use \(/ { use = 1; next } /^\)/ { use = 0 } use { sub("^\\./", "", $1); print $1 }' "$(dirname "$0")/../go.work"
