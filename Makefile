# Every entry point for people and for CI. On a fresh machine each sets up what it needs: Rust and Go do the rest.
.DEFAULT_GOAL := help
SHELL := /bin/sh
CARGO ?= cargo
# Where cargo puts what it builds: its own variable, or the folder target.
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
CRD := crds/advisor.kubevirt.io_virtplatformconfigs.yaml
ROLE := config/rbac/role.yaml
NAMESPACES := config/rbac-namespaces/role.yaml
METRICS := docs/METRICS.md
FEATURES := docs/profiles/virt-platform-baseline.md
DENY_VERSION := 0.20.2
CYCLONEDX_VERSION := 0.5.9
# A test never writes the snapshot that it is compared with; INSTA_UPDATE=always make test does.
export INSTA_UPDATE ?= no
# Server tests wait most of the time: four at once, each with an API server of its own, take 60 % of the time of two.
export ADVISOR_TEST_PLANES ?= 4
export RUST_TEST_THREADS ?= 4

.PHONY: help
help: ## Show the targets.
	@sed -n 's/^\([a-z-]*\):.*## /  \1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build the program, target/release/virt-advisor.
	$(CARGO) build --release --package virt-advisor

.PHONY: controlplane
controlplane: ## Build etcd and kube-apiserver once (about 4 minutes) and print their folder as the last line.
	@sh tests/controlplane/build.sh

.PHONY: demo
demo: controlplane ## Show the main job on a control plane of its own (about 8 minutes the first time). DEMO_ONCE=1 ends it after the story.
	@echo "demo: building the operator and the demo (about 3 minutes the first time, then seconds)"
	@$(CARGO) build --package virt-advisor --package demo
	@$(TARGET_DIR)/debug/demo --operator $(TARGET_DIR)/debug/virt-advisor

.PHONY: demo-machines
demo-machines: controlplane ## Show the Machine operator on a control plane of its own (about 8 minutes the first time). DEMO_ONCE=1 ends it after the story.
	@echo "demo: building the operator and the demo (about 3 minutes the first time, then seconds)"
	@$(CARGO) build --package kubevirt-operator --package machines-stage
	@$(TARGET_DIR)/debug/demo-machines --operator $(TARGET_DIR)/debug/kubevirt-operator

.PHONY: run
run: ## Run the operator on the cluster of the current kubeconfig context. ARGS="--zap-log-level=debug" adds flags.
	$(CARGO) run --package virt-advisor -- run --zap-encoder=console $(ARGS)

.PHONY: install
install: ## Install the CRD into the cluster of the current kubeconfig context.
	kubectl apply --server-side -f $(CRD)

.PHONY: crds
crds: ## Collect the CRDs of OpenShift from their Go module once (seconds) and print their folder as the last line.
	@sh tests/crds/build.sh

.PHONY: tools
tools: ## Build promtool and helm once (about 5 minutes) and print their folder as the last line.
	@sh tests/tools/build.sh

.PHONY: test
test: controlplane crds tools ## Run every test; the last line names what was left out, and why. With CI set, leaving out fails.
	@left_out=$$(mktemp) && trap 'rm -f "$$left_out"' EXIT && \
	RUST_BACKTRACE=0 ADVISOR_TEST_LEFT_OUT="$$left_out" ADVISOR_TEST_TOOLS="$$(sh tests/tools/build.sh)" \
		$(CARGO) test --workspace && \
	if [ -s "$$left_out" ]; then echo "$$(sort -u "$$left_out" | paste -s -d ';' - | sed 's/;/; /g')"; fi

.PHONY: test-faults
test-faults: controlplane ## Tell a whole story with every fault at every request, with the leader lost at every point, and a kind that comes 50 times (about 20 minutes).
	ADVISOR_TEST_FAULTS=all $(CARGO) test --package virt-advisor --test cluster -- sweep election kinds::c1 --nocapture
	ADVISOR_TEST_FAULTS=all $(CARGO) test --package kubevirt-operator --test server -- faults --nocapture

.PHONY: fuzz
fuzz: ## Try what others write at random for ten minutes, and keep the seeds of failures. FUZZ_SECONDS=60 makes it one.
	FUZZ_SECONDS=$${FUZZ_SECONDS:-600} $(CARGO) test --package virt-advisor --profile fuzz --test fuzz -- --nocapture --test-threads=1

.PHONY: bench
bench: controlplane ## Measure requests, times and memory of the release build, and print them as a table.
	$(CARGO) build --release --package virt-advisor --package bench
	$(TARGET_DIR)/release/bench --operator $(TARGET_DIR)/release/virt-advisor

.PHONY: bench-scale
bench-scale: controlplane ## The same on a cluster of 3,000 nodes and on a tenth of it (about 35 minutes; BENCH_REST=60 makes it 17).
	$(CARGO) build --release --package virt-advisor --package bench
	BENCH_REST=$${BENCH_REST:-600} $(TARGET_DIR)/release/bench --operator $(TARGET_DIR)/release/virt-advisor --scale

.PHONY: bench-machines
bench-machines: controlplane ## Measure the Machine operator with 100 and 1,100 Machines (about 10 minutes).
	$(CARGO) build --release --package kubevirt-operator --package machines-stage
	$(TARGET_DIR)/release/bench-machines --operator $(TARGET_DIR)/release/kubevirt-operator

.PHONY: generate
generate: ## Write the generated files: CRD, roles, page of metrics, install.yaml, chart, bundle, dashboards.
	$(CARGO) build --quiet --package virt-advisor
	$(TARGET_DIR)/debug/virt-advisor crd > $(CRD).new && mv $(CRD).new $(CRD)
	$(TARGET_DIR)/debug/virt-advisor rbac > $(ROLE).new && mv $(ROLE).new $(ROLE)
	$(TARGET_DIR)/debug/virt-advisor rbac --namespaces > $(NAMESPACES).new && mv $(NAMESPACES).new $(NAMESPACES)
	$(TARGET_DIR)/debug/virt-advisor metrics > $(METRICS).new && mv $(METRICS).new $(METRICS)
	$(CARGO) run --quiet --package virt-platform-baseline --example features > $(FEATURES).new && mv $(FEATURES).new $(FEATURES)
	$(CARGO) run --quiet --package xtask -- manifests

.PHONY: new-profile
new-profile: ## Make the crate of a new profile and register it. NAME=numa-placement names it.
	@$(CARGO) run --quiet --package xtask -- new-profile "$(NAME)"
	@$(CARGO) fmt --all
	@$(MAKE) --no-print-directory generate

.PHONY: check
check: check-format check-lints check-docs check-generated check-dependencies ## Check format, lints, docs, generated files and licences.

.PHONY: check-format
check-format:
	$(CARGO) fmt --all -- --check

.PHONY: check-lints
check-lints:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

.PHONY: check-docs
check-docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

.PHONY: check-generated
check-generated:
	@$(CARGO) build --quiet --package virt-advisor --package xtask
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	$(TARGET_DIR)/debug/virt-advisor crd > "$$fresh/crd" && $(TARGET_DIR)/debug/virt-advisor rbac > "$$fresh/role" && \
	$(TARGET_DIR)/debug/virt-advisor rbac --namespaces > "$$fresh/namespaces" && \
	$(TARGET_DIR)/debug/virt-advisor metrics > "$$fresh/metrics" && \
	if ! diff -u $(CRD) "$$fresh/crd" || ! diff -u $(ROLE) "$$fresh/role" || ! diff -u $(NAMESPACES) "$$fresh/namespaces" || \
		! diff -u $(METRICS) "$$fresh/metrics" || ! $(TARGET_DIR)/debug/xtask manifests --check; then \
		echo "generated files are stale: run make generate and commit the result" >&2; exit 1; \
	fi

.PHONY: sbom
sbom: ## Write target/virt-advisor.cdx.json, what the program is made of (CycloneDX). TARGET=x86_64-unknown-linux-musl names the platform.
	@if ! $(CARGO) cyclonedx --version 2>/dev/null | grep -q " $(CYCLONEDX_VERSION)$$"; then \
		$(CARGO) install --debug --locked --version $(CYCLONEDX_VERSION) cargo-cyclonedx; \
	fi
	@# It describes every package of the workspace; the first one is the program.
	SOURCE_DATE_EPOCH=0 $(CARGO) cyclonedx --quiet --format json --spec-version 1.5 $(if $(TARGET),--target $(TARGET)) --override-filename sbom.cdx
	@mkdir -p target && mv sbom.cdx.json target/virt-advisor.cdx.json
	@find crates profiles tests xtask -name sbom.cdx.json -delete

.PHONY: check-dependencies
check-dependencies: cargo-deny
	$(CARGO) deny --log-level error check bans licenses sources

.PHONY: check-advisories
check-advisories: cargo-deny ## Check the dependencies for known advisories (not part of check: it needs github.com).
	$(CARGO) deny check advisories

.PHONY: cargo-deny
cargo-deny:
	@if ! $(CARGO) deny --version 2>/dev/null | grep -q " $(DENY_VERSION)$$"; then \
		$(CARGO) install --debug --locked --version $(DENY_VERSION) cargo-deny; \
	fi
