package kubeadm

import (
	"strings"

	"github.com/blang/semver/v4"
)

// KubeletLocalMode is the feature gate of kubeadm with which the kubelet of a control plane machine connects to the API server on the same
// machine, not to the endpoint of the cluster. Otherwise, it may be newer than the API server during an upgrade, which Kubernetes does not
// support.
const KubeletLocalMode = "ControlPlaneKubeletLocalMode"

// HasKubeletLocalMode reports whether kubeadm of a version has the feature gate KubeletLocalMode, and whether it no longer has it: since
// v1.36, there is no other mode, and the gate is an error.
func HasKubeletLocalMode(version string) (has, removed bool) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err != nil || v.Major != 1 {
		return false, false
	}
	return v.Minor >= 31 && v.Minor < 36, v.Minor >= 36
}
