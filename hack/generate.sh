#!/usr/bin/env bash
# Writes every generated file, and prints those that changed.
set -euo pipefail
cd "$(dirname "$0")"
go run ./cmd/generate ..

# Webhook manifests, from the markers next to the webhooks.
go build -o ../bin/controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen
cd ..
for component in core:core bootstrap/kubeadm:bootstrap-kubeadm controlplane/kubeadm:control-plane-kubeadm infrastructure/inmemory:infrastructure-in-memory infrastructure/docker:infrastructure-docker; do
  bin/controller-gen webhook "paths=./${component%%:*}/internal/webhook/..." "output:webhook:artifacts:config=config/${component##*:}/webhook"
done
CONTROLLER_GEN=$PWD/bin/controller-gen examples/provider-hosts/generate.sh

# Messages that users see, from the source of every program.
cd hack
go run ./cmd/messages ..

# The exported API of the SDK.
go run ./cmd/surface ../provider
