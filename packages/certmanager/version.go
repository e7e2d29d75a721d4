package certmanager

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

const (
	// legacyAnnotation is how early versions of clusterctl recorded cert-manager's version.
	legacyAnnotation = "certmanager.clusterctl.cluster.x-k8s.io/version"
	// unrecorded is the version of a cert-manager without annotation: the last one that was installed without.
	unrecorded = "v0.11.0"
)

// Installed returns the version of the cert-manager that clusterctl manages, or "" if there is none.
func Installed(ctx context.Context, c client.Reader) (string, error) {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind(manifest.KindCRD)
	err := c.Get(ctx, client.ObjectKey{Name: certificates}, crd)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("cannot find the version of cert-manager: %w", err)
	}
	if err != nil || crd.GetLabels()[clusterctlv1.ClusterctlCoreLabel] != clusterctlv1.ClusterctlCoreLabelCertManagerValue {
		return "", nil
	}
	for _, key := range []string{clusterctlv1.CertManagerVersionAnnotation, legacyAnnotation} {
		if version := crd.GetAnnotations()[key]; version != "" {
			return version, nil
		}
	}
	return unrecorded, nil
}

// Outdated reports whether the installed version must be replaced by the wanted one: because it is older, or because it is
// another build of the same version. Builds have no order.
func Outdated(installed, wanted string) bool {
	a, errA := packages.ParseVersion(installed)
	b, errB := packages.ParseVersion(wanted)
	if errA != nil || errB != nil {
		return installed != wanted
	}
	return a.LT(b) || a.EQ(b) && !slices.Equal(a.Build, b.Build)
}
