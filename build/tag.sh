#!/usr/bin/env bash
# Makes a release's commit and tags, on a clean tree, and pushes nothing:
#
#   build/tag.sh v1.2.3
#
# The modules that applications require are tagged one by one, as Go wants it:
# proto/v1.2.3, executor-sdk/v1.2.3 and so on. They require one another in that version.
# go.work, which is for work in this repository, replaces that version by their folders.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "tag.sh: a version like v1.2.3, not '$version'" >&2; exit 2; }
[ -z "$(git status --porcelain)" ] || { echo "tag.sh: there are changes that are not committed" >&2; exit 1; }

root=$(sed -n 's/^module //p' go.mod)
tags=("$version")
for module in proto schedule executor-sdk executor-sdk/generate executor-sdk/tracing; do
  tags+=("$module/$version")
done
for tag in "${tags[@]}"; do
  ! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || { echo "tag.sh: there is a tag $tag" >&2; exit 1; }
done

# A go.mod requires this repository's modules in that version.
while IFS= read -r file; do
  sed -i -E "s#^(require |\t)($root[^ ]*) v[^ ]+#\1\2 $version#" "$file"
done < <(git ls-files -- go.mod '*/go.mod')
sed -i "s/ v[^ ]* => / $version => /" go.work
sed -i "s/^\(version\|appVersion\): .*/\1: ${version#v}/" packaging/chart/Chart.yaml

git diff --quiet || git commit -q -am "release: $version"
for tag in "${tags[@]}"; do
  git tag -a -m "Carillon $version" "$tag"
done
printf 'tagged; publish by\n  git push --atomic origin HEAD %s\n' "${tags[*]}"
