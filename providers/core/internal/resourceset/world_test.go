package resourceset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// world is a fake management cluster.
type world struct {
	*fakeapi.Server
	t *testing.T
	*Controller
	reconcile func() (ctrl.Result, error)
	// filter is that of controllers that are started from now on.
	filter watch.Filter
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, Server: fakeapi.New(t, fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{addonsv1.AddToScheme}, Objects: objects,
		Indexes: []step.Index{{Object: &addonsv1.ClusterResourceSet{}, Field: byResource, Values: resourceKeys}},
	})}
	w.restart()
	return w
}

// restart replaces the controller by that of another process.
func (w *world) restart() {
	clients := w.ForController()
	clients.Filter = w.filter
	w.Controller = &Controller{Clients: clients, contents: content.NewReader(clients.Client, clients.Live), ledger: outcome.NewLedger()}
	runner := w.declared().Runner(clients)
	w.reconcile = func() (ctrl.Result, error) {
		return runner.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "s"}})
	}
}

// set returns ClusterResourceSet s as it is in the API server.
func (w *world) set() *addonsv1.ClusterResourceSet {
	w.t.Helper()
	s := set()
	testenv.Must(w.t, w.Server.Get(w.t.Context(), client.ObjectKeyFromObject(s), s))
	return s
}

// state returns the condition in short.
func (w *world) state() string {
	w.t.Helper()
	return object.State(w.set(), addonsv1.ResourcesAppliedV1Beta1Condition)
}

// set returns ClusterResourceSet s, which selects all Clusters of cluster.
func set(change ...func(*addonsv1.ClusterResourceSet)) *addonsv1.ClusterResourceSet {
	s := &addonsv1.ClusterResourceSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "s", UID: "s", Generation: 1, Finalizers: []string{addonsv1.ClusterResourceSetFinalizer},
		},
		Spec: addonsv1.ClusterResourceSetSpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cni": "ours"}},
			Resources:       []addonsv1.ResourceRef{inConfigMap("m")}, Strategy: "ApplyOnce",
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func withResources(refs ...addonsv1.ResourceRef) func(*addonsv1.ClusterResourceSet) {
	return func(s *addonsv1.ClusterResourceSet) { s.Spec.Resources = refs }
}

func inConfigMap(name string) addonsv1.ResourceRef {
	return addonsv1.ResourceRef{Kind: "ConfigMap", Name: name}
}

func inSecret(name string) addonsv1.ResourceRef {
	return addonsv1.ResourceRef{Kind: "Secret", Name: name}
}

func configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: object.Builder{}.Meta("ConfigMap", name)}
	c.OwnerReferences = owners
	return c
}

func secret(name string, kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: object.Builder{}.Meta("Secret", name), Type: kind}
}

func cluster(name string, with ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	labeled := func(c *clusterv1.Cluster) { c.Labels = map[string]string{"cni": "ours"} }
	return object.Builder{ClusterName: name}.Cluster(append([]func(*clusterv1.Cluster){object.Initialized, labeled}, with...)...)
}

// bound returns the binding of a Cluster with entries of ClusterResourceSets: "s" has the record of ConfigMap m.
func bound(cluster string, applied bool, sets ...string) *addonsv1.ClusterResourceSetBinding {
	b := &addonsv1.ClusterResourceSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: cluster, UID: object.UID("binding", cluster)},
		Spec:       addonsv1.ClusterResourceSetBindingSpec{ClusterName: cluster},
	}
	for _, name := range sets {
		owner := set()
		if name != "s" {
			owner.Name, owner.UID = name, object.UID("set", name)
		}
		b.OwnerReferences = append(b.OwnerReferences, binding.Owner(owner))
		b.Spec.Bindings = append(b.Spec.Bindings, addonsv1.ResourceSetBinding{
			ClusterResourceSetName: name, Resources: []addonsv1.ResourceBinding{{ResourceRef: inConfigMap("m"), Applied: ptr.To(applied)}},
		})
	}
	return b
}

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}
