#!/usr/bin/env bash
# Tests whole clusters on real machines (test/e2e). Builds the images of their nodes, unless Docker has them.
#
#   hack/e2e.sh [flags of go test], for example -run TestClass
set -euo pipefail
cd "$(dirname "$0")/.."
docker version >/dev/null || { echo "Docker does not respond. On a bare Debian machine, hack/docker.sh start sets it up" >&2; exit 1; }
make --no-print-directory node-images
CAPI_E2E=1 go test ./test/e2e -count 1 -timeout 45m -v "$@"
