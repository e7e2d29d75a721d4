package fakeapi_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// over runs a test over an API server in memory, and over a real one.
func over(t *testing.T, test func(t *testing.T, s *fakeapi.Server, build object.Builder)) {
	t.Run("in memory", func(t *testing.T) { test(t, fakeapi.New(t, fakeapi.Options{}), object.Builder{}) })
	t.Run("real", func(t *testing.T) {
		e := server.Start(t, "providers/core/config/crd")
		namespace := e.Namespace(t)
		test(t, fakeapi.Over(t, e.NewClient(t, testenv.Scheme(t)), namespace), object.Builder{Namespace: namespace})
	})
}

func TestRecords(t *testing.T) {
	over(t, func(t *testing.T, s *fakeapi.Server, build object.Builder) {
		m := build.Machine("m", object.Complete)
		testenv.Must(t, s.Create(t.Context(), build.Cluster()))
		clients := s.ForController()
		c := clients.Client
		testenv.Must(t, c.Create(t.Context(), m))
		before := m.DeepCopy()
		m.Labels["a"] = "b"
		testenv.Must(t, c.Patch(t.Context(), m, client.MergeFrom(before)))
		before = m.DeepCopy()
		m.Status.Phase = "Running"
		testenv.Must(t, c.Status().Patch(t.Context(), m, client.MergeFrom(before)), c.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		testenv.Must(t, clients.Live.Get(t.Context(), client.ObjectKeyFromObject(m), m), clients.Live.List(t.Context(), &clusterv1.MachineList{}))
		if err := c.Create(t.Context(), build.Machine("m", object.Complete)); !apierrors.IsAlreadyExists(err) {
			t.Errorf("creating it again: %v", err)
		}
		testenv.Must(t, c.Delete(t.Context(), m), s.Delete(t.Context(), build.Cluster()))
		want := []string{"create Machine m", "patch Machine m", "patch Machine/status m", "create Machine m", "delete Machine m"}
		if diff := cmp.Diff(want, s.Writes); diff != "" {
			t.Errorf("writes of the controller, failed ones included (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"get Machine m", "list Machine"}, s.LiveReads); diff != "" {
			t.Errorf("live reads (-want +got):\n%s", diff)
		}
	})
}

// names returns the Machines that a reader lists, and those that it gets.
func names(t *testing.T, from client.Reader, build object.Builder, opts ...client.ListOption) map[string]string {
	t.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(t, from.List(t.Context(), list, append(opts, client.InNamespace(build.Machine("").Namespace))...))
	out := map[string]string{}
	for _, m := range list.Items {
		got := &clusterv1.Machine{}
		testenv.Must(t, from.Get(t.Context(), client.ObjectKeyFromObject(&m), got))
		if got.Status.Phase != m.Status.Phase {
			t.Errorf("Machine %s is %q in a list, otherwise %q", m.Name, m.Status.Phase, got.Status.Phase)
		}
		out[m.Name] = m.Status.Phase
	}
	return out
}

func TestStaleCache(t *testing.T) {
	over(t, func(t *testing.T, s *fakeapi.Server, build object.Builder) {
		a, b := build.Machine("a", object.Complete), build.Machine("b", object.ControlPlane, object.Complete)
		testenv.Must(t, s.Create(t.Context(), a), s.Create(t.Context(), b))
		clients := s.ForController()
		check := func(reason string, want map[string]string, opts ...client.ListOption) {
			t.Helper()
			if diff := cmp.Diff(want, names(t, clients.Client, build, opts...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", reason, diff)
			}
		}
		check("the cache is up to date", map[string]string{"a": "", "b": ""})
		s.Cache.Freeze(&clusterv1.MachineList{})
		a.Status.Phase = "Running"
		testenv.Must(t, s.Status().Update(t.Context(), a), s.Delete(t.Context(), b), s.Create(t.Context(), build.Machine("c", object.Complete)))
		check("all changes are missing", map[string]string{"a": "", "b": ""})
		check("selectors apply", map[string]string{"b": ""}, client.HasLabels{clusterv1.MachineControlPlaneLabel})
		if diff := cmp.Diff(map[string]string{"a": "Running", "c": ""}, names(t, clients.Live, build)); diff != "" {
			t.Errorf("live reads (-want +got):\n%s", diff)
		}
		s.Cache.Show(a)
		s.Cache.Hide(b)
		check("the cache has caught up with some", map[string]string{"a": "Running"})
		s.Cache.Thaw()
		check("and with all", map[string]string{"a": "Running", "c": ""})
		s.Cache.FreezeObjects(a, build.Machine("d"))
		testenv.Must(t, s.Delete(t.Context(), a), s.Create(t.Context(), build.Machine("d", object.Complete)))
		check("single objects", map[string]string{"a": "Running", "c": ""})
		s.Cache = s.NewCache()
		check("another process has another cache, this one keeps its own", map[string]string{"a": "Running", "c": ""})
		clients = s.ForController()
		check("which is up to date", map[string]string{"c": "", "d": ""})
	})
}

// Objects that a test shows have other types in the cache of a controller.
func TestOtherTypes(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "infrastructure.example.com", Version: "v1", Kind: "Thing"}
	s := fakeapi.New(t, fakeapi.Options{
		Objects: []client.Object{object.CRD(kind)},
		Indexes: []step.Index{{Object: &clusterv1.Machine{}, Field: "version", Values: func(obj client.Object) []string {
			return []string{obj.(*clusterv1.Machine).Spec.Version}
		}}},
	})
	s.Cache.Show(object.Builder{}.Provided(kind, "t", object.Fields{"spec": object.Fields{"size": int64(3)}}))
	version := "v1.30.0"
	s.Cache.Show(object.Builder{}.Machine("m", func(m *clusterv1.Machine) { m.Spec.Version = version }))
	clients := s.ForController()
	thing, err := fakeapi.External(clients).Get(t.Context(), object.Reference(kind, "t"), "default")
	testenv.Must(t, err)
	if diff := cmp.Diff(object.Fields{"size": int64(3)}, thing.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	s.Cache.Show(object.CRD(kind, "v1alpha1"))
	testenv.Must(t, clients.Client.Get(t.Context(), client.ObjectKey{Name: "things.infrastructure.example.com"}, crd))
	if got := crd.Labels["cluster.x-k8s.io/v1beta1"]; got != "v1alpha1_v1" {
		t.Errorf("the label is %q", got)
	}
	list := &clusterv1.MachineList{}
	testenv.Must(t, clients.Client.List(t.Context(), list, client.MatchingFields{"version": version}))
	if len(list.Items) != 1 {
		t.Errorf("the index has %d Machines", len(list.Items))
	}
}

func TestLiveDiffers(t *testing.T) {
	s := fakeapi.New(t, fakeapi.Options{})
	m := object.Builder{}.Machine("m")
	s.Live.Show(m)
	m.Status.Phase = "Running" // visible
	got := &clusterv1.Machine{}
	testenv.Must(t, s.ForController().Live.Get(t.Context(), client.ObjectKeyFromObject(m), got))
	if got.Status.Phase != "Running" || got == m {
		t.Errorf("got %+v", got)
	}
}

func TestFaults(t *testing.T) {
	build := object.Builder{}
	s := fakeapi.New(t, fakeapi.Options{})
	c := s.ForController().Client
	killed := errors.New("killed")
	exists := func() bool {
		return s.Get(t.Context(), client.ObjectKeyFromObject(build.Machine("m")), &clusterv1.Machine{}) == nil
	}
	var got []fakeapi.Request
	s.Before = func(r fakeapi.Request) error {
		r.Object = nil
		got = append(got, r)
		return killed
	}
	if err := c.Create(t.Context(), build.Machine("m")); !errors.Is(err, killed) || exists() || len(s.Writes) > 0 {
		t.Errorf("a request that is not sent: %v, exists: %t, writes: %q", err, exists(), s.Writes)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "m"}, build.Machine("m")); !errors.Is(err, killed) {
		t.Errorf("reads of the cache can fail: %v", err)
	}
	if diff := cmp.Diff([]fakeapi.Request{{Verb: "create", Kind: "Machine", Name: "m"}, {Verb: "get", Kind: "Machine", Name: "m", Cached: true}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.Before, s.After = nil, func(_ fakeapi.Request, err error) error { return errors.Join(err, killed) }
	if err := c.Create(t.Context(), build.Machine("m")); !errors.Is(err, killed) || !exists() {
		t.Errorf("a response that is lost: %v, exists: %t", err, exists())
	}
}

func TestServerInMemory(t *testing.T) {
	build := object.Builder{}
	s := fakeapi.New(t, fakeapi.Options{Objects: []client.Object{build.Machine("m")}})
	m := &clusterv1.Machine{}
	testenv.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(build.Machine("m")), m))
	m.Status.Phase = "Running"
	testenv.Must(t, s.Update(t.Context(), m), s.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	if m.Status.Phase != "" {
		t.Error("an update of the object changed its status, which is a subresource")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	testenv.Must(t, s.Create(t.Context(), secret))
	if secret.UID == "" {
		t.Error("a new object has no UID")
	}
	s.ForController().Recorder.Event(m, "Normal", "Tested", "x")
	if diff := cmp.Diff([]string{"Normal Tested x"}, s.Events()); diff != "" || len(s.Events()) > 0 {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestWorkload(t *testing.T) {
	s := fakeapi.New(t, fakeapi.Options{})
	w := s.NewWorkload(t, object.Node("n"))
	w.Err = remote.ErrNotConnected
	if _, err := w.Get(t.Context(), types.NamespacedName{}); !remote.IsNotConnected(err) {
		t.Errorf("the error is %v", err)
	}
	w.Err = nil
	cluster, err := w.Get(t.Context(), types.NamespacedName{})
	testenv.Must(t, err)
	nodes := &corev1.NodeList{}
	testenv.Must(t, cluster.List(t.Context(), nodes, client.MatchingFields{remote.NodeProviderID: object.ProviderID("n")}))
	if len(nodes.Items) != 1 {
		t.Fatalf("%d Nodes have the provider ID", len(nodes.Items))
	}
	testenv.Must(t, cluster.Delete(t.Context(), &nodes.Items[0]))
	if diff := cmp.Diff([]string{"list Node", "delete Node n"}, w.Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"delete Node n"}, s.Writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
