// Command types prints the kinds of Cluster API that it finds at the import paths of v1.11 and later, of the module for types alone.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamalpha "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimealpha "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	scheme, catalog := runtime.NewScheme(), runtimecatalog.New()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1beta1.AddToScheme, clusterv1.AddToScheme, bootstrapv1beta1.AddToScheme, bootstrapv1.AddToScheme,
		controlplanev1beta1.AddToScheme, controlplanev1.AddToScheme, addonsv1beta1.AddToScheme, addonsv1.AddToScheme,
		ipamalpha.AddToScheme, ipamv1beta1.AddToScheme, ipamv1.AddToScheme, runtimealpha.AddToScheme, runtimev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return err
	}
	provisioned := true
	objects := []runtime.Object{
		&clusterv1beta1.Cluster{}, &bootstrapv1beta1.KubeadmConfig{}, &controlplanev1beta1.KubeadmControlPlane{},
		&addonsv1beta1.ClusterResourceSet{}, &ipamv1beta1.IPAddress{}, &ipamalpha.IPAddress{}, &runtimealpha.ExtensionConfig{},
		&clusterv1.Machine{Status: clusterv1.MachineStatus{
			Initialization: clusterv1.MachineInitializationStatus{InfrastructureProvisioned: &provisioned},
		}},
		&controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{}}},
		&addonsv1.ClusterResourceSet{}, &ipamv1.IPAddress{}, &runtimev1.ExtensionConfig{},
	}
	var kinds []string
	for _, o := range objects {
		found, _, err := scheme.ObjectKinds(o)
		if err != nil {
			return err
		}
		kinds = append(kinds, found[0].GroupVersion().String()+" "+found[0].Kind)
	}
	hook, err := catalog.GroupVersionHook(runtimehooksv1.UpdateMachine)
	if err != nil {
		return err
	}
	slices.Sort(kinds)
	fmt.Println(strings.Join(append(kinds, hook.String()), "\n"))
	return nil
}
