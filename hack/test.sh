#!/usr/bin/env bash
# All tests: unit, compatibility, journeys with a real API server, and a sample of faults. Journeys, which mostly wait, and then other tests
# of whole clusters run beside the other packages of the root module and the other modules, one at a time each, so that 2 cores are busy,
# and requests still get their answers in time. All run, even if some fail.
set -uom pipefail # -m: what runs in the background is a process group, which can be ended as a whole.
cd "$(dirname "$0")/.."
export CAPI_REQUIRE_ENV=1 CAPI_REQUIRE_KUBEADM=1
readonly flags=(-vet=off -timeout 45m) # golangci-lint runs vet, with more analyzers.

readonly whole='/test/(journey|fault|permission|book)$' # What tests whole clusters, half of all in time.

whole_clusters() {
	local failed=0
	go test "${flags[@]}" ./test/journey || failed=1
	go test "${flags[@]}" -p 1 ./test/fault ./test/permission ./test/book || failed=1
	return $failed
}

whole_clusters &
beside=$!
trap 'kill -- -$beside 2>/dev/null' EXIT
failed=0
# Compilers and linkers of these packages leave API servers of journeys the time to respond.
nice -n 5 go test "${flags[@]}" -p 1 $(go list ./... | grep -vE "$whole") || failed=1
for module in $(git ls-files '*/go.mod' | xargs -n1 dirname | sort); do
	packages=2 # At a time, if nothing else runs any longer.
	kill -0 $beside 2>/dev/null && packages=1
	echo "module $module"
	(cd "$module" && nice -n 5 go test "${flags[@]}" -p $packages ./...) || failed=1
done
wait $beside || failed=1
exit $failed
