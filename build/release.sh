#!/usr/bin/env bash
# Makes what is handed out, in dist/:
#
#   build/release.sh VERSION
#
# for linux on amd64 and arm64 each
#   linux-ARCH/carillon               the binary: static, with the web UI
#   linux-ARCH/sample-shop            the sample application, for its image alone
#   carillon_VERSION_linux_ARCH.tar.gz  with licence, unit and settings
#   carillon_VERSION_ARCH.deb
#   carillon_VERSION_linux_ARCH.sbom.json  what of others is in it (CycloneDX)
# and carillon_VERSION_pages.sbom.json, which packages the pages are made of, and SHA256SUMS. The same commit gives the same bytes. VERSION is that of a tag,
# v1.2.3; anything else is a snapshot, 0.0.0+VERSION.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC

version=${1:?version}
sbom=${CYCLONEDX_GOMOD:?path of cyclonedx-gomod}
plain=${version#v}
[[ $plain =~ ^[0-9]+\.[0-9]+\.[0-9]+([-+].*)?$ && $version = v* ]] || plain="0.0.0+${version//[^A-Za-z0-9.]/.}"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

rm -rf dist
for arch in amd64 arm64; do
  out=dist/linux-$arch
  mkdir -p "$out"
  GOOS=linux GOARCH=$arch CGO_ENABLED=0 go build -ldflags "-s -w -X main.version=$version" -o "$out/" ./cmd/carillon ./examples/sample-shop
  "$sbom" bin -json -std -noserial -notimestamp -output "dist/carillon_${plain}_linux_$arch.sbom.json" -version "$plain" "$out/carillon" 2>/dev/null
  pack=$(mktemp -d)
  mkdir "$pack/carillon-$plain"
  cp "$out/carillon" LICENSE NOTICE packaging/carillon.service packaging/server.yaml "$pack/carillon-$plain/"
  tar -C "$pack" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode='u+rw,go=rX,go-w' \
    -cf - "carillon-$plain" | gzip -n >"dist/carillon_${plain}_linux_$arch.tar.gz"
  rm -rf "$pack"
  packaging/deb.sh "$out/carillon" "$arch" "$plain" "dist/carillon_${plain}_$arch.deb"
done
# The pages' packages. Where they were downloaded from is nobody's business.
npm --prefix web-ui sbom --sbom-format cyclonedx --omit dev | node -e '
  const bom = JSON.parse(require("fs").readFileSync(0, "utf8"))
  delete bom.serialNumber
  delete bom.metadata.timestamp
  for (const c of [bom.metadata.component, ...bom.components]) delete c.externalReferences
  console.log(JSON.stringify(bom, null, 2))' >"dist/carillon_${plain}_pages.sbom.json"
(cd dist && sha256sum -- *.tar.gz *.deb *.sbom.json >SHA256SUMS)
ls -l dist
