#!/usr/bin/env bash
# Writes deep copies, CRDs and webhook manifests, from the types and markers. The generator is controller-gen of sigs.k8s.io/controller-tools:
# that in CONTROLLER_GEN, else that in PATH.
set -euo pipefail
cd "$(dirname "$0")"
gen=${CONTROLLER_GEN:-controller-gen}
"$gen" object paths=./api/...
"$gen" crd paths=./api/... output:crd:artifacts:config=config/crd
"$gen" webhook paths=./internal/webhook/... output:webhook:artifacts:config=config/webhook
