package webhook

import (
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/coredns/corefile-migration/migration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

func validateVersionChange(before, after *controlplanev1.KubeadmControlPlane) field.ErrorList {
	path := field.NewPath("spec", "version")
	from, err := semver.ParseTolerant(before.Spec.Version)
	if err != nil || before.Spec.Version == after.Spec.Version {
		return nil // nothing to compare with
	}
	to, err := semver.ParseTolerant(after.Spec.Version)
	if err != nil {
		return nil // reported by the validation of the version itself
	}
	var all field.ErrorList
	if to.EQ(semver.MustParse("1.19.0")) {
		all = append(all, field.Forbidden(path, "v1.19.0 has a defect that breaks upgrades: use v1.19.1 or later"))
	}
	if to.Major > from.Major || to.Major == from.Major && to.Minor > from.Minor+1 {
		all = append(all, field.Forbidden(path, fmt.Sprintf("cannot update Kubernetes version from %s to %s: upgrade one minor version at a time",
			before.Spec.Version, after.Spec.Version)))
	}
	config := after.Spec.KubeadmConfigSpec.ClusterConfiguration
	if fixed, frozen := kubeadm.FrozenRegistry(to); frozen && config.ImageRepository == "" {
		all = append(all, field.Forbidden(path, fmt.Sprintf("kubeadm of %s pulls from the registry k8s.gcr.io, which is frozen: "+
			"use a newer patch version, such as v%s, or set imageRepository in spec.kubeadmConfigSpec.clusterConfiguration",
			after.Spec.Version, fixed)))
	}
	return all
}

func validateEtcdChange(before, after *controlplanev1.KubeadmControlPlane) field.ErrorList {
	was, is := before.Spec.KubeadmConfigSpec.ClusterConfiguration, after.Spec.KubeadmConfigSpec.ClusterConfiguration
	path := field.NewPath("spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd")
	switch {
	case kubeadm.Defined(was.Etcd.External) && kubeadm.Defined(is.Etcd.Local):
		return field.ErrorList{field.Forbidden(path.Child("local"), "cannot change between external and local etcd")}
	case kubeadm.Defined(was.Etcd.Local) && kubeadm.Defined(is.Etcd.External):
		return field.ErrorList{field.Forbidden(path.Child("external"), "cannot change between external and local etcd")}
	}
	return nil
}

// validateDNSChange validates changes of the CoreDNS version: its configuration cannot be migrated between all versions.
func validateDNSChange(before, after *controlplanev1.KubeadmControlPlane) field.ErrorList {
	was, is := before.Spec.KubeadmConfigSpec.ClusterConfiguration, after.Spec.KubeadmConfigSpec.ClusterConfiguration
	if was.DNS.ImageTag == "" || is.DNS.ImageTag == "" || was.DNS.ImageTag == is.DNS.ImageTag {
		return nil
	}
	from, errFrom := tolerant(was.DNS.ImageTag)
	to, errTo := tolerant(is.DNS.ImageTag)
	if errFrom != nil || errTo != nil || from.EQ(to) {
		return nil // reported by the validation of the tag itself, or the same version in another build
	}
	if err := migration.ValidUpMigration(from.String(), to.String()); err != nil {
		path := field.NewPath("spec", "kubeadmConfigSpec", "clusterConfiguration", "dns", "imageTag")
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("cannot migrate CoreDNS from %s to %s: %s", from, to, err))}
	}
	return nil
}
