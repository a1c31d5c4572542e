# Everything runs on a bare checkout with Go; the tools' versions are pinned in
# .ci/tools. `make help` lists the targets.

SHELL     := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MODULES   := . test/lab
LAB       := bin/roomscaler-lab
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
DEMO      ?=
BUILD     ?=

# The race detector needs a C compiler; .ci/deps installs one where it may.
RACE = $$(command -v gcc >/dev/null && echo -race || echo "no gcc: tests run without -race" >&2)

# Where git does not answer (no git, or a checkout of another user's), a build has no version.
VCS = $$(git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)

.PHONY: all help build lab test test-ha test-keda test-adapter cluster-build cluster-up cluster-down lint fuzz bench demo demo-compare deps clean

all: build test ## build and test

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the static binary, in bin/
	CGO_ENABLED=0 go build $(VCS) -trimpath -ldflags='-s -w' -o bin/ ./cmd/...

lab: ## the demo and load programs, in bin/
	cd test/lab && CGO_ENABLED=0 go build $(VCS) -trimpath -o ../../bin/ ./cmd/...

test: deps ## all tests, with the race detector, in random order
	@bad=; for m in $(MODULES); do echo "== tests of module $$m"; (cd $$m && go test $(RACE) -shuffle=on ./...) || bad="$$bad $$m"; done; \
	if [ -n "$$bad" ]; then echo "tests failed in:$$bad" >&2; exit 1; fi

test-ha: ## ten hours of scalers that are killed; `make test` has two of them, with the race detector
	go test -count=1 ./test/ha

# KEDA's client comes with all of KEDA's scalers: 15 minutes of one core the first time. go vet would
# have to read all of that once more.
test-keda: ## KEDA's own client against the scaler; compiles KEDA the first time
	cd test/kedaclient && go test -vet=off -count=1 ./...

test-adapter: $(if $(BUILD),cluster-build) ## the metrics adapter behind a real API server; BUILD=1 builds that first (minutes)
	cd test/lab && ROOMSCALER_CLUSTER=$(if $(BUILD),required,try) go test -count=1 -v ./adapter

cluster-build: lab ## the control plane's programs, into the user's cache folder (minutes)
	$(LAB) cluster build etcd kube-apiserver kube-controller-manager

cluster-up: lab ## a real control plane on loopback, built first if it has to be
	$(LAB) cluster up --control-plane

cluster-down: lab ## end it and remove what it left
	$(LAB) cluster down

# The controllers come with a client-go of their own: each version is compiled once, in 2 minutes of one core.
test-kube: ## the HPA and StatefulSet controllers of Kubernetes 1.34, 1.36 and 1.37 on the scaler
	cd test/kube && for m in v1.34 v1.36 go; do echo "== $$m.mod"; go test -vet=off -count=1 -shuffle=on -modfile=$$m.mod ./...; done

lint: ## gofmt, go vet and staticcheck
	@.ci/lint $(MODULES)

fuzz: ## each fuzzer for FUZZTIME (10s)
	@.ci/fuzz $(FUZZTIME) $(MODULES)

bench: ## all benchmarks; BENCHTIME=1x only runs each once
	for m in $(MODULES); do (cd $$m && go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) ./...); done

demo: deps build lab ## a pool of real Janus servers grows and shrinks under load; DEMO= for flags
	$(LAB) demo --roomscaler bin/roomscaler $(DEMO)

demo-compare: deps build lab ## the same beside a naive scaler that cuts rooms
	$(LAB) demo --roomscaler bin/roomscaler --compare $(DEMO)

deps: ## Debian's janus and redis-server, if this is root on a machine with apt
	@.ci/deps

clean: ## remove what the other targets made
	rm -rf bin out
