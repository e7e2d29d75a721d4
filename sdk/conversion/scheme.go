package conversion

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// AddToScheme registers all versions of the kinds of Cluster API and of its kubeadm providers: whichever version code has, another one may
// be what is stored, or what a client writes.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(clusterv1.AddToScheme(s), addonsv1.AddToScheme(s), ipamv1.AddToScheme(s), runtimev1.AddToScheme(s),
		bootstrapv1.AddToScheme(s), controlplanev1.AddToScheme(s),
		clusterv1beta1.AddToScheme(s), addonsv1beta1.AddToScheme(s), ipamv1beta1.AddToScheme(s), ipamv1alpha1.AddToScheme(s),
		runtimev1alpha1.AddToScheme(s), bootstrapv1beta1.AddToScheme(s), controlplanev1beta1.AddToScheme(s))
}
