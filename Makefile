# Targets for users and CI. `make help` lists them.
VERSION ?= v2.0.0
OUT     ?= out

# Without cgo, programs are static and smaller, and Go links them itself, in a fifth of the time.
export CGO_ENABLED = 0

PACKAGE  = sigs.k8s.io/cluster-api/provider/version
# Without symbol tables and debug information; stack traces and profiles do not need them.
LDFLAGS  = -s -w -X $(PACKAGE).gitVersion=$(VERSION)
MANAGERS = cluster-api-controller kubeadm-bootstrap-controller kubeadm-control-plane-controller capim-manager capd-manager

.PHONY: help
help: ## Show this list.
	@grep -hE '^[a-z/-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: quickstart
quickstart: build release ## Create a Ready workload cluster on an embedded management cluster from scratch.
	@hack/quickstart.sh

.PHONY: quickstart-docker
quickstart-docker: build release ## The same with the Docker provider: machines that are containers with real kubeadm.
	@hack/quickstart.sh docker

.PHONY: build
build: bin/capi bin/clusterctl ## Build capi (the embedded management cluster) and clusterctl into bin/.

.PHONY: bin/capi
bin/capi:
	@[ -x $@ ] || echo "Building kube-apiserver and etcd into $@: about 3 minutes on 2 cores the first time."
	@cd standalone && go build -ldflags "$(LDFLAGS) $$(./ldflags.sh)" -o ../$@ ./cmd/capi

# clusterctl lists the versions of providers through a Go module proxy. The default is the toolchain's, not the GOPROXY of
# the build machine, which may be private.
.PHONY: bin/clusterctl managers
bin/clusterctl:
	@go build -ldflags "$(LDFLAGS) -X $(PACKAGE).goProxy=$$(GOENV=off env -u GOPROXY go env GOPROXY)" -o $@ ./cmd/clusterctl
# Without grpcnotrace, an unused debug page of gRPC disables dead code elimination of methods: a quarter of the program.
managers: ## Build every manager as a separate program into bin/.
	@for m in $(MANAGERS); do go build -tags grpcnotrace -ldflags "$(LDFLAGS)" -o bin/$$m ./cmd/$$m || exit 1; done

.PHONY: release
release: ## Write a local provider repository with its clusterctl.yaml into out/repository, and the files of a release into out/release.
	@cd hack && go run ./cmd/release --root .. --version $(VERSION) --out $(abspath $(OUT))/repository --assets $(abspath $(OUT))/release

# The versions of Kubernetes that the end-to-end tests upgrade between. VERSION is a release's, unless it is set.
NODE_VERSIONS ?= v1.35.4 v1.36.3

.PHONY: node-image node-images
node-image: ## Build the image of nodes of a version of Kubernetes (VERSION=v1.36.3), and load it into Docker.
	@cd images/node && go run . $(NODE_FLAGS) $(if $(filter file,$(origin VERSION)),$(lastword $(NODE_VERSIONS)),$(VERSION))
node-images: ## The same for all versions of the end-to-end tests (NODE_VERSIONS).
	@cd images/node && go run . $(NODE_FLAGS) $(NODE_VERSIONS)

.PHONY: generate
generate: ## Generate deep copies, CRDs, webhook manifests, and the lists of messages.
	@hack/generate.sh

.PHONY: test
test: bin/capi managers ## Run all tests: unit, compatibility, journeys with a real API server, and a sample of faults.
	@CAPI_REQUIRE_ENV=1 go test -timeout 30m ./...
	@cd api && go test ./...
	@cd provider && CAPI_REQUIRE_ENV=1 go test ./...
	@cd examples/provider-hosts && CAPI_REQUIRE_ENV=1 go test ./...
	@cd hack && go test ./...
	@cd hack/tools && go test ./...
	@cd images/node && go test ./...
	@cd standalone && go test ./...

.PHONY: e2e
e2e: bin/capi ## Test whole clusters on real machines in Docker, about 15 minutes (E2E_FLAGS, for example -run TestClass).
	@hack/e2e.sh $(E2E_FLAGS)

.PHONY: race
race: bin/capi ## Run concurrent packages, and a share of the others, with the race detector (SHARE=all for all).
	@hack/race.sh

.PHONY: fuzz
fuzz: ## Run all fuzz tests for FUZZ_TIME in total, one hour by default (see hack/fuzz.sh).
	@hack/fuzz.sh

.PHONY: lint
lint: ## Run the linters, including the house rules, and check the licenses of dependencies.
	@hack/lint.sh

# Not part of lint: the database is on the internet and changes independently. DB is a mirror, such as file:///srv/vulndb.
.PHONY: vulncheck
vulncheck: ## Check the programs for known vulnerabilities (DB=URL for a mirror of https://vuln.go.dev).
	@hack/vulncheck.sh $(if $(DB),-db $(DB))

.PHONY: bench
bench: bin/capi managers ## Measure writes, reads, CPU and time per cluster; fail if writes per cluster rise by 5 %.
	@go run ./test/bench --check test/bench/baseline.json

.PHONY: fault
fault: bin/capi managers ## Test the lifecycle of Clusters with injected faults (FAULT_FLAGS, for example --budget 1h).
	@go run ./test/fault $(FAULT_FLAGS)
