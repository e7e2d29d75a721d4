# Targets for users and CI. `make help` lists them.
VERSION ?= v2.0.0
OUT     ?= out
# The address of releases on GitHub: of their files, and of the providers that clusterctl installs.
RELEASES ?= https://github.com/kubernetes-sigs/cluster-api/releases

# Without cgo, programs are static and smaller, and Go links them itself, in a fifth of the time.
export CGO_ENABLED = 0

# Programs do not contain paths of this machine, and so all checkouts share compiled packages and results of tests.
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath

# Compilers then collect garbage a quarter as often, which saves an eighth of the CPU, and use 650 instead of 420 MiB for the largest package.
BUILD = GOGC=$(or $(GOGC),400) go build

PACKAGE  = sigs.k8s.io/cluster-api/sdk/version
# Without symbol tables and debug information; stack traces and profiles do not need them.
LDFLAGS  = -s -w -X $(PACKAGE).gitVersion=$(VERSION) -X $(PACKAGE).releases=$(RELEASES)
MANAGERS = $(shell sed -n 's/^image: //p' providers/*/config/component.yaml)

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
	@[ -x $@ ] || echo "Building kube-apiserver and etcd into $@: about 6 minutes on 2 cores the first time."
	@cd standalone && $(BUILD) -ldflags "$(LDFLAGS) $$(./ldflags.sh)" -o ../$@ ./cmd/capi

# clusterctl lists the versions of providers through a Go module proxy. The default is the toolchain's, not the GOPROXY of
# the build machine, which may be private. This clusterctl installs the providers of `make release`; a released one those of RELEASES.
LOCAL = $(if $(filter /%,$(OUT)),,../)$(OUT)/repository/clusterctl.yaml
.PHONY: bin/clusterctl managers
bin/clusterctl:
	@$(BUILD) -ldflags "$(LDFLAGS) -X $(PACKAGE).goProxy=$$(GOENV=off env -u GOPROXY go env GOPROXY) -X $(PACKAGE).localConfig=$(LOCAL)" \
		-o $@ ./cmd/clusterctl
# Without grpcnotrace, an unused debug page of gRPC disables dead code elimination of methods: a quarter of the program.
managers: ## Build every manager as a separate program into bin/.
	@for m in $(MANAGERS); do $(BUILD) -tags grpcnotrace -ldflags "$(LDFLAGS)" -o bin/$$m ./cmd/$$m || exit 1; done

.PHONY: release
release: ## Write a local provider repository with its clusterctl.yaml into out/repository, and the files of a release into out/release.
	@cd release && go run ./cmd/release --root .. --version $(VERSION) --registry $(REGISTRY) --releases $(RELEASES) \
		--out $(abspath $(OUT))/repository --assets $(abspath $(OUT))/release

# PLATFORMS are those of images, RELEASE_PLATFORMS those of clusterctl and, for Linux, capi. The first build for a platform
# compiles everything: images take 7 minutes on 2 cores, clusterctl a minute. KEY is the file of a private key for signing.
PLATFORMS ?= linux/amd64,linux/arm64
RELEASE_PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
REGISTRY ?= registry.k8s.io/cluster-api
IMAGE_FLAGS = --root .. --version $(VERSION) --registry $(REGISTRY) --releases $(RELEASES) $(if $(KEY),--key $(abspath $(KEY)))

.PHONY: images release-all
images: ## Build images of all programs into out/images (PLATFORMS, KEY=file to sign, LOAD=1 for docker load, PUSH=1).
	@cd release && go run ./cmd/images $(IMAGE_FLAGS) --platforms $(PLATFORMS) --out $(abspath $(OUT))/images $(if $(LOAD),--load) $(if $(PUSH),--push)
release-all: images ## Everything of a release in out/release: manifests with digests, programs, packages, checksums, signatures (KEY=file).
	@rm -rf $(abspath $(OUT))/release
	@cd release && go run ./cmd/release $(IMAGE_FLAGS) --platforms $(RELEASE_PLATFORMS) --images $(abspath $(OUT))/images/images.json \
		--out $(abspath $(OUT))/repository --assets $(abspath $(OUT))/release

# The versions of Kubernetes that the end-to-end tests upgrade between. VERSION is a release's, unless it is set.
NODE_VERSIONS ?= v1.35.4 v1.36.3

.PHONY: node-image node-images
node-image: ## Build the image of nodes of a version of Kubernetes (VERSION=v1.36.3), and load it into Docker.
	@cd providers/infrastructure-docker/nodeimage && go run . $(NODE_FLAGS) $(if $(filter file,$(origin VERSION)),$(lastword $(NODE_VERSIONS)),$(VERSION))
node-images: ## The same for all versions of the end-to-end tests (NODE_VERSIONS).
	@cd providers/infrastructure-docker/nodeimage && go run . $(NODE_FLAGS) $(NODE_VERSIONS)

# The versions of kubeadm that tests let read what we write for it.
KUBEADM_VERSIONS ?= $(NODE_VERSIONS)
# The newest patch versions that Go 1.26 compiles, and of which the module proxy has all modules.
SUPPORTED_VERSIONS = v1.21.14 v1.22.17 v1.24.17 v1.28.15 v1.30.4 v1.31.0 v1.32.2 v1.33.13 v1.34.4 v1.35.4 v1.36.3 v1.37.2

.PHONY: kubeadm-programs
kubeadm-programs: ## Build kubeadm for tests of its configuration into bin/kubeadm (ALL=1: all supported versions).
	@cd providers/infrastructure-docker/nodeimage && go run . --kubeadm ../../../bin/kubeadm $(if $(ALL),$(SUPPORTED_VERSIONS),$(KUBEADM_VERSIONS))

.PHONY: generate
generate: ## Generate deep copies, CRDs, webhook manifests, the lists of texts, and the pictures of the book.
	@hack/generate.sh

.PHONY: test
test: bin/capi managers kubeadm-programs ## Run all tests: unit, compatibility, journeys with a real API server, and a sample of faults.
	@hack/test.sh

.PHONY: e2e
e2e: bin/capi ## Test whole clusters on real machines in Docker, about 5 minutes; make soak has more (E2E_FLAGS, for example -run TestClass).
	@hack/e2e.sh $(E2E_FLAGS)

.PHONY: race
race: bin/capi ## Run concurrent packages with the race detector (ALL=1: all packages, and with an API server).
	@hack/race.sh

.PHONY: soak
soak: bin/capi managers ## Run everything that takes too long for each change, in a night on 2 cores (STAGES="race faults" for some of it).
	@hack/soak.sh

.PHONY: fuzz
fuzz: ## Run all fuzz tests for FUZZ_TIME in total, one hour by default (see hack/fuzz.sh).
	@hack/fuzz.sh

.PHONY: docs
docs: ## Write the book as a site into out/docs, with the reference pages of all programs.
	@cd standalone && $(BUILD) -ldflags "$(LDFLAGS)" -o $(abspath $(OUT))/write-docs ./writedocs
	@rm -rf $(OUT)/docs && $(OUT)/write-docs --output-dir $(OUT)/docs

.PHONY: casts
casts: build release ## Record the terminals that the book shows (docs/book/pictures/cast-*.svg), in a minute.
	@cd hack && env -u GOGC go run ./cmd/casts ..

.PHONY: lint
lint: ## Run the linters, including the house rules, and check the licenses of dependencies.
	@hack/lint.sh

# Not part of lint: the database is on the internet and changes independently. DB is a mirror, such as file:///srv/vulndb.
.PHONY: vulncheck
vulncheck: ## Check the programs for known vulnerabilities (DB=URL for a mirror of https://vuln.go.dev).
	@hack/vulncheck.sh $(if $(DB),-db $(DB))

.PHONY: bench
bench: bin/capi managers ## Measure writes, reads, CPU and time per cluster, and of the operator; fail if writes rise by 5 %.
	@go run ./test/bench --check test/bench/baseline.json

.PHONY: fault
fault: bin/capi managers ## Test the lifecycle of Clusters with injected faults (FAULT_FLAGS, for example --budget 1h).
	@go run ./test/fault $(FAULT_FLAGS)
