#!/bin/sh
# Builds kube-apiserver and etcd from the modules that go.mod and go.sum beside this file pin, once per content
# of those two files, and prints the folder that holds them as its last line.
#
# KUBEBUILDER_ASSETS, the convention of envtest, names a folder that already has both programs and is used instead.
set -eu

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	for program in etcd kube-apiserver; do
		if [ ! -x "$KUBEBUILDER_ASSETS/$program" ]; then
			echo "controlplane: KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no executable $program: unset it to build one, or point it to a folder of envtest binaries" >&2
			exit 1
		fi
	done
	echo "$KUBEBUILDER_ASSETS"
	exit 0
fi

cd "$(dirname "$0")"
if ! command -v go >/dev/null 2>&1; then
	echo "controlplane: Go is needed to build kube-apiserver and etcd: install Go $(sed -n 's/^go //p' go.mod) or newer, or set KUBEBUILDER_ASSETS" >&2
	exit 1
fi

key=$(cat go.mod go.sum | sha256sum | cut -c1-16)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/virt-advisor/controlplane-$key"
if [ -x "$cache/etcd" ] && [ -x "$cache/kube-apiserver" ]; then
	echo "$cache"
	exit 0
fi

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
etcd_version=$(go list -m -f '{{.Version}}' go.etcd.io/etcd/server/v3)
# major and minor of vMAJOR.MINOR.PATCH; without them `kubectl version` refuses the server.
major=$(echo "$version" | sed 's/^v\([0-9]*\)\..*/\1/')
minor=$(echo "$version" | sed 's/^v[0-9]*\.\([0-9]*\)\..*/\1/')
stamp=k8s.io/component-base/version

echo "controlplane: building etcd $etcd_version and kube-apiserver $version into $cache (about 4 minutes, once; KUBEBUILDER_ASSETS names a folder that has both)" >&2
. ./step.sh
mkdir -p "$(dirname "$cache")"
# Built aside and renamed, so that an interrupted build never looks like a finished one.
staging=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM
export CGO_ENABLED=0
step "controlplane: compiling etcd" go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$staging/etcd" go.etcd.io/etcd/server/v3
step "controlplane: compiling kube-apiserver" go build -trimpath -buildvcs=false \
	-ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor" \
	-o "$staging/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
trap 'exit 130' INT TERM
chmod 755 "$staging"
# Another build may have finished meanwhile, and its programs may be running or about to be started.
if [ ! -x "$cache/etcd" ] || [ ! -x "$cache/kube-apiserver" ]; then
	rm -rf "$cache"
	mv "$staging" "$cache"
	trap - EXIT
fi
echo "$cache"
