module github.com/kubevirt/virt-advisor/tests/crds

go 1.26.0

require github.com/openshift/api v0.0.0-20260213204242-d34f11c515b3
