#!/bin/sh
# Builds kstatus from main.go beside this file and the modules that go.mod and go.sum pin, once per content of these
# files, and prints the path of the program as its last line.
set -eu

cd "$(dirname "$0")"
key=$(cat go.mod go.sum main.go | sha256sum | cut -c1-16)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/virt-advisor/kstatus-$key"
if [ -x "$cache/kstatus" ]; then
	echo "$cache/kstatus"
	exit 0
fi
if ! command -v go >/dev/null 2>&1; then
	echo "kstatus: Go is needed to build it: install Go $(sed -n 's/^go //p' go.mod) or newer" >&2
	exit 1
fi

echo "kstatus: building into $cache (once)" >&2
mkdir -p "$cache"
# Built aside and renamed, so that an interrupted build never looks like a finished one.
staging=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$staging/kstatus" .
mv -f "$staging/kstatus" "$cache/kstatus"
echo "$cache/kstatus"
