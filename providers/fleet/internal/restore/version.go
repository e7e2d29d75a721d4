package restore

import (
	"fmt"

	"github.com/blang/semver/v4"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// versionsFit returns why the Kubernetes and the etcd version of data do not fit a control plane; empty if they do, or if versions are
// unknown. A newer API server may have written objects that an older one does not know, and a newer etcd a format that an older one cannot
// read. An older one is what an upgrade by one minor version meets; beyond, API versions may be gone that objects are stored in.
func versionsFit(kcp *controlplanev1.KubeadmControlPlane, kubernetes, etcd string) string {
	is, err := semver.ParseTolerant(kcp.Spec.Version)
	if was, wrong := semver.ParseTolerant(kubernetes); err == nil && wrong == nil && kubernetes != "" {
		switch {
		case was.Major > is.Major || was.Minor > is.Minor:
			return fmt.Sprintf("the backup is of Kubernetes %s, newer than KubeadmControlPlane %s with %s, which may not know its objects: "+
				"set spec.version of the control plane, or of the Cluster's topology, to a version of v%d.%d", kubernetes, kcp.Name, kcp.Spec.Version,
				was.Major, was.Minor)
		case is.Minor > was.Minor+1:
			return fmt.Sprintf("the backup is of Kubernetes %s, more than one minor version older than KubeadmControlPlane %s with %s, which may "+
				"not read all of its objects: set spec.version of the control plane, or of the Cluster's topology, to a version of v%d.%d or v%d.%d",
				kubernetes, kcp.Name, kcp.Spec.Version, was.Major, was.Minor, was.Major, was.Minor+1)
		}
	}
	tag := kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.ImageTag
	set, err := semver.ParseTolerant(tag)
	if was, wrong := semver.ParseTolerant(etcd); tag != "" && err == nil && wrong == nil && etcd != "" &&
		(was.Major > set.Major || was.Major == set.Major && was.Minor > set.Minor) {
		return fmt.Sprintf("the backup is of etcd %s, newer than %s in spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag of "+
			"KubeadmControlPlane %s, which cannot read it", etcd, tag, kcp.Name)
	}
	return ""
}
