#!/usr/bin/env bash
# Tests with the race detector: packages that start goroutines or share memory, without tests that need an API server. With ALL=1,
# all packages and all their tests, which takes about an hour. MODULES selects modules by their folders.
#
# Tests of whole clusters are excluded (test/journey, test/e2e, test/book, test/fault itself): the code under test runs in other
# processes, without the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=1 # The race detector is a C library.

readonly apart='/test/(journey(/[a-z]+)?|e2e|book|fault|bench|permission)$'

# concurrent reports whether the code of a package, without tests, starts goroutines or shares memory.
concurrent() {
	local files
	files=$(find "$1" -maxdepth 1 -name '*.go' ! -name '*_test.go')
	[ -n "$files" ] && grep -qE '"sync(/atomic)?"|^\s*go (func|[A-Za-z.]+\()|\.Go\(func' $files
}

failed=0
flags=(-race -vet=off -timeout 60m)
[ -n "${ALL:-}" ] || flags+=(-short)
for module in ${MODULES:-. sdk release hack standalone examples/provider-hosts providers/infrastructure-docker/nodeimage}; do
	chosen=()
	while read -r package dir; do
		[[ $package =~ $apart ]] && continue
		if [ -n "${ALL:-}" ] || { [ "$module" != standalone ] && concurrent "$dir"; }; then
			chosen+=("$package")
		fi
	done < <(cd "$module" && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./... | grep -v '^$')
	echo "module $module: ${#chosen[@]} packages"
	[ ${#chosen[@]} = 0 ] || (cd "$module" && go test "${flags[@]}" "${chosen[@]}") || failed=1
done
exit $failed
