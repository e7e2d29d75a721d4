#!/usr/bin/env bash
# Writes every generated file, and prints those that changed.
set -euo pipefail
cd "$(dirname "$0")"
go run ./cmd/generate ..

# Webhook manifests, from the markers next to the webhooks.
go build -o ../bin/controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen
cd ..
for webhooks in providers/*/internal/webhook; do
  bin/controller-gen webhook "paths=./$webhooks/..." "output:webhook:artifacts:config=${webhooks%/internal/webhook}/config/webhook"
done
(cd hack && go run ./cmd/selectors ..)
CONTROLLER_GEN=$PWD/bin/controller-gen examples/provider-hosts/generate.sh

# The OpenAPI documents of the runtime hooks, from the compiled types.
cd hack
go run ./cmd/openapi ..
