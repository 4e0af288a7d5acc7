#!/bin/sh
# Collects the CRDs of OpenShift from the module that go.mod and go.sum beside this file pin, once per content of this
# folder, and prints the folder that holds them as its last line: one file per kind, named after its plural.
set -eu
cd "$(dirname "$0")"
if ! command -v go >/dev/null 2>&1; then
	echo "crds: Go is needed to fetch the CRDs of OpenShift: install Go $(sed -n 's/^go //p' go.mod) or newer" >&2
	exit 1
fi
key=$(cat go.mod go.sum build.sh | sha256sum | cut -c1-16)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/virt-advisor/crds-$key"
if [ -d "$cache" ]; then
	echo "$cache"
	exit 0
fi
module=$(go mod download -json github.com/openshift/api | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
mkdir -p "$(dirname "$cache")"
# Collected aside and renamed, so that an interrupted run never looks like a finished one.
staging=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM
for plural in apiservers consolelinks infrastructures kubeletconfigs machineconfigpools machineconfigs \
	machineconfigurations machineosbuilds machineosconfigs schedulers securitycontextconstraints; do
	# A kind with feature gates has a file per set of them: the set of an ordinary cluster is called Default.
	for file in "$module"/payload-manifests/crds/*_"$plural".crd.yaml \
		"$module"/payload-manifests/crds/*_"$plural"-Default.crd.yaml \
		"$module"/payload-manifests/crds/*_"$plural"-SelfManagedHA-Default.crd.yaml \
		"$module"/console/v1/zz_generated.crd-manifests/*_"$plural".crd.yaml; do
		if [ -f "$file" ]; then
			cp "$file" "$staging/$plural.yaml"
		fi
	done
	if [ ! -f "$staging/$plural.yaml" ]; then
		echo "crds: $module has no CRD of $plural: correct the names in tests/crds/build.sh" >&2
		exit 1
	fi
done
chmod -R u+w,a+rX "$staging"
if [ ! -d "$cache" ]; then
	mv "$staging" "$cache"
	trap - EXIT
fi
echo "$cache"
