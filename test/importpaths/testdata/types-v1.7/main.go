// Command types prints the kinds of Cluster API that it finds at the import paths of v1.7.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/bootstrap/kubeadm/api/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/controlplane/kubeadm/api/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/exp/addons/api/v1beta1"
	expv1 "sigs.k8s.io/cluster-api/exp/api/v1beta1"
	ipamalpha "sigs.k8s.io/cluster-api/exp/ipam/api/v1alpha1"
	ipamv1 "sigs.k8s.io/cluster-api/exp/ipam/api/v1beta1"
	runtimev1 "sigs.k8s.io/cluster-api/exp/runtime/api/v1alpha1"
)

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, addonsv1.AddToScheme, ipamalpha.AddToScheme,
		ipamv1.AddToScheme, runtimev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	objects := []runtime.Object{
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}},
		&expv1.MachinePool{Status: expv1.MachinePoolStatus{Phase: string(expv1.MachinePoolPhaseRunning)}},
		&controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{
			KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: &bootstrapv1.ClusterConfiguration{}},
		}},
		&addonsv1.ClusterResourceSet{}, &ipamalpha.IPAddress{}, &ipamv1.IPAddress{}, &runtimev1.ExtensionConfig{},
	}
	var kinds []string
	for _, o := range objects {
		found, _, err := scheme.ObjectKinds(o)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		kinds = append(kinds, found[0].GroupVersion().String()+" "+found[0].Kind)
	}
	slices.Sort(kinds)
	fmt.Println(strings.Join(kinds, "\n"))
}
