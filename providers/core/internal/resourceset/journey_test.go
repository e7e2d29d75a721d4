package resourceset

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/manifest"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// journey is a namespace that runs the controllers. The management cluster is also the workload cluster of all Clusters.
type journey struct {
	*testing.T
	client.Client
	namespace  string
	kubeconfig []byte
	writes     *testenv.Requests
}

func newJourney(t *testing.T) *journey {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd")
	s := testenv.Scheme(t, addonsv1.AddToScheme)
	j := &journey{T: t, Client: e.NewClient(t, s), namespace: e.Namespace(t)}
	j.writes = e.Run(t, s, j.namespace, func(mgr ctrl.Manager) error {
		clusters := remote.New(remote.Options{
			Secrets: mgr.GetCache(), Scheme: clientgoscheme.Scheme, Cached: []remote.Cached{remote.Nodes()}, Policy: remote.Policy{Loopback: true},
		})
		if err := mgr.Add(clusters); err != nil {
			return err
		}
		return Setup(t.Context(), mgr, Options{Concurrency: 4, Namespace: j.namespace, Clusters: clusters})
	})
	var err error
	j.kubeconfig, err = os.ReadFile(e.Kubeconfig)
	testenv.Must(t, err)
	return j
}

func (j *journey) create(objects ...client.Object) {
	j.Helper()
	for _, obj := range objects {
		obj.SetUID("")
		obj.SetNamespace(j.namespace)
		testenv.Must(j, j.Create(j.Context(), obj))
	}
}

// cluster creates an initialized Cluster with a label, and its kubeconfig.
func (j *journey) cluster(name string, kubeconfig []byte) {
	j.Helper()
	c := cluster(name)
	status := c.Status
	j.create(c)
	c.Status = status
	testenv.Must(j, j.Status().Update(j.Context(), c))
	j.create(pki.NewSecret(client.ObjectKeyFromObject(c), pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: kubeconfig}, nil))
}

// set creates a ClusterResourceSet, and ConfigMaps with the manifest of a ConfigMap in the namespace.
func (j *journey) set(name, strategy string, refs ...addonsv1.ResourceRef) *addonsv1.ClusterResourceSet {
	j.Helper()
	s := set(withResources(refs...), func(s *addonsv1.ClusterResourceSet) {
		s.Name, s.Spec.Strategy, s.Finalizers = name, strategy, nil
	})
	j.create(s)
	return s
}

// manifest returns a ConfigMap with the manifest of another one in the namespace.
func (j *journey) manifest(name, target, data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{
		"manifest.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %q, namespace: %s}\ndata: {%s}\n", target, j.namespace, data),
	}}
}

// state returns the records of all bindings in short: "c s ConfigMap/m=true".
func (j *journey) state() []string {
	list := &addonsv1.ClusterResourceSetBindingList{}
	testenv.Must(j, j.List(j.Context(), list, client.InNamespace(j.namespace)))
	var out []string
	for _, b := range list.Items {
		for _, e := range b.Spec.Bindings {
			for _, r := range e.Resources {
				out = append(out, fmt.Sprintf("%s %s %s/%s=%t", b.Name, e.ClusterResourceSetName, r.Kind, r.Name, ptr.Deref(r.Applied, false)))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (j *journey) eventually(what string, check func() error) {
	j.Helper()
	testenv.Eventually(j, what, check)
}

// records waits until the bindings have these records.
func (j *journey) records(what string, want ...string) {
	j.Helper()
	j.eventually(what, func() error {
		if got := j.state(); !slices.Equal(got, want) {
			return fmt.Errorf("bindings = %q, want %q", got, want)
		}
		return nil
	})
}

// condition waits for the condition of a ClusterResourceSet.
func (j *journey) condition(name, want string) {
	j.Helper()
	j.eventually("condition of "+name, func() error {
		s := &addonsv1.ClusterResourceSet{}
		if err := j.Get(j.Context(), client.ObjectKey{Namespace: j.namespace, Name: name}, s); err != nil {
			return err
		}
		c := condition.Get(s, addonsv1.ResourcesAppliedV1Beta1Condition)
		if c == nil {
			return fmt.Errorf("no condition, want %s", want)
		}
		if got := strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)); got != want {
			return fmt.Errorf("condition = %s, want %s", got, want)
		}
		return nil
	})
}

// data returns the data of a ConfigMap in the workload cluster.
func (j *journey) data(name, key string) string {
	j.Helper()
	c := &corev1.ConfigMap{}
	if err := j.Get(j.Context(), client.ObjectKey{Namespace: j.namespace, Name: name}, c); err != nil {
		return err.Error()
	}
	return c.Data[key]
}

// TestLife is the life of two ClusterResourceSets on one Cluster.
func TestLife(t *testing.T) {
	j := newJourney(t)
	j.set("once", "ApplyOnce", inConfigMap("m"), inSecret("later"))
	again := j.set("always", "Reconcile", inConfigMap("n"))
	j.create(j.manifest("m", "x", "a: one"), j.manifest("n", "y", "a: one"))
	j.cluster("c", j.kubeconfig)
	j.records("both are applied", "c always ConfigMap/n=true", "c once ConfigMap/m=true")
	j.condition("always", "True")
	j.condition("once", "False RetrievingResourceFailed Secret later does not exist")

	// A Secret of the wrong type, and then of the right one.
	wrong := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "later"}, StringData: map[string]string{"a": "- broken\n"}}
	right := wrong.DeepCopy()
	right.Type = addonsv1.ClusterResourceSetSecretType
	j.create(wrong)
	testenv.Must(t, j.touch("once"))
	j.condition("once", "False WrongSecretType Secret later must have type addons.cluster.x-k8s.io/resource-set: delete it and create it with this type")
	testenv.Must(t, j.Delete(t.Context(), wrong))
	j.create(right)
	j.records("a broken document does not affect others", "c always ConfigMap/n=true", "c once ConfigMap/m=true", "c once Secret/later=false")
	j.condition("once", "False ApplyFailed cannot apply to 1 Cluster: c: Secret later, key a, document 1: must be an object with apiVersion and kind")
	before := right.DeepCopy()
	right.StringData = map[string]string{"a": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z, namespace: " + j.namespace + "}\n"}
	testenv.Must(t, j.Patch(t.Context(), right, client.MergeFrom(before)))
	j.records("the Secret is applied", "c always ConfigMap/n=true", "c once ConfigMap/m=true", "c once Secret/later=true")
	j.condition("once", "True")

	// Changes of users, and of manifests.
	for _, name := range []string{"x", "y"} {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: name}}
		testenv.Must(t, j.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"user","b":"user"}}`))))
	}
	for from, to := range map[string]string{"m": "x", "n": "y"} {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: from}}
		testenv.Must(t, j.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		c.Data = j.manifest(from, to, "a: two").Data
		testenv.Must(t, j.Update(t.Context(), c))
	}
	j.eventually("Reconcile applies the new manifest, and keeps what users added", func() error {
		if a, b := j.data("y", "a"), j.data("y", "b"); a != "two" || b != "user" {
			return fmt.Errorf("a = %s, b = %s", a, b)
		}
		return nil
	})
	if a := j.data("x", "a"); a != "user" {
		t.Errorf("ApplyOnce changes an object: %s", a)
	}
	j.writes.Take()

	// A ClusterResourceSet is deleted; then the Cluster.
	testenv.Must(t, j.Delete(t.Context(), again))
	j.eventually("the set is deleted", func() error { return j.gone(again) })
	j.records("its entry is removed", "c once ConfigMap/m=true", "c once Secret/later=true")
	testenv.Must(t, j.Delete(t.Context(), cluster("c", func(c *clusterv1.Cluster) { c.Namespace = j.namespace })))
	j.eventually("the binding is deleted", func() error {
		return j.gone(&addonsv1.ClusterResourceSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: "c"}})
	})
	if a := j.data("x", "a"); a != "user" {
		t.Errorf("objects in the workload cluster are kept: %s", a)
	}
}

// touch updates a ClusterResourceSet, so that it is reconciled.
func (j *journey) touch(name string) error {
	s := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: name}}
	return j.Patch(j.Context(), s, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"touched":""}}}`)))
}

// gone returns an error if an object exists.
func (j *journey) gone(obj client.Object) error {
	err := j.Get(j.Context(), client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s still exists: %w", obj.GetName(), err)
}

// TestFiftyClusters: one of fifty workload clusters accepts connections and never responds. The others are not affected.
func TestFiftyClusters(t *testing.T) {
	j := newJourney(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	config, err := clientcmd.Load(j.kubeconfig)
	testenv.Must(t, err)
	for _, c := range config.Clusters {
		c.Server = "https://" + silent.Addr().String()
	}
	hanging, err := clientcmd.Write(*config)
	testenv.Must(t, err)

	j.create(j.manifest("m", "x", "a: one"))
	j.set("s", "Reconcile", inConfigMap("m"))
	const clusters = 50
	var want []string
	for i := range clusters {
		name, kubeconfig := fmt.Sprintf("c%02d", i), j.kubeconfig
		if i == 0 {
			kubeconfig = hanging
		} else {
			want = append(want, name+" s ConfigMap/m=true")
		}
		j.cluster(name, kubeconfig)
	}
	j.records("all but one", want...)
	got := j.writes.Take()
	for what, limit := range map[string]int{
		"create clusterresourcesetbindings": clusters - 1, "patch clusterresourcesetbindings": clusters - 1,
		"patch configmaps": 1, "patch clusterresourcesets": 1,
	} {
		if got[what] > limit {
			t.Errorf("%d times %s, want at most %d: %v", got[what], what, limit, got)
		}
	}
	// A change of the manifest reaches all of them, too.
	c := j.manifest("m", "x", "a: two")
	c.Namespace = j.namespace
	current := &corev1.ConfigMap{}
	testenv.Must(t, j.Get(t.Context(), client.ObjectKeyFromObject(c), current))
	before := current.DeepCopy()
	current.Data = c.Data
	testenv.Must(t, j.Patch(t.Context(), current, client.MergeFrom(before)))
	hash := hashOf(current)
	j.eventually("the change is applied everywhere", func() error {
		list := &addonsv1.ClusterResourceSetBindingList{}
		testenv.Must(t, j.List(t.Context(), list, client.InNamespace(j.namespace)))
		for _, b := range list.Items {
			if got := b.Spec.Bindings[0].Resources[0].Hash; got != hash {
				return fmt.Errorf("%s has %s, want %s", b.Name, got, hash)
			}
		}
		return nil
	})
}

func hashOf(c *corev1.ConfigMap) string {
	data := map[string][]byte{}
	for key, value := range c.Data {
		data[key] = []byte(value)
	}
	return manifest.Hash(data)
}

// TestCustomResources: objects and the definition of their kind are in two ConfigMaps of a set, in the wrong order within one of them.
func TestCustomResources(t *testing.T) {
	j := newJourney(t)
	group := j.namespace + ".example.com"
	widget := func(name string) string {
		return fmt.Sprintf("apiVersion: %s/v1\nkind: Widget\nmetadata: {name: %s, namespace: %s}\n", group, name, j.namespace)
	}
	definition := strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, "GROUP", group)
	first, second := j.manifest("a", "", ""), j.manifest("b", "", "")
	first.Data = map[string]string{"a": widget("one") + "---\n" + definition}
	second.Data = map[string]string{"a": widget("two")}
	j.create(first, second)
	j.set("s", "Reconcile", inConfigMap("a"), inConfigMap("b"))
	j.cluster("c", j.kubeconfig)
	j.records("all are applied", "c s ConfigMap/a=true", "c s ConfigMap/b=true")
	if got := j.writes.Take()["patch clusterresourcesetbindings"]; got > 1 {
		t.Errorf("the binding is patched %d times: the kind is not waited for", got)
	}
}
