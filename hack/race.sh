#!/usr/bin/env bash
# Tests with the race detector: all packages that start goroutines or share memory, and a share of the others.
#
# The share depends on the commit, so that all packages are covered over time; SHARE=<n> selects one, SHARE=all runs all.
# Tests of whole clusters are excluded (test/journey, test/e2e, test/book, test/fault itself): the code under test runs in other
# processes, without the race detector. -short skips tests that read hundreds of megabytes, which take minutes with the
# detector; packages of standalone, which run whole API servers, only run in their share.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=1 # The race detector is a C library.

readonly shares=4
readonly apart='/test/(journey|e2e|book|fault|bench|permission)$'
share=${SHARE:-$((0x$(git rev-parse --short=7 HEAD) % shares))}
echo "share $share of $shares (to repeat: SHARE=$share make race)"

# concurrent reports whether the code of a package, without tests, starts goroutines or shares memory.
concurrent() {
	local files
	files=$(find "$1" -maxdepth 1 -name '*.go' ! -name '*_test.go')
	[ -n "$files" ] && grep -qE '"sync(/atomic)?"|^\s*go (func|[A-Za-z.]+\()|\.Go\(func' $files
}

failed=0
number=0
for module in . sdk release hack standalone examples/provider-hosts providers/infrastructure-docker/nodeimage; do
	chosen=()
	while read -r package dir; do
		[[ $package =~ $apart ]] && continue
		number=$((number + 1))
		if [ "$share" = all ] || [ $((number % shares)) = "$share" ] || { [ "$module" != standalone ] && concurrent "$dir"; }; then
			chosen+=("$package")
		fi
	done < <(cd "$module" && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./... | grep -v '^$')
	echo "module $module: ${#chosen[@]} packages"
	[ ${#chosen[@]} = 0 ] || (cd "$module" && go test -race -short -timeout 20m "${chosen[@]}") || failed=1
done
exit $failed
