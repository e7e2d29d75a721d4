package reference_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// controller accepts any watch.
type controller struct{}

// Watch implements external.Controller.
func (controller) Watch(source.Source) error { return nil }

// world is an API server with a Follower for Machines.
type world struct {
	*fakeapi.Server
	client    client.Client
	follow    *reference.Follower
	informers *informertest.FakeInformers
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{informers: &informertest.FakeInformers{}, Server: fakeapi.New(t, fakeapi.Options{
		Objects: append([]client.Object{object.CRD(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Thing"}, "v1")}, objects...),
		Indexes: []step.Index{{Object: &clusterv1.Machine{}, Field: reference.Index, Values: func(obj client.Object) []string {
			m := obj.(*clusterv1.Machine) // The index is of Machines.
			return reference.Keys(&m.Spec.Bootstrap.ConfigRef, &m.Spec.InfrastructureRef)
		}}},
	})}
	clients := w.ForController()
	w.client = clients.Client
	w.follow = fakeapi.Follower(t, clients, &clusterv1.MachineList{})
	w.follow.Watcher = external.NewWatcher(controller{}, w.informers)
	return w
}

// watched are the kinds that have an informer.
func (w *world) watched() []string {
	var kinds []string
	for kind := range w.informers.InformersByGVK {
		kinds = append(kinds, kind.String())
	}
	return kinds
}

// thing is an object of a provider in namespace default.
func thing(name string, labels map[string]string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("example.com/v2")
	obj.SetKind("Thing")
	obj.SetNamespace("default")
	obj.SetName(name)
	obj.SetLabels(labels)
	obj.SetOwnerReferences(owners)
	return obj
}

func to(group, kind, name string) *clusterv1.ContractVersionedObjectReference {
	return &clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: name}
}

func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		reason      string
		ref         *clusterv1.ContractVersionedObjectReference
		want        string
		wantWatches []string
		wantErr     string
	}{
		"There": {
			reason: "the object is found, and its kind watched in the newest version", ref: to("example.com", "Thing", "one"),
			want:        "one",
			wantWatches: []string{"example.com/v2, Kind=Thing"},
		},
		"NotYet": {
			reason:      "a missing object is not an error, but its kind is watched for its creation",
			ref:         to("example.com", "Thing", "two"),
			wantWatches: []string{"example.com/v2, Kind=Thing"},
		},
		"NoSuchKind": {
			reason:  "a missing kind is an error, not a missing object",
			ref:     to("example.com", "Gadget", "one"),
			wantErr: "Gadget.example.com: CustomResourceDefinition gadgets.example.com does not exist: install its provider",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, thing("one", nil))
			obj, err := w.follow.Follow(t.Context(), c.ref, "default")
			var got string
			if obj != nil {
				got = obj.GetName()
			}
			if diff := cmp.Diff([]string{c.want, c.wantErr}, []string{got, message(err)}); diff != "" {
				t.Errorf("%s: object and error -want +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.wantWatches, w.watched()); diff != "" {
				t.Errorf("%s: watches -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func owner(kind, name string, controls bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: kind, Name: name, UID: types.UID("uid-of-" + name)}
	if controls {
		ref.Controller, ref.BlockOwnerDeletion = new(true), new(true)
	}
	return ref
}

func TestOwn(t *testing.T) {
	ours := map[string]string{"cluster.x-k8s.io/cluster-name": "blue"}
	mine, set, cluster := owner("Machine", "m", true), owner("MachineSet", "s", true), owner("Cluster", "blue", false)
	for name, c := range map[string]struct {
		reason      string
		obj         *unstructured.Unstructured
		previous    []string
		want        *unstructured.Unstructured
		wantPatches int
		wantErr     string
	}{
		"Free": {
			reason: "an object of a user gets the owner and the label in one write, and keeps its labels and owners",
			obj:    thing("one", map[string]string{"a": "b"}, cluster), wantPatches: 1,
			want: thing("one", map[string]string{"a": "b", "cluster.x-k8s.io/cluster-name": "blue"}, cluster, mine),
		},
		"Ours": {
			reason: "an object with both costs no write", obj: thing("one", ours, mine), want: thing("one", ours, mine),
		},
		"LabelOnly": {
			reason: "an object without the label is written once", obj: thing("one", nil, mine), wantPatches: 1,
			want: thing("one", ours, mine),
		},
		"OtherLabel": {
			reason: "the name of another cluster is corrected", wantPatches: 1,
			obj:  thing("one", map[string]string{"cluster.x-k8s.io/cluster-name": "green"}, mine),
			want: thing("one", ours, mine),
		},
		"Previous": {
			reason: "a previous controller is replaced", obj: thing("one", ours, set), previous: []string{"MachineSet"}, wantPatches: 1,
			want: thing("one", ours, mine),
		},
		"FormerBesideUs": {
			reason: "a leftover owner reference is removed", obj: thing("one", ours, owner("MachineSet", "s", false), mine),
			previous: []string{"MachineSet"}, wantPatches: 1, want: thing("one", ours, mine),
		},
		"Rival": {
			reason: "an object that another controls is not touched", obj: thing("one", nil, set), want: thing("one", nil, set),
			wantErr: "taking over Thing: default/one is already controlled by MachineSet s, so it cannot be controlled by Machine m: use another object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.obj)
			live := get(t, w, "one")
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "uid-of-m"}}
			err := w.follow.Own(t.Context(), live, m, "blue", c.previous...)
			if diff := cmp.Diff(c.wantErr, message(err)); diff != "" || len(w.Writes) != c.wantPatches {
				t.Errorf("%s: %d writes, want %d; error -want +got:\n%s", c.reason, len(w.Writes), c.wantPatches, diff)
			}
			got := get(t, w, "one")
			got.SetResourceVersion("")
			if diff := cmp.Diff(c.want.Object, got.Object); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func get(t *testing.T, from client.Reader, name string) *unstructured.Unstructured {
	t.Helper()
	obj := thing(name, nil)
	testenv.Must(t, from.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj
}

func TestOwnDoesNotOverwriteOthers(t *testing.T) {
	w := newWorld(t, thing("one", nil))
	stale := get(t, w, "one")
	newer := get(t, w, "one")
	newer.SetOwnerReferences([]metav1.OwnerReference{owner("MachineSet", "s", true)})
	testenv.Must(t, w.Update(t.Context(), newer))
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "uid-of-m"}}
	if err := w.follow.Own(t.Context(), stale, m, "blue"); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict: another owner adopted the object meanwhile", err)
	}
}

func TestRequests(t *testing.T) {
	machine := func(namespace, name, infra string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		m.Spec.InfrastructureRef = *to("example.com", "Thing", infra)
		m.Spec.Bootstrap.ConfigRef = *to("example.com", "Config", name)
		return m
	}
	config := thing("b", nil)
	config.SetKind("Config")
	w := newWorld(t, machine("default", "a", "one"), machine("default", "b", "two"), machine("elsewhere", "c", "one"))
	for name, c := range map[string]struct {
		reason string
		obj    *unstructured.Unstructured
		want   []reconcile.Request
	}{
		"ByInfrastructure": {
			"what refers by another version refers too; what is in another namespace does not", thing("one", nil),
			[]reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}}},
		},
		"ByBootstrap": {
			"every reference of the object counts", config,
			[]reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "b"}}},
		},
		"Unreferenced": {"an object without references triggers no reconcile", thing("three", nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, w.follow.Requests(t.Context(), c.obj)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		refs   []*clusterv1.ContractVersionedObjectReference
		want   []string
	}{
		"Set": {
			"a key has kind, group and name",
			[]*clusterv1.ContractVersionedObjectReference{to("example.com", "Thing", "one"), to("example.com", "Config", "one")},
			[]string{"Thing.example.com/one", "Config.example.com/one"},
		},
		"Empty": {"a reference that is not set has no key", []*clusterv1.ContractVersionedObjectReference{nil, {}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, reference.Keys(c.refs...)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// A cluster-scoped object, which all namespaces share, is not owned: it would be deleted with the object of one tenant.
func TestOwnOnlyInTheNamespace(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "uid-of-m"}}
	for namespace, want := range map[string]string{"": "is cluster-scoped", "other": "is in namespace other"} {
		obj := thing("shared", nil)
		obj.SetNamespace(namespace)
		w := newWorld(t)
		err := w.follow.Own(t.Context(), obj, m, "c")
		var failed *step.Error
		if !contains(err, want) || !errors.As(err, &failed) || failed.Reason != "ReferenceInvalid" {
			t.Errorf("namespace %q: want an error that sets the condition, with %q, got %v", namespace, want, err)
		}
		if len(obj.GetOwnerReferences()) > 0 {
			t.Errorf("namespace %q: owners are %v", namespace, obj.GetOwnerReferences())
		}
	}
}
