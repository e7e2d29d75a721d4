#!/usr/bin/env bash
# Fuzz tests, one after another, on all cores.
#
# FUZZ_TIME (default 1h) is the total time, divided equally, not including compilation. FUZZ=<regular expression> selects
# tests by "<package> <test>". SHARE=<n> selects one share of the packages, SHARE=commit one that depends on the commit; the
# default is all. FUZZ_PARALLEL is the number of processes.
#
# Failing inputs are written to testdata of their package, and are run by `go test` from then on. Inputs with new coverage
# are kept in Go's build cache.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=${CGO_ENABLED:-0} # As in the Makefile, so that the build cache is shared.

readonly shares=4
# Inputs that need more memory fail, instead of exhausting the machine's.
readonly memory=$((8 << 20)) # KiB of address space

# seconds parses a positive duration as Go does, such as 90s, 1h30m or 0.5h, and prints whole seconds, at least one.
seconds() {
	awk -v rest="$1" 'BEGIN {
		unit["h"] = 3600; unit["m"] = 60; unit["s"] = 1; unit["ms"] = 1e-3; unit["us"] = unit["µs"] = unit["μs"] = 1e-6; unit["ns"] = 1e-9
		sub(/^[+]/, "", rest)
		while (rest != "") {
			if (!match(rest, /^([0-9]+[.]?[0-9]*|[.][0-9]+)/)) exit 1
			number = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1)
			if (!match(rest, /^[^0-9.]+/)) exit 1
			name = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1)
			if (!(name in unit)) exit 1
			total += number * unit[name]
		}
		if (total <= 0) exit 1
		printf "%d\n", total < 1 ? 1 : total + 0.5
	}' || { echo "FUZZ_TIME=$1 is not a positive duration such as 90s, 10m, 0.5h or 1h30m" >&2; return 2; }
}

share=${SHARE:-all}
[ "$share" != commit ] || share=$((0x$(git rev-parse --short=7 HEAD) % shares))
budget=$(seconds "${FUZZ_TIME:-1h}")
processes=${FUZZ_PARALLEL:-$(getconf _NPROCESSORS_ONLN)}
chosen=${FUZZ:-.}
cache=$(go env GOCACHE)/fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Compile the packages with fuzz tests, and list their tests.
targets=()
number=0
for module in . sdk release hack standalone; do
	folders=$(cd "$module" && { git grep -l --untracked '^func Fuzz' -- '*_test.go' || true; } | xargs -r -n1 dirname | sort -u) # No match is not an error.
	for folder in $folders; do
		[ "$module" != . ] || [[ ! $folder =~ ^(sdk|release|hack|standalone)(/|$) ]] || continue
		number=$((number + 1))
		[ "$share" = all ] || [ $((number % shares)) = "$share" ] || continue
		[ "$chosen" = . ] || (cd "$module/$folder" && grep -ho '^func Fuzz[A-Za-z0-9_]*' ./*_test.go) | sed "s|^func |$module/$folder |" | grep -qE "$chosen" || continue
		binary=$work/$number.test
		(cd "$module" && go test -c -fuzz=. -o "$binary" "./$folder")
		for test in $(cd "$module/$folder" && "$binary" -test.list '^Fuzz'); do
			[[ "$module/$folder $test" =~ $chosen ]] && targets+=("$binary $module/$folder $test")
		done
	done
done
[ ${#targets[@]} -gt 0 ] || { echo "no fuzz tests: share $share, FUZZ=$chosen" >&2; exit 2; }
each=$((budget / ${#targets[@]}))
each=$((each > 0 ? each : 1))
echo "share $share of $shares: ${#targets[@]} fuzz tests, ${each}s each, $processes processes at once"

failed=0
total=0
for target in "${targets[@]}"; do
	read -r binary folder test <<<"$target"
	status=ok
	# An input that takes more than ten seconds also fails: Go kills its process.
	(cd "$folder" && ulimit -v "$memory" && "$binary" -test.run '^$' -test.fuzz "^$test\$" -test.fuzztime "${each}s" -test.fuzzminimizetime 5s \
		-test.parallel "$processes" -test.fuzzcachedir "$cache/$folder") >"$work/log" 2>&1 || status=FAILED
	# When time is up while an input is being made smaller, Go says so and fails. Without an input there is no failure.
	if [ $status = FAILED ] && grep -q 'context deadline exceeded' "$work/log" && ! grep -q 'Failing input written' "$work/log"; then
		status=ok
	fi
	executions=$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$work/log" | tail -n 1)
	total=$((total + ${executions:-0}))
	printf '%-7s %12d executions  %s %s\n' "$status" "${executions:-0}" "${folder#./}" "$test"
	[ $status = ok ] || { failed=1; sed 's/^/    /' "$work/log"; }
done
echo "$total executions of ${#targets[@]} fuzz tests"
exit $failed
