#!/bin/sh
# Builds promtool and helm from the modules that go.mod and go.sum beside this file pin, once per content of those two
# files, and prints the folder that holds them as its last line.
set -eu
cd "$(dirname "$0")"
if ! command -v go >/dev/null 2>&1; then
	echo "tools: Go is needed to build promtool and helm: install Go $(sed -n 's/^go //p' go.mod) or newer" >&2
	exit 1
fi
key=$(cat go.mod go.sum | sha256sum | cut -c1-16)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/virt-advisor/tools-$key"
if [ -x "$cache/promtool" ] && [ -x "$cache/helm" ]; then
	echo "$cache"
	exit 0
fi
echo "tools: building promtool and helm into $cache (about 5 minutes, once)" >&2
mkdir -p "$(dirname "$cache")"
# Built aside and renamed, so that an interrupted build never looks like a finished one.
staging=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM
. ../controlplane/step.sh
export CGO_ENABLED=0
for tool in helm.sh/helm/v3/cmd/helm github.com/prometheus/prometheus/cmd/promtool; do
	step "tools: compiling $(basename "$tool")" go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$staging/" "$tool"
done
chmod 755 "$staging"
if [ ! -x "$cache/promtool" ] || [ ! -x "$cache/helm" ]; then
	rm -rf "$cache"
	mv "$staging" "$cache"
	trap - EXIT
fi
echo "$cache"
