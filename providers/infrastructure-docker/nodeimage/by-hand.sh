#!/usr/bin/env bash
# Creates a cluster of one control plane node and one worker with docker and kubeadm alone, and prints how long each step
# takes, since the start. It shows that a node image works, and is what the Docker provider is compared with.
#
#   providers/infrastructure-docker/nodeimage/by-hand.sh v1.36.3
#
# The cluster is deleted at the end, or after a failure, unless KEEP=1. IMAGE is the node image, CNI a manifest of a pod network
# (default: the one in the image). With other images, such as those of kind, set CNI.
set -euo pipefail
version=${1:?usage: $0 VERSION, such as v1.36.3}
image=${IMAGE:-kindest/node:$version}
cluster=by-hand-$$
network=$cluster
# Checks that do not apply to nodes in containers; the Docker provider skips the same.
ignored=SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables
token=abcdef.0123456789abcdef
logs=$(mktemp -d)

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
begin=$(milliseconds)
took() {
	local elapsed=$(($(milliseconds) - begin))
	printf '%4d.%d s  %s\n' $((elapsed / 1000)) $((elapsed % 1000 / 100)) "$*"
}

# shellcheck disable=SC2317 # called by the trap
finish() {
	local status=$?
	if [ $status != 0 ]; then
		echo "failed; the last lines of each log in $logs:" >&2
		tail -n 15 "$logs"/* >&2
		for node in "$cluster-control-plane" "$cluster-worker"; do
			docker exec "$node" journalctl -u kubelet -u containerd --no-pager -n 15 >&2 2>/dev/null || true
		done
	fi
	[ -z "${KEEP:-}" ] || { echo "kept: docker exec $cluster-control-plane kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes"; exit $status; }
	docker rm --force --volumes "$cluster-control-plane" "$cluster-worker" >/dev/null 2>&1 || true
	docker network rm "$network" >/dev/null 2>&1 || true
	[ $status != 0 ] || rm -r "$logs"
	exit $status
}
trap finish EXIT

start_node() {
	docker run --detach --tty --name "$1" --hostname "$1" --network "$network" --privileged --cgroupns private \
		--security-opt seccomp=unconfined --security-opt apparmor=unconfined --tmpfs /tmp --tmpfs /run --volume /var \
		--env container=docker "$image" >/dev/null
	for _ in $(seq 600); do
		docker exec "$1" systemctl is-active --quiet containerd 2>/dev/null && return
		sleep 0.1
	done
	echo "containerd does not run in $1" >&2
	docker logs "$1" >"$logs/$1" 2>&1
	return 1
}
address() { docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$1"; }
kubectl() { docker exec --interactive "$cluster-control-plane" kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }

docker network create "$network" >/dev/null
start_node "$cluster-control-plane"
took "the control plane's container and containerd run"

docker exec --interactive "$cluster-control-plane" sh -c 'cat >/kind/kubeadm.conf' <<YAML
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- token: $token
nodeRegistration:
  criSocket: unix:///run/containerd/containerd.sock
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $version
clusterName: $cluster
controlPlaneEndpoint: $(address "$cluster-control-plane"):6443
networking:
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/16
YAML
docker exec "$cluster-control-plane" kubeadm init --config /kind/kubeadm.conf --ignore-preflight-errors "$ignored" -v 1 >"$logs/init" 2>&1
took "kubeadm init"

if [ -n "${CNI:-}" ]; then
	kubectl apply -f - <"$CNI" >"$logs/cni"
else
	kubectl apply -f /kind/manifests/default-cni.yaml >"$logs/cni"
fi
took "pod network applied"

start_node "$cluster-worker"
took "the worker's container and containerd run"
docker exec "$cluster-worker" kubeadm join "$(address "$cluster-control-plane"):6443" --token "$token" \
	--discovery-token-unsafe-skip-ca-verification --ignore-preflight-errors "$ignored" -v 1 >"$logs/join" 2>&1
took "kubeadm join"

kubectl wait --for=condition=Ready nodes --all --timeout=180s >"$logs/wait" 2>&1
took "all Nodes are Ready"
kubectl --namespace kube-system rollout status deployment/coredns --timeout=180s >"$logs/coredns" 2>&1
took "CoreDNS is available"

# A Pod on the worker reaches a service by name: the pod network, kube-proxy and DNS work.
kubectl run lookup --image=localhost/node-network:v1 --image-pull-policy=Never --restart=Never --command -- bash -c \
	'exec 3<>/dev/tcp/kubernetes.default.svc.cluster.local/443' >"$logs/lookup" 2>&1
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/lookup --timeout=60s >>"$logs/lookup" 2>&1
took "a Pod reaches the service kubernetes by name"
kubectl get nodes,pods --all-namespaces --output wide
