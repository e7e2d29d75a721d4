#!/usr/bin/env bash
# Runs Docker on a bare Debian machine, such as one of CI, for clusters of the Docker provider:
#
#   hack/docker.sh start    installs Docker if needed, and starts it unless a Docker daemon responds already
#   hack/docker.sh status   shows whether it runs, and how to reach it
#   hack/docker.sh stop     stops the daemon that start has started, and restores the settings of the machine
#
# Requires root. Clusters cannot reach anything outside of the machine: images must be loaded, not pulled
# (make node-image). Settings, as environment variables:
#
#   DOCKER_DATA    folder with images, containers and the daemon's log (default /var/lib/cluster-api/docker)
#   DOCKER_SOCKET  socket of the daemon (default /var/run/docker.sock)
#   SERVICE_CIDRS  service networks of the clusters (default: kubeadm's, and that of the cluster templates)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
data=${DOCKER_DATA:-/var/lib/cluster-api/docker}
socket=${DOCKER_SOCKET:-/var/run/docker.sock}
services=${SERVICE_CIDRS:-10.96.0.0/12 10.128.0.0/12}
state=/run/cluster-api-docker
export DOCKER_HOST=unix://$socket

# Changed by dockerd, kubelet and kube-proxy, which share the machine's kernel, or by this script.
readonly sysctls="net.ipv4.ip_forward vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
	kernel.keys.root_maxkeys kernel.keys.root_maxbytes fs.inotify.max_user_watches fs.inotify.max_user_instances"
# Each node runs systemd, kubelet and containerd, which watch many files; the defaults suffice for about two nodes.
readonly raised="fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=1024"

fail() { echo "docker.sh: $*" >&2; exit 1; }
say() { echo "docker.sh: $*"; }
responds() { [ -S "$socket" ] && timeout 10 docker version >/dev/null 2>&1; }
# daemon prints the process ID of the daemon that start has started, if it runs.
daemon() {
	local pid
	pid=$(cat "$state/dockerd.pid" 2>/dev/null) || return 1
	# Of a process that has ended, but that nobody has waited for, the command line is empty.
	tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q '^[^ ]*dockerd ' && echo "$pid"
}

install_packages() {
	# Tests make small images from busybox-static.
	local missing=() package
	for package in docker.io iptables iproute2 procps busybox-static; do
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || fail "${missing[*]} are missing, and apt-get is not available to install them; install Docker and run this again"
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$state/apt.log" 2>&1 ||
		{ tail -5 "$state/apt.log" >&2; fail "cannot install ${missing[*]}; see $state/apt.log"; }
}

# save_sysctls records values before they change. A second start must not record changed values.
save_sysctls() {
	[ -e "$state/sysctls" ] && return 0
	for name in $sysctls; do
		printf '%s=%s\n' "$name" "$(sysctl -n "$name" 2>/dev/null || true)"
	done | grep -v '=$' >"$state/sysctls.new"
	mv "$state/sysctls.new" "$state/sysctls"
}

restore_sysctls() {
	[ -e "$state/sysctls" ] || return 0
	local failed=() line
	while read -r line; do
		[ "$(sysctl -n "${line%%=*}")" = "${line#*=}" ] || sysctl -qw "$line" || failed+=("$line")
	done <"$state/sysctls"
	rm "$state/sysctls"
	[ ${#failed[@]} = 0 ] || fail "cannot restore ${failed[*]}; set them with sysctl -w"
}

# rules prints the packet filter rules that keep containers from reaching anything beyond the machine's own interfaces. Until
# kube-proxy of a node has set up its rules, this includes connections to services. They are reset, so that clients try again;
# if packets were dropped, they would wait for a timeout, and messages that hosts are unreachable are limited in number.
rules() {
	local device cidr
	for cidr in $services; do
		echo "OUTPUT -d $cidr -j REJECT --reject-with icmp-net-unreachable"
	done
	for device in $(ip -o route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p' | sort -u); do
		echo "DOCKER-USER -o $device -j REJECT --reject-with icmp-net-unreachable"
		echo "DOCKER-USER -o $device -p tcp -j REJECT --reject-with tcp-reset"
	done
}

isolate() {
	local rule
	iptables -w -N DOCKER-USER 2>/dev/null || true # dockerd keeps it
	rules >"$state/rules"
	while read -r rule; do
		# shellcheck disable=SC2086 # one word per argument
		iptables -w -C $rule 2>/dev/null || iptables -w -I $rule || fail "cannot add the packet filter rule $rule"
	done <"$state/rules"
}

end_isolation() {
	[ -e "$state/rules" ] || return 0
	local rule
	# shellcheck disable=SC2086 # one word per argument
	while read -r rule; do iptables -w -D $rule 2>/dev/null || true; done <"$state/rules"
	rm "$state/rules"
}

# complete reports whether processes of this machine can have every capability that its kernel knows.
complete() {
	local last bounding
	last=$(cat /proc/sys/kernel/cap_last_cap)
	bounding=$(sed -n 's/^CapBnd:\s*//p' /proc/self/status)
	[ $((16#$bounding)) = $(((1 << (last + 1)) - 1)) ]
}

configure() {
	local runtime=""
	if ! complete; then
		command -v go >/dev/null || fail "this machine lacks capabilities, and go is not in PATH to build hack/cmd/runc-bounded"
		say "this machine lacks capabilities; building hack/cmd/runc-bounded as the runtime of containers"
		CGO_ENABLED=0 go build -C "$root/hack" -o "$state/runc-bounded" ./cmd/runc-bounded
		runtime='"runtimes": {"bounded": {"path": "'$state'/runc-bounded"}}, "default-runtime": "bounded",'
	fi
	# Networks of nodes are outside of 192.168.0.0/16 and 10.0.0.0/8, which templates use for pods and services.
	cat >"$state/daemon.json" <<-JSON
		{
		  "data-root": "$data",
		  "exec-root": "$state/exec",
		  "pidfile": "$state/dockerd.pid",
		  "hosts": ["unix://$socket"],
		  $runtime
		  "storage-driver": "overlay2",
		  "bip": "172.17.0.1/16",
		  "default-address-pools": [{"base": "172.18.0.0/15", "size": 20}],
		  "log-opts": {"max-size": "20m"},
		  "oom-score-adjust": 0,
		  "shutdown-timeout": 10
		}
	JSON
}

start() {
	if responds; then
		say "Docker responds at $socket"
		return 0
	fi
	[ "$(id -u)" = 0 ] || fail "requires root; run: sudo $0 start"
	[ ! -S "$socket" ] || [ -z "$(daemon)" ] || fail "the daemon (process $(daemon)) does not respond; see $data/dockerd.log, or run: $0 stop"
	mkdir -p "$state" "$data" "$(dirname "$socket")"
	install_packages
	if responds; then # systemd has started it
		say "Docker responds at $socket"
		return 0
	fi
	save_sysctls
	local setting pid
	for setting in $raised; do
		[ "$(sysctl -n "${setting%%=*}")" -ge "${setting#*=}" ] || sysctl -qw "$setting"
	done
	isolate
	configure
	setsid nohup dockerd --config-file "$state/daemon.json" >"$data/dockerd.log" 2>&1 </dev/null &
	pid=$!
	for _ in $(seq 300); do
		responds && break
		kill -0 "$pid" 2>/dev/null || { tail -5 "$data/dockerd.log" >&2; fail "dockerd exited; see $data/dockerd.log"; }
		sleep 0.2
	done
	responds || { tail -5 "$data/dockerd.log" >&2; fail "dockerd (process $pid) does not respond within a minute; see $data/dockerd.log"; }
	say "Docker responds at $socket (process $pid, data and log in $data)"
}

stop() {
	local pid
	[ "$(id -u)" = 0 ] || fail "requires root; run: sudo $0 stop"
	if pid=$(daemon); then
		# shellcheck disable=SC2046 # one word per container
		[ -z "$(docker ps -q)" ] || docker kill $(docker ps -q) >/dev/null || true
		kill "$pid"
		for _ in $(seq 300); do
			[ -n "$(daemon)" ] || break
			sleep 0.2
		done
		[ -z "$(daemon)" ] || fail "dockerd (process $pid) has not stopped within a minute; see $data/dockerd.log"
		say "stopped the daemon; images and containers stay in $data"
	else
		say "no daemon of this script is running"
	fi
	end_isolation
	restore_sysctls
}

status() {
	local pid
	if pid=$(daemon); then
		say "running: process $pid, socket $socket, data and log in $data"
		docker system df
	elif responds; then
		say "another Docker daemon responds at $socket"
	else
		say "not running"
		return 1
	fi
}

case ${1:-} in
start | stop | status) "$1" ;;
*) fail "usage: $0 start|stop|status" ;;
esac
