package kubeadm

// KubeletLocalMode is the feature gate of kubeadm with which the kubelet of a control plane machine connects to the API server on the same
// machine, not to the endpoint of the cluster. Otherwise, it may be newer than the API server during an upgrade, which Kubernetes does not
// support.
const KubeletLocalMode = "ControlPlaneKubeletLocalMode"

// ChangeKubeletLocalMode decides whether the configuration of kubeadm of a version gets the feature gate KubeletLocalMode, or must not have
// it: since v1.36, there is no other mode, and the gate is an error. A spec whose feature gates have it decides itself.
func ChangeKubeletLocalMode(gates map[string]bool, version string) (set, remove bool) {
	_, chosen := gates[KubeletLocalMode]
	v, known := parseKubernetes(version)
	if chosen || !known {
		return false, false
	}
	return v.Minor >= 31 && v.Minor < 36, v.Minor >= 36
}
