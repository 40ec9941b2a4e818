#!/usr/bin/env bash
# Makes clients of docs/openapi.json with generators that people use, and has each
# of them use a real server: bin/carillon demo, on free ports and a new folder.
#
#   build/clients.sh      after make build; closes with the line "N passed, N failed"
#
# Generators are pinned, in the Makefile and in clients/python/requirements.txt, and
# kept in .cache/tools; what they make goes to .cache/clients and is not committed.
set -euo pipefail
cd "$(dirname "$0")/.."

oapi_codegen=$(sed -n 's|^OAPI_CODEGEN := .*-\(v[0-9.]*\)/.*|\1|p' Makefile)
tools=$PWD/.cache/tools
work=$PWD/.cache/clients
spec=$PWD/docs/openapi.json

build/need.sh node pyvenv
[ -x web-ui/node_modules/.bin/openapi-typescript ] || npm --prefix web-ui ci --no-audit --no-fund >&2

go_tool=$tools/oapi-codegen-$oapi_codegen/oapi-codegen
[ -x "$go_tool" ] || GOBIN=$(dirname "$go_tool") go install "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$oapi_codegen"

# One folder for each list of pins: changing it is all it takes to get the new ones.
venv=$tools/python-clients-$(sha256sum build/clients/python/requirements.txt | cut -c1-12)
if [ ! -e "$venv/whole" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r build/clients/python/requirements.txt >&2
  touch "$venv/whole"
fi

rm -rf "$work"
mkdir -p "$work"
cp -r build/clients/go build/clients/python build/clients/typescript "$work"

mkdir "$work/go/carillon"
"$go_tool" -generate types,client -package carillon -o "$work/go/carillon/client.go" "$spec"
GOWORK=off go -C "$work/go" build -mod=readonly -o roundtrip .

PATH="$venv/bin:$PATH" "$venv/bin/openapi-python-client" generate --path "$spec" --output-path "$work/python/carillon" --meta none >&2

ln -s "$PWD/web-ui/node_modules" "$work/node_modules"
web-ui/node_modules/.bin/openapi-typescript "$spec" -o "$work/typescript/schema.ts" >&2
echo '{"type":"module"}' >"$work/typescript/package.json"
web-ui/node_modules/.bin/tsc --strict --target es2022 --module nodenext --types node --typeRoots "$PWD/web-ui/node_modules/@types" --skipLibCheck --outDir "$work/typescript/out" "$work/typescript/roundtrip.ts"

data=$(mktemp -d)
said=$work/server.log
bin/carillon demo --data "$data" --http 127.0.0.1:0 --executors 127.0.0.1:0 >"$said" 2>&1 &
server=$!
stop() {
  kill -INT "$server" 2>/dev/null || true
  wait "$server" || true
  rm -rf "$data"
}
trap stop EXIT
for _ in $(seq 300); do
  grep -q 'executor joined' "$said" && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.2
done
CARILLON_URL=$(sed -n 's/.*web UI *\(http[^ ]*\).*/\1/p' "$said" | head -n 1)
CARILLON_PASSWORD=$(sed -n 's/.*password *\([^ ]*\).*/\1/p' "$said" | head -n 1)
export CARILLON_URL=${CARILLON_URL%/} CARILLON_PASSWORD CARILLON_HANDLER=reconcile-totals
[ -n "$CARILLON_URL" ] || { cat "$said"; echo '0 passed, 1 failed'; exit 1; }

passed=0 failed=0
# client NAME COMMAND...
client() {
  local line
  echo "-- $1"
  line=$("${@:2}" | tee /dev/stderr | tail -n 1) || true
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
  else
    failed=$((failed + 1))
  fi
}
client go "$work/go/roundtrip"
client typescript node "$work/typescript/out/roundtrip.js"
client python "$venv/bin/python" "$work/python/roundtrip.py"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
