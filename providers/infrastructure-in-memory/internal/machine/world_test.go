package machine

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	now   = object.Now()
	build = object.Builder{ClusterName: "test"}
	key   = types.NamespacedName{Namespace: "default", Name: "test"}
)

type world struct {
	*fakeapi.Server
	set    kinds.Set
	lab    *lab.Lab
	disk   string // the folder for journals; empty for memory only
	runner *step.Runner[step.Object]
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return newWorldOf(t, kinds.InMemory(), inmemoryv1.AddToScheme, objects...)
}

func newWorldOf(t *testing.T, set kinds.Set, scheme func(*runtime.Scheme) error, objects ...client.Object) *world {
	t.Helper()
	// Bootstrap data in an unsupported format.
	objects = append(objects, build.BootstrapData("data", "#!/bin/sh\n"))
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
	w := &world{set: set, Server: fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{scheme}, Objects: objects})}
	w.restart(t)
	t.Cleanup(func() {
		if err := w.lab.Server.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// restart starts a new process: the simulated cloud has what is on its disk, the management cluster is unchanged.
func (w *world) restart(t *testing.T) {
	t.Helper()
	if w.lab != nil {
		testenv.Must(t, w.lab.Server.Close())
	}
	w.lab = &lab.Lab{Cloud: cloud.New(cloud.Options{Clock: w.Clock, Directory: w.disk}), Server: apiserver.New(apiserver.Options{}), Host: "127.0.0.1"}
	c := &Controller{Clients: w.ForController(), kinds: w.set, lab: w.lab}
	w.runner = c.declared().Runner(c.Clients)
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
	testenv.Must(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, obj))
	return obj
}

func newCluster() *clusterv1.Cluster {
	return build.Cluster(object.InfrastructureReady, func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "InMemoryCluster", Name: "infra"}
	})
}

// newInfra returns an InMemoryCluster whose port the lab chooses.
func newInfra() *inmemoryv1.InMemoryCluster {
	return &inmemoryv1.InMemoryCluster{ObjectMeta: build.Meta("InMemoryCluster", "infra")}
}

// newMachine returns a Machine and its InMemoryMachine.
func newMachine(name string, controlPlane bool) []client.Object {
	m := build.Machine(name, func(m *clusterv1.Machine) {
		m.Spec.Version, m.Spec.Bootstrap.DataSecretName = "v1.31.0", ptr.To("data")
	})
	if controlPlane {
		object.ControlPlane(m)
	}
	infra := object.ControlledBy(&inmemoryv1.InMemoryMachine{ObjectMeta: build.Meta("InMemoryMachine", name)}, m)
	infra.Labels, infra.CreationTimestamp = maps.Clone(m.Labels), metav1.NewTime(now)
	return []client.Object{m, infra}
}

// states returns an object's conditions in short form.
func states(obj *inmemoryv1.InMemoryMachine) map[clusterv1.ConditionType]string {
	out := map[clusterv1.ConditionType]string{}
	for _, c := range obj.GetV1Beta1Conditions() {
		out[c.Type] = string(c.Status)
		if c.Reason != "" {
			out[c.Type] += " " + string(c.Severity) + " " + c.Reason
		}
	}
	return out
}
