#!/usr/bin/env bash
# What proves more than .ci/run, and takes too long for each change: about nine hours on 2 cores. Every stage runs, whatever happens to
# the others; the seconds and results of all are in out/soak/stages and printed last, and their output is in out/soak.
#
# STAGES selects stages by name; results of the others, of earlier runs, are kept. HOURS (default 1; fractions are allowed) is the time
# of each stage that could go on for ever: faults and fuzz.
set -uo pipefail
cd "$(dirname "$0")/.."
export GOGC=400 CAPI_SOAK=1 CAPI_REQUIRE_ENV=1 CAPI_REQUIRE_DOCKER=1 CAPI_REQUIRE_KUBEADM=1
readonly hours=${HOURS:-1} out=out/soak
mkdir -p $out
[ -n "${STAGES:-}" ] && [ -e $out/stages ] || printf '%-12s %8s %s\n' stage seconds result >$out/stages
failed=0

stage() {
	local name=$1 start=$SECONDS result=passed
	shift
	[ -z "${STAGES:-}" ] || [[ " $STAGES " = *" $name "* ]] || return 0
	echo "== $name (at $SECONDS s)"
	"$@" >"$out/$name.log" 2>&1 || { result=failed failed=1; tail -20 "$out/$name.log"; }
	record "$name" $((SECONDS - start)) $result
}

# record writes the result of a stage at the end of the table, instead of an earlier one.
record() {
	local others
	others=$(grep -v "^$1 " $out/stages)
	printf '%s\n%-12s %8d %s\n' "$others" "$1" "$2" "$3" >$out/stages
}

# Every version of Kubernetes reads what is written for its kubeadm.
kubeadm() {
	make kubeadm-programs ALL=1 &&
		go test -count 1 ./providers/bootstrap-kubeadm/... ./providers/control-plane-kubeadm/... ./providers/internal/kubeadm/...
}
# Commands are killed at every request, instead of a sample.
commands() {
	CAPI_MOVE_EVERY_REQUEST=1 CAPI_UPGRADE_EVERY_REQUEST=1 CAPI_DELETE_EVERY_REQUEST=1 go test -count 1 -timeout 3h ./clusterctl/... ./packages/...
}
plans() {
	local seed
	for seed in $(seq 1001 1005); do
		CAPI_PLAN_SEED=$seed CAPI_PLAN_CHANGES=50 go test -count 1 -timeout 30m ./test/journey -run TestPlanAgreesWithOutcome || return 1
	done
}

hack/docker.sh status >/dev/null || { hack/docker.sh start && trap 'hack/docker.sh stop' EXIT; }
stage journeys go test -count 1 -timeout 2h ./test/journey/...
stage samples go test -count 1 -timeout 1h ./test/fault
# With one more version than .ci/run: of TestChainedUpgrade.
stage e2e env NODE_VERSIONS="v1.34.4 v1.35.4 v1.36.3" hack/e2e.sh -timeout 2h
stage race env ALL=1 hack/race.sh
stage kubeadm kubeadm
stage commands commands
stage plans plans
stage faults go run ./test/fault --budget "${hours}h" --seed $((10#$(date +%j))) --worlds 2
stage fuzz env FUZZ_TIME="${hours}h" hack/fuzz.sh
stage scale env -u GOGC go run ./test/bench --scale 1000 --idle 1m
stage health env -u GOGC go run ./test/bench --health 3
cat $out/stages
exit $failed
