package machine

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/apiserver"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/lab"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/step"
)

var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key = types.NamespacedName{Namespace: "default", Name: "test"}
)

type world struct {
	client.Client
	lab    *lab.Lab
	disk   string // the folder for journals; empty for memory only
	clock  *testclock.FakeClock
	runner *step.Runner[*inmemoryv1.InMemoryMachine]
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, inmemoryv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	// Bootstrap data in an unsupported format.
	objects = append(objects, newData("data", "#!/bin/sh\n"))
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA} {
		if slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == pki.SecretName(key.Name, purpose) }) {
			continue // The test has its own.
		}
		ca, err := pki.NewCA(pki.ECDSA, now)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := ca.PEM()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, pki.NewSecret(key, purpose, pair.Data(), nil))
	}
	w := &world{clock: testclock.NewFakeClock(now)}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&inmemoryv1.InMemoryMachine{}).Build()
	w.restart(t)
	t.Cleanup(func() {
		if err := w.lab.Server.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func newData(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"value": []byte(value)}}
}

// restart starts a new process: the simulated cloud has what is on its disk, the management cluster is unchanged.
func (w *world) restart(t *testing.T) {
	t.Helper()
	if w.lab != nil {
		if err := w.lab.Server.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.lab = &lab.Lab{Cloud: cloud.New(cloud.Options{Clock: w.clock, Directory: w.disk}), Server: apiserver.New(apiserver.Options{}), Host: "127.0.0.1"}
	c := &Controller{Outside: step.Outside{Client: w.Client, Live: w.Client, Recorder: record.NewFakeRecorder(10), Clock: w.clock}, lab: w.lab}
	w.runner = c.declared().Runner(c.Outside)
}

func (w *world) reconcile(t *testing.T, name string) ctrl.Result {
	t.Helper()
	result, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}})
	if err != nil {
		t.Fatalf("reconciling %s: %v", name, err)
	}
	return result
}

func (w *world) read(t *testing.T, name string) *inmemoryv1.InMemoryMachine {
	t.Helper()
	obj := &inmemoryv1.InMemoryMachine{}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func newCluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test", UID: "cluster-uid"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: &corev1.ObjectReference{Kind: "InMemoryCluster", Name: "infra"}},
		Status:     clusterv1.ClusterStatus{InfrastructureReady: true},
	}
}

// newInfra returns an InMemoryCluster whose port the lab chooses.
func newInfra() *inmemoryv1.InMemoryCluster {
	return &inmemoryv1.InMemoryCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "infra", UID: "infra-uid"}}
}

// newMachine returns a Machine and its InMemoryMachine.
func newMachine(name string, controlPlane bool) []client.Object {
	labels := map[string]string{clusterv1.ClusterNameLabel: "test"}
	if controlPlane {
		labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	return []client.Object{
		&clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-machine"), Labels: labels},
			Spec:       clusterv1.MachineSpec{ClusterName: "test", Version: ptr.To("v1.31.0"), Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")}},
		},
		&inmemoryv1.InMemoryMachine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name + "-infra"), Labels: labels, CreationTimestamp: metav1.NewTime(now),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: types.UID(name + "-machine"), Controller: ptr.To(true)}},
		}},
	}
}

// states returns an object's conditions in short form.
func states(obj *inmemoryv1.InMemoryMachine) map[clusterv1.ConditionType]string {
	out := map[clusterv1.ConditionType]string{}
	for _, c := range obj.Status.Conditions {
		out[c.Type] = string(c.Status)
		if c.Reason != "" {
			out[c.Type] += " " + string(c.Severity) + " " + c.Reason
		}
	}
	return out
}
