#!/usr/bin/env bash
# Tests whole clusters on real machines (test/e2e), and that they leave nothing in Docker. Builds the images of their nodes,
# unless Docker has them.
#
#   hack/e2e.sh [flags of go test], for example -run TestClass
set -euo pipefail
cd "$(dirname "$0")/.."
docker version >/dev/null || { echo "Docker does not respond. On a bare Debian machine, hack/docker.sh start sets it up" >&2; exit 1; }
make --no-print-directory node-images

inventory() {
	docker ps --all --format 'container {{.Names}}'
	docker volume ls --format 'volume {{.Name}}'
	docker network ls --format 'network {{.Name}}'
}
before=$(mktemp)
inventory | sort >"$before"
trap 'rm -f "$before"' EXIT
failed=0
CAPI_E2E=1 go test -vet=off ./test/e2e -count 1 -parallel 2 -timeout 45m -v "$@" || failed=1
if left=$(inventory | sort | comm -13 "$before" -) && [ -n "$left" ]; then
	printf 'the tests left in Docker, unless somebody else uses it:\n%s\n' "$left" >&2
	failed=1
fi
exit $failed
