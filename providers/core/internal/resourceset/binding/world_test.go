package binding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/manifest"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

var build object.Builder

// world is a fake management cluster with workload clusters.
type world struct {
	*fakeapi.Server
	t *testing.T
	*Controller
	reconcile func(cluster string) (ctrl.Result, error)
	workloads map[string]*fakeapi.Workload
	// filter is that of controllers that are started from now on.
	filter watch.Filter
}

// newWorld returns a world with a controller and Cluster c, which is initialized and has a label, and its workload cluster.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, workloads: map[string]*fakeapi.Workload{}}
	if !slices.ContainsFunc(objects, func(o client.Object) bool { _, is := o.(*clusterv1.Cluster); return is }) {
		objects = append(objects, cluster("c"))
	}
	w.Server = fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{addonsv1.AddToScheme}, Objects: objects})
	for _, o := range objects {
		if c, is := o.(*clusterv1.Cluster); is {
			w.workloads[c.Name] = w.NewWorkload(t, service())
		}
	}
	w.restart()
	return w
}

// restart replaces the controller by that of another process.
func (w *world) restart() {
	clients := w.ForController()
	clients.Filter = w.filter
	w.Controller = &Controller{
		Clients: clients, workloads: w, contents: content.NewReader(clients.Client, clients.Live), ledger: outcome.NewLedger(),
		pause: func(context.Context, time.Duration) error { return nil },
	}
	runner := w.declared().Runner(clients)
	w.reconcile = func(cluster string) (ctrl.Result, error) {
		return runner.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: cluster}})
	}
}

// Get connects to a workload cluster.
func (w *world) Get(ctx context.Context, key types.NamespacedName) (*remote.Cluster, error) {
	return w.workloads[key.Name].Get(ctx, key)
}

// run reconciles a Cluster, which must succeed.
func (w *world) run(cluster string) ctrl.Result {
	w.t.Helper()
	result, err := w.reconcile(cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// quiet forgets the requests so far.
func (w *world) quiet() {
	w.Writes, w.LiveReads = nil, nil
	for _, cluster := range w.workloads {
		cluster.Requests = nil
	}
}

// binding returns the binding of a Cluster; nil if it does not exist.
func (w *world) binding(cluster string) *addonsv1.ClusterResourceSetBinding {
	w.t.Helper()
	b := &addonsv1.ClusterResourceSetBinding{}
	err := w.Server.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: cluster}, b)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return b
}

// state returns the records of a binding in short: "set ConfigMap/a=true".
func (w *world) state(cluster string) []string {
	w.t.Helper()
	b := w.binding(cluster)
	if b == nil {
		return nil
	}
	var out []string
	for _, e := range b.Spec.Bindings {
		if len(e.Resources) == 0 {
			out = append(out, e.ClusterResourceSetName)
		}
		for _, r := range e.Resources {
			out = append(out, fmt.Sprintf("%s %s/%s=%t", e.ClusterResourceSetName, r.Kind, r.Name, ptr.Deref(r.Applied, false)))
		}
	}
	return out
}

func cluster(name string, with ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	labeled := func(c *clusterv1.Cluster) { c.Labels = map[string]string{"cni": "ours"} }
	return object.Builder{ClusterName: name}.Cluster(append([]func(*clusterv1.Cluster){object.Initialized, labeled}, with...)...)
}

// set returns a ClusterResourceSet that selects Cluster c.
func set(name, strategy string, refs ...addonsv1.ResourceRef) *addonsv1.ClusterResourceSet {
	return &addonsv1.ClusterResourceSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: object.UID("ClusterResourceSet", name), Generation: 1,
			Finalizers: []string{addonsv1.ClusterResourceSetFinalizer},
		},
		Spec: addonsv1.ClusterResourceSetSpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cni": "ours"}}, Resources: refs, Strategy: strategy,
		},
	}
}

const (
	once   = "ApplyOnce"
	always = "Reconcile"
)

// deleting makes obj one that is being deleted.
func deleting[T client.Object](obj T) T {
	object.Deleting(obj)
	return obj
}

func inConfigMap(name string) addonsv1.ResourceRef {
	return addonsv1.ResourceRef{Kind: "ConfigMap", Name: name}
}

func inSecret(name string) addonsv1.ResourceRef {
	return addonsv1.ResourceRef{Kind: "Secret", Name: name}
}

func configMap(name string, values ...string) *corev1.ConfigMap {
	out := &corev1.ConfigMap{ObjectMeta: build.Meta("ConfigMap", name), Data: map[string]string{}}
	for i, v := range values {
		out.Data[fmt.Sprintf("%d.yaml", i)] = v
	}
	return out
}

func secret(name string, kind corev1.SecretType, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: build.Meta("Secret", name), Type: kind, Data: map[string][]byte{"value": []byte(value)}}
}

// hashOf returns the hash of a ConfigMap or Secret.
func hashOf(obj client.Object) string {
	data := map[string][]byte{}
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		for key, value := range o.Data {
			data[key] = []byte(value)
		}
	case *corev1.Secret:
		data = o.Data
	}
	return manifest.Hash(data)
}

// yaml returns a ConfigMap for the workload cluster.
func yaml(name string, data ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"" + name + "\"}\ndata: {" + strings.Join(data, ", ") + "}\n"
}

func service() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
}

// data returns the data of a ConfigMap in a workload cluster; nil if it does not exist.
func (w *world) data(cluster, name string) map[string]string {
	w.t.Helper()
	c := &corev1.ConfigMap{}
	err := w.workloads[cluster].Client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, c)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return c.Data
}

// change changes the value of a ConfigMap in the management cluster.
func (w *world) change(name, value string) {
	w.t.Helper()
	c := configMap(name)
	testenv.Must(w.t, w.Server.Get(w.t.Context(), client.ObjectKeyFromObject(c), c))
	c.Data = map[string]string{"0.yaml": value}
	testenv.Must(w.t, w.Server.Update(w.t.Context(), c))
}

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}
