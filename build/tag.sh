#!/usr/bin/env bash
# Makes a release's commit and tags, on a clean tree, and pushes nothing:
#
#   make ui && build/tag.sh v1.2.3
#
# The commit has the built pages, which go install embeds. It is a child of HEAD, and no
# branch has it: only the tags lead to it.
#
# The modules that applications require are tagged one by one, as Go wants it:
# proto/v1.2.3, executor-sdk/v1.2.3 and so on. They require one another in that version.
# go.work, which is for work in this repository, replaces that version by their folders.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "tag.sh: a version like v1.2.3, not '$version'" >&2; exit 2; }
[ -z "$(git status --porcelain)" ] || { echo "tag.sh: there are changes that are not committed" >&2; exit 1; }

make -q ui || { echo "tag.sh: the pages are not built, or older than their sources: run make ui" >&2; exit 1; }

root=$(sed -n 's/^module //p' go.mod)
tags=("$version")
for module in proto schedule executor-sdk executor-sdk/generate executor-sdk/tracing; do
  tags+=("$module/$version")
done
for tag in "${tags[@]}"; do
  ! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || { echo "tag.sh: there is a tag $tag" >&2; exit 1; }
done

trap 'git reset -q && git checkout -q -- .' EXIT

# A go.mod requires this repository's modules in that version.
while IFS= read -r file; do
  sed -i -E "s#^(require |\t)($root[^ ]*) v[^ ]+#\1\2 $version#" "$file"
done < <(git ls-files -- go.mod '*/go.mod')
sed -i "s/ v[^ ]* => / $version => /" go.work
sed -i "s/^\(version\|appVersion\): .*/\1: ${version#v}/" packaging/chart/Chart.yaml

git add -u
git add -f web-ui/dist
commit=$(git commit-tree -p HEAD -m "release: $version" "$(git write-tree)")
for tag in "${tags[@]}"; do
  git tag -a -m "Carillon $version" "$tag" "$commit"
done
printf 'tagged; publish by\n  git push --atomic origin %s\n' "${tags[*]}"
