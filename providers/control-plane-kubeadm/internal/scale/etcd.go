package scale

import (
	"fmt"
	"strings"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

// oldEtcd returns why the etcd of a new Machine must not join, because members run a version that cannot be upgraded to its version. The
// members reported their versions when their health was inspected; image tags may be custom ones. An unknown version is no reason.
func oldEtcd(state membership.State) string {
	spec := &state.KCP.Spec
	joining, known := kubeadm.EtcdOf(spec.Version, spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.ImageTag)
	if !known {
		return ""
	}
	var old []string
	for _, m := range state.Machines {
		version, known := kubeadm.ParseEtcd(state.Observed.Etcd[m.Node()].Version)
		if known && kubeadm.EtcdTooOld(version, joining) {
			old = append(old, fmt.Sprintf("%s of Machine %s", version, m.Name))
		}
	}
	if len(old) == 0 {
		return ""
	}
	return fmt.Sprintf("etcd %d.%d cannot join etcd %s: first %s", joining.Major, joining.Minor, strings.Join(old, ", "),
		kubeadm.HowToUpgradeEtcd("spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag"))
}
