package webhook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

// etcdTagPath is the path of the image tag of local etcd.
func etcdTagPath() *field.Path {
	return field.NewPath("spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd", "local", "imageTag")
}

// etcdTag returns the image tag of local etcd.
func etcdTag(kcp *controlplanev1.KubeadmControlPlane) string {
	return kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.ImageTag
}

// etcdChanges reports whether the version of local etcd may change. New control planes are not validated: clients that copy clusters, such
// as clusterctl move, create those that were accepted before.
func etcdChanges(before, after *controlplanev1.KubeadmControlPlane) bool {
	return !kubeadm.Defined(after.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External) &&
		(before.Spec.Version != after.Spec.Version || etcdTag(before) != etcdTag(after))
}

// validateEtcdVersionChange rejects changes of the versions of Kubernetes and etcd after which new Machines could not join. Only what can
// be read from image tags is known: versions of members are checked before a Machine joins (package scale). Downgrades are not rejected,
// as in v1.7: etcd has a procedure for them (https://etcd.io/docs/v3.6/downgrades/downgrade_3_6).
func validateEtcdVersionChange(before, after *controlplanev1.KubeadmControlPlane) field.ErrorList {
	if !etcdChanges(before, after) {
		return nil
	}
	var all field.ErrorList
	is, known := kubeadm.EtcdOf(after.Spec.Version, etcdTag(after))
	if !known {
		return nil
	}
	if was, pinned := kubeadm.ParseEtcd(etcdTag(before)); pinned && kubeadm.EtcdTooOld(was, is) {
		all = append(all, field.Forbidden(etcdTagPath(), fmt.Sprintf("etcd cannot be upgraded from %s to %d.%d, %s: first %s",
			was, is.Major, is.Minor, whichEtcd(after), kubeadm.HowToUpgradeEtcd("this field"))))
	}
	// Patches of kubeadm may replace the flags.
	if !kubeadm.EtcdStarts(after.Spec.Version, is) && after.Spec.KubeadmConfigSpec.JoinConfiguration.Patches.Directory == "" {
		all = append(all, field.Forbidden(etcdTagPath(), fmt.Sprintf("kubeadm of %s cannot start etcd %s: it sets flags that etcd has "+
			"since 3.6. Set a tag of 3.6, or remove the tag", after.Spec.Version, is)))
	}
	return all
}

// whichEtcd describes why a control plane has its version of etcd.
func whichEtcd(kcp *controlplanev1.KubeadmControlPlane) string {
	if tag := etcdTag(kcp); tag != "" {
		return "the version of tag " + tag
	}
	return "the default of kubeadm of " + kcp.Spec.Version
}

// warnOfEtcdVersion warns of changes that are accepted, although etcd needs something that is unknown here.
func warnOfEtcdVersion(before, after *controlplanev1.KubeadmControlPlane) admission.Warnings {
	if !etcdChanges(before, after) {
		return nil
	}
	is, known := kubeadm.EtcdOf(after.Spec.Version, etcdTag(after))
	if !known {
		return nil
	}
	if was, pinned := kubeadm.EtcdOf(before.Spec.Version, etcdTag(before)); pinned && is.Minor < was.Minor {
		return admission.Warnings{fmt.Sprintf("%s: members with etcd %d.%d can join those with %d.%d only after the command "+
			"etcdctl downgrade enable %d.%d", etcdTagPath(), is.Major, is.Minor, was.Major, was.Minor, is.Major, is.Minor)}
	}
	if kubeadm.EtcdBehind(after.Spec.Version, is) {
		return admission.Warnings{fmt.Sprintf("%s: etcd %s cannot be upgraded to the default of kubeadm of %s: first %s",
			etcdTagPath(), is, after.Spec.Version, kubeadm.HowToUpgradeEtcd("this field"))}
	}
	return nil
}
