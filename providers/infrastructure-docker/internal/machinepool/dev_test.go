package machinepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestDevPool creates the machines of a DevMachinePool.
func TestDevPool(t *testing.T) {
	build := object.Builder{}
	pool := build.MachinePool("p", func(p *clusterv1.MachinePool) {
		p.Spec.Replicas = ptr.To[int32](1)
		p.Spec.Template.Spec.Version, p.Spec.Template.Spec.Bootstrap.DataSecretName = "v1.36.3", ptr.To("data")
		p.Spec.Template.Spec.InfrastructureRef.Kind, p.Spec.Template.Spec.InfrastructureRef.Name = DevKind, "p"
	})
	obj := &dockerv1.DevMachinePool{ObjectMeta: build.Meta(DevKind, "p")}
	obj.OwnerReferences = []metav1.OwnerReference{ownership.Reference(pool, clusterv1.GroupVersion.WithKind(clusterv1.MachinePoolKind), true)}
	obj.Spec.Backend.Docker = &dockerv1.DockerMachinePoolMachineTemplate{CustomImage: "node:x", PreLoadImages: []string{"a"}}
	w := fakeapi.New(t, fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{dockerv1.AddToScheme}, Objects: []client.Object{build.Cluster(object.InfrastructureReady), pool, obj},
	})
	runner := machinepool.New(DevProvider(), w.ForController()).Runner()
	reconcile := func() {
		t.Helper()
		if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "p"}}); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	list := &dockerv1.DevMachineList{}
	testenv.Must(t, w.List(t.Context(), list))
	if len(list.Items) != 1 {
		t.Fatalf("%d DevMachines, want 1", len(list.Items))
	}
	m := list.Items[0]
	want := dockerv1.DevMachineSpec{Backend: dockerv1.DevMachineBackendSpec{
		Docker: &dockerv1.DockerMachineBackendSpec{CustomImage: "node:x", PreLoadImages: []string{"a"}},
	}}
	if diff := cmp.Diff(want, m.Spec); diff != "" {
		t.Errorf("spec of the machine, -want +got:\n%s", diff)
	}
	m.Spec.ProviderID = "docker:////c-m"
	testenv.Must(t, w.Update(t.Context(), &m))
	m.Status.Initialization.Provisioned = ptr.To(true)
	testenv.Must(t, w.Status().Update(t.Context(), &m))
	reconcile()
	testenv.Must(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "p"}, obj))
	if s := obj.Status; !s.Ready || !ptr.Deref(s.Initialization.Provisioned, false) || s.Replicas != 1 || len(s.Instances) != 1 ||
		s.InfrastructureMachineKind != "DevMachine" || obj.Spec.ProviderID != "docker:////c-dmp-p" {
		t.Errorf("spec %+v, status %+v", obj.Spec, s)
	}
	if diff := cmp.Diff([]string{"docker:////c-m"}, obj.Spec.ProviderIDList); diff != "" {
		t.Errorf("provider IDs, -want +got:\n%s", diff)
	}
}
