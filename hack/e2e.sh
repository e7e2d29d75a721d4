#!/usr/bin/env bash
# Tests whole clusters on real machines (test/e2e), and that they leave nothing in Docker. Builds the images of their nodes,
# unless Docker has them. Containers that an earlier run left, because it failed or was killed, are removed first: clusters of
# the tests have fixed names.
#
#   hack/e2e.sh [flags of go test], for example -run TestClass
#
# Tests run one at a time: beside each other, two clusters make 2 cores so busy that their API servers do not answer for more than ten
# seconds, and neither ends earlier. Add -parallel 2 on larger machines. KEEP=1 keeps the containers of tests that fail.
set -euo pipefail
cd "$(dirname "$0")/.."
docker version >/dev/null || { echo "Docker does not respond. On a bare Debian machine, hack/docker.sh start sets it up" >&2; exit 1; }
make --no-print-directory node-images

inventory() {
	docker ps --all --format 'container {{.Names}}'
	docker volume ls --format 'volume {{.Name}}'
	docker network ls --format 'network {{.Name}}'
}
# remove_clusters removes the containers of clusters that tests created: they are in a namespace of a test.
remove_clusters() {
	local label=docker.cluster.x-k8s.io/namespace containers
	containers=$(docker ps --all --filter "label=$label" --format "{{.ID}} {{.Label \"$label\"}}" | awk '$2 ~ /^journey-/ {print $1}')
	[ -z "$containers" ] || docker rm --force --volumes $containers >/dev/null
}
remove_clusters
before=$(mktemp)
inventory | sort >"$before"
trap 'rm -f "$before"' EXIT
failed=0
CAPI_E2E=1 go test -vet=off ./test/e2e -count 1 -parallel 1 -timeout 45m -v "$@" || failed=1
if left=$(inventory | sort | comm -13 "$before" -) && [ -n "$left" ]; then
	printf 'the tests left in Docker, unless somebody else uses it:\n%s\n' "$left" >&2
	failed=1
	[ -n "${KEEP:-}" ] || remove_clusters
fi
exit $failed
