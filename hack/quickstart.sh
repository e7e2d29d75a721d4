#!/usr/bin/env bash
# Creates a Ready workload cluster from scratch: an embedded management cluster, and one cluster of the in-memory provider
# with 1 control plane and 2 workers. With the argument "docker", it is one of the Docker provider, with 1 worker and a pod
# network; its images are built if they are missing. Running it again continues where it stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
infrastructure=${1:-in-memory}
name=${CLUSTER_NAME:-demo}
case $infrastructure in
in-memory)
  dir=${QUICKSTART_DIR:-$PWD/.quickstart}
  cluster=(--infrastructure in-memory --control-plane-machine-count 1 --worker-machine-count 2)
  ;;
docker)
  dir=${QUICKSTART_DIR:-$PWD/.quickstart-docker}
  version=${KUBERNETES_VERSION:-v1.36.3}
  cluster=(--infrastructure docker --flavor development --kubernetes-version "$version" --control-plane-machine-count 1 --worker-machine-count 1)
  docker version >/dev/null || { echo "Docker does not answer. On a bare Debian machine, hack/docker.sh start sets it up" >&2; exit 1; }
  docker image inspect "kindest/node:$version" >/dev/null 2>&1 || make node-image VERSION="$version"
  ;;
*)
  echo "usage: $0 [in-memory|docker]" >&2
  exit 2
  ;;
esac
mkdir -p "$dir"

# network installs a pod network in the Docker provider's cluster, once its API server responds.
network() {
  bin/capi kubectl wait --for condition=ControlPlaneInitialized "cluster/$name" --timeout 300s >/dev/null
  bin/clusterctl get kubeconfig "$name" >"$dir/$name.kubeconfig"
  bin/capi kubectl --kubeconfig "$dir/$name.kubeconfig" apply -f providers/infrastructure-docker/nodeimage/files/node/kind/manifests/default-cni.yaml >/dev/null
}
export KUBECONFIG=$dir/kubeconfig
export CLUSTERCTL_DISABLE_VERSIONCHECK=true

if [ -f "$KUBECONFIG" ] && bin/capi kubectl --request-timeout 5s get --raw /readyz >/dev/null 2>&1; then
  echo "The management cluster is already running (process $(cat "$dir/pid"))."
else
  echo "Starting a management cluster ..."
  rm -f "$dir/ready"
  nohup bin/capi serve --data-dir "$dir/data" --secure-port 0 --kubeconfig "$KUBECONFIG" >"$dir/ready" 2>"$dir/log" &
  echo $! >"$dir/pid"
  for _ in $(seq 1 300); do
    [ -s "$dir/ready" ] && break
    kill -0 "$(cat "$dir/pid")" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
    sleep 0.2
  done
  [ -s "$dir/ready" ] || { echo "The management cluster did not become ready within a minute; its log is $dir/log" >&2; exit 1; }
  cat "$dir/ready"
fi

bin/clusterctl init --infrastructure "$infrastructure" --wait-providers
if bin/capi kubectl get cluster "$name" >/dev/null 2>&1; then
  # It may have been changed since, so do not change it.
  echo "Cluster $name already exists; waiting until it is ready."
  bin/clusterctl wait cluster "$name" --timeout 2m
  bin/clusterctl describe cluster "$name"
else
  if [ "$infrastructure" = docker ]; then
    bin/clusterctl create cluster "$name" "${cluster[@]}" --no-wait
    network
  fi
  bin/clusterctl create cluster "$name" "${cluster[@]}"
fi
bin/clusterctl get kubeconfig "$name" >"$dir/$name.kubeconfig"
chmod 600 "$dir/$name.kubeconfig"
printf '\nThe nodes of %s, read with its kubeconfig:\n' "$name"
bin/capi kubectl --kubeconfig "$dir/$name.kubeconfig" get nodes
if [ "$infrastructure" = docker ]; then
  bin/capi kubectl --kubeconfig "$dir/$name.kubeconfig" -n kube-system rollout status deployment/coredns --timeout 120s
fi
cat <<EOF

Next steps:
  export KUBECONFIG=$KUBECONFIG
  bin/clusterctl describe cluster $name
  bin/capi kubectl get clusters,machines
  bin/capi kubectl --kubeconfig $dir/$name.kubeconfig get pods -A
Delete the cluster:           bin/clusterctl delete cluster $name --wait
Stop the management cluster:  kill $(cat "$dir/pid")    (its data stays in $dir)
EOF
