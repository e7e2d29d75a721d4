package conversion

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// AddToScheme registers the newest versions of the kinds of Cluster API and of its kubeadm providers, for programs whose code has an older
// version: they may be what is stored.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(clusterv1.AddToScheme(s), addonsv1.AddToScheme(s), ipamv1.AddToScheme(s), runtimev1.AddToScheme(s),
		bootstrapv1.AddToScheme(s), controlplanev1.AddToScheme(s))
}
