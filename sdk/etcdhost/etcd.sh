# Runs as root on a control plane machine of kubeadm, and prints one line of JSON. Variables: action, which is Inspect or ForceNewCluster, and
# uid, which identifies the command.
#
# ForceNewCluster stops the kubelet, the API server and etcd, runs the same etcd once with --force-new-cluster, and starts the kubelet again.
# The manifest of etcd's static Pod never has the flag, so that no restart can throw out members that have joined since. The kubelet is stopped
# because one that has not reached an API server since its own start does not stop Pods whose manifest is gone. This may be killed at any point
# and called again. The file done has the uid of the command that was carried out: etcd is not forced again for it.
set -u
umask 077
pki=/etc/kubernetes/pki/etcd
state=/var/lib/cluster-api/etcd

fail() {
	printf '{"error":"%s"}\n' "$1"
	exit 0
}

# call sends an empty request to the member on this machine, which answers without asking others.
call() {
	curl --silent --fail --max-time 5 --cacert "$pki/ca.crt" --cert "$pki/server.crt" --key "$pki/server.key" --data '{}' \
		"https://127.0.0.1:2379/v3/$1"
}

# ask reads the state of the member.
ask() {
	status=$(call maintenance/status) || return 1
	members=$(call cluster/member/list) || return 1
}

# alone reports whether the member leads a cluster of its own.
alone() {
	ask || return 1
	case $status in
	*'"leader":"0"'*) return 1 ;;
	*'"leader":"'*) ;;
	*) return 1 ;;
	esac
	[ "$(printf %s "$members" | grep -o '"peerURLs"' | wc -l)" -eq 1 ]
}

# within <seconds> <command> repeats a command until it succeeds.
within() {
	left=$1
	shift
	until "$@"; do
		[ "$left" -gt 0 ] || return 1
		left=$((left - 1))
		sleep 1
	done
}

# processes prints the IDs of processes of a program with one of the flags of static Pods. They are in the network of the machine: others of
# the same name serve control planes that run in Pods.
processes() {
	for one in /proc/[0-9]*; do
		[ "$(cat "$one/comm" 2>/dev/null)" = "$1" ] || continue
		[ "$(readlink "$one/ns/net")" = "$(readlink /proc/self/ns/net)" ] || continue
		if tr '\0' '\n' 2>/dev/null <"$one/cmdline" | grep -q -e '^--data-dir=' -e '^--etcd-servers='; then
			echo "${one#/proc/}"
		fi
	done
}
stopped() { [ -z "$(processes "$1")" ]; }

# capture keeps the program, arguments and settings of the etcd that runs: its image may be gone when they are needed.
capture() {
	pid=$(processes etcd | head -n 1)
	[ -n "$pid" ] || return 1
	cp "/proc/$pid/exe" "$state/program.new" && chmod 700 "$state/program.new" &&
		{ tr '\0' '\n' <"/proc/$pid/environ" | grep '^ETCD_' >"$state/settings.new" || :; } &&
		tr '\0' '\n' <"/proc/$pid/cmdline" >"$state/arguments.new" && [ -s "$state/arguments.new" ] &&
		mv "$state/program.new" "$state/etcd-forced" && mv "$state/settings.new" "$state/settings" &&
		mv "$state/arguments.new" "$state/arguments"
}

# forced runs etcd with --force-new-cluster until its member is alone.
forced() {
	data=$(sed -n 's/^--data-dir=//p' "$state/arguments")
	owner=$(stat -c %u:%g "$data") || fail "etcd has no data directory"
	set --
	while IFS= read -r line; do set -- "$@" "$line"; done <"$state/settings"
	set -- "$@" "$state/etcd-forced"
	first=yes
	while IFS= read -r line; do
		[ "$first" = yes ] || set -- "$@" "$line"
		first=no
	done <"$state/arguments"
	env "$@" --force-new-cluster >"$state/log" 2>&1 </dev/null 9>&- &
	pid=$!
	running() { alone || ! kill -0 "$pid" 2>/dev/null; }
	within 90 running
	alone
	result=$?
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	chown -R "$owner" "$data"
	[ "$result" -eq 0 ] || fail "etcd did not start with --force-new-cluster, see $state/log on the machine"
}

# resume starts the kubelet, which starts etcd, also if this script fails or is told to end. It also forgets for how long the API server, which
# has failed without etcd, is not to be started again. Nothing else may run with etcd's data then.
resume() {
	for pid in $(processes etcd-forced); do kill -s KILL "$pid"; done
	systemctl start kubelet
}

# backstop has systemd do the same once this script no longer has the lock: it may be killed, and never be called again.
backstop() {
	systemd-run --quiet --collect flock "$state/lock" sh -c 'pkill -KILL -x etcd-forced; systemctl start kubelet' >/dev/null 2>&1 9>&- || :
}

# stop_server ends the API server, which the kubelet starts again. Without etcd, a running one lets each request wait for a minute: so would
# the kubelet, which asks for its Node twice before it starts a Pod, even that of etcd.
stop_server() {
	for pid in $(processes kube-apiserver); do kill -s KILL "$pid"; done
}

stop_etcd() {
	for signal in TERM KILL; do
		for pid in $(processes etcd); do kill -s "$signal" "$pid"; done
		if within 20 stopped etcd; then return; fi
	done
	return 1
}

force() {
	command -v systemctl >/dev/null || fail "the kubelet is not a service of systemd"
	mkdir -p "$state"
	exec 9>"$state/lock"
	flock -n 9 || fail "the command is being carried out"
	resume # after a script that was killed
	if [ "$(cat "$state/done" 2>/dev/null)" != "$uid" ]; then
		within 60 capture || fail "etcd does not run"
		trap resume EXIT
		trap 'exit 1' HUP INT TERM
		backstop
		systemctl stop kubelet || fail "the kubelet cannot be stopped"
		stop_server
		stop_etcd || fail "etcd cannot be stopped"
		forced
		printf %s "$uid" >"$state/done.new"
		sync
		mv "$state/done.new" "$state/done"
		resume
	fi
	rm -f "$state/etcd-forced"
	within 150 alone || fail "etcd does not respond after it was forced"
}

if [ "$action" = ForceNewCluster ]; then
	force
elif [ "$action" != Inspect ]; then
	fail "the action is unknown"
fi
ask || fail "etcd does not respond on the machine"
printf '{"status":%s,"members":%s}\n' "$(printf %s "$status" | tr -d '\n')" "$(printf %s "$members" | tr -d '\n')"
