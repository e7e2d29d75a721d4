package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// newDev returns a world with a DevCluster, a Machine of a control plane, and its DevMachine m.
func newDev(t *testing.T, cluster dockerv1.DevClusterBackendSpec, machine dockerv1.DevMachineBackendSpec) *world {
	t.Helper()
	owner := newMachine("m", true)
	c := newCluster()
	c.Spec.InfrastructureRef.Kind = "DevCluster"
	return newWorldOf(t, kinds.Dev(), dockerv1.AddToScheme, c, owner[0],
		&dockerv1.DevCluster{ObjectMeta: newInfra().ObjectMeta, Spec: dockerv1.DevClusterSpec{Backend: cluster}},
		&dockerv1.DevMachine{ObjectMeta: owner[1].(*inmemoryv1.InMemoryMachine).ObjectMeta, Spec: dockerv1.DevMachineSpec{Backend: machine}})
}

func (w *world) dev(t *testing.T) *dockerv1.DevMachine {
	t.Helper()
	obj := &dockerv1.DevMachine{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "m"}, obj))
	return obj
}

// TestDevMachine is the life of a DevMachine: its parts start one after another, and it is removed.
func TestDevMachine(t *testing.T) {
	const startup = 20 * time.Second
	slow := &dockerv1.InMemoryMachineBackendSpec{Node: &dockerv1.InMemoryNode{
		Provisioning: dockerv1.CommonProvisioningSettings{StartupDuration: metav1.Duration{Duration: startup}},
	}}
	w := newDev(t, dockerv1.DevClusterBackendSpec{InMemory: &dockerv1.InMemoryClusterBackendSpec{}},
		dockerv1.DevMachineBackendSpec{InMemory: slow})
	if result := w.reconcile(t, "m"); result.RequeueAfter != startup {
		t.Errorf("the Node starts in %s", result.RequeueAfter)
	}
	m := w.dev(t)
	if m.Spec.ProviderID != "in-memory://m" || !ptr.Deref(m.Status.Initialization.Provisioned, false) {
		t.Errorf("spec %+v, status %+v", m.Spec, m.Status)
	}
	if diff := cmp.Diff([]string{dockerv1.DevMachineFinalizer}, m.Finalizers); diff != "" {
		t.Errorf("finalizers, -want +got:\n%s", diff)
	}
	w.Clock.Step(startup)
	w.reconcile(t, "m")
	got := map[clusterv1.ConditionType]corev1.ConditionStatus{}
	for _, c := range w.dev(t).GetV1Beta1Conditions() {
		got[c.Type] = c.Status
	}
	want := map[clusterv1.ConditionType]corev1.ConditionStatus{
		"Ready": "True", "VMProvisioned": "True", "NodeProvisioned": "True", "EtcdProvisioned": "True", "APIServerProvisioned": "True",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions, -want +got:\n%s", diff)
	}
	group, _ := w.lab.Cloud.Group(key)
	if _, err := store.Get[corev1.Node](group, "", "m"); err != nil {
		t.Error(err)
	}
	testenv.Must(t, w.Delete(t.Context(), w.dev(t)))
	w.reconcile(t, "m")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
		t.Errorf("the object remains: %v", err)
	}
	if _, err := store.Get[corev1.Node](group, "", "m"); !apierrors.IsNotFound(err) {
		t.Errorf("the Node remains: %v", err)
	}
}

// TestOtherBackends checks what happens to machines that belong to another controller, or whose cluster does.
func TestOtherBackends(t *testing.T) {
	docker := dockerv1.DevClusterBackendSpec{Docker: &dockerv1.DockerClusterBackendSpec{}}
	tests := []struct {
		reason  string
		machine dockerv1.DevMachineBackendSpec
		waits   bool
	}{
		{reason: "a container is left alone", machine: dockerv1.DevMachineBackendSpec{Docker: &dockerv1.DockerMachineBackendSpec{}}},
		{reason: "no backend"},
		{
			reason:  "a simulated machine waits for a simulated cluster",
			machine: dockerv1.DevMachineBackendSpec{InMemory: &dockerv1.InMemoryMachineBackendSpec{}}, waits: true,
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newDev(t, docker, tc.machine)
			w.reconcile(t, "m")
			w.Clock.Step(time.Minute)
			w.reconcile(t, "m")
			m := w.dev(t)
			if waits := len(m.GetV1Beta1Conditions()) > 0; waits != tc.waits || m.Spec.ProviderID != "" || len(m.Finalizers) > 0 {
				t.Errorf("spec %+v, status %+v", m.Spec, m.Status)
			}
		})
	}
}
