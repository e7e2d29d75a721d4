# Undoes what kubeadm and cloud-init did.
set -eu
if command -v kubeadm; then
	kubeadm reset --force
fi
rm -rf /etc/kubernetes /etc/cni/net.d /var/lib/etcd /run/cluster-api /run/kubeadm
rm -f /etc/cloud/cloud.cfg.d/99-cluster-api-hosts.cfg
if command -v cloud-init; then
	cloud-init clean --logs --seed
fi
