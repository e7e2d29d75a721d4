package remote

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored returns a store of this kind, and the calls of a listener so far.
func stored(t *testing.T, k Cached) (*store, *[]string) {
	t.Helper()
	stores, err := newStores(Options{Scheme: clientgoscheme.Scheme, Cached: []Cached{k}, pool: &pool{}}, knownKinds(clientgoscheme.Scheme))
	if err != nil {
		t.Fatal(err)
	}
	told := &[]string{}
	for _, s := range stores {
		s.listen(recorder(told))
		return s, told
	}
	t.Fatal("there is no store")
	return nil, nil
}

// recorder records "added n1@1", "n1@1 became 2" and "deleted n1@2".
func recorder(told *[]string) listener {
	version := func(o client.Object) string { return o.GetName() + "@" + o.GetResourceVersion() }
	return func(before, after client.Object) {
		switch {
		case before == nil:
			*told = append(*told, "added "+version(after))
		case after == nil:
			*told = append(*told, "deleted "+version(before))
		default:
			*told = append(*told, version(before)+" became "+after.GetResourceVersion())
		}
	}
}

func TestChanges(t *testing.T) {
	n := func(name, version string) *corev1.Node {
		o := node(name, "", version)
		return &o
	}
	s, told := stored(t, Nodes())
	steps := []struct {
		reason string
		do     func() error
		want   []string
	}{
		{"all objects of the first list are new", func() error { return s.Replace([]any{n("a", "1"), n("b", "1")}, "1") }, []string{"added a@1", "added b@1"}},
		{"an object is added", func() error { return s.Add(n("c", "2")) }, []string{"added c@2"}},
		{"an object changes", func() error { return s.Update(n("a", "3")) }, []string{"a@1 became 3"}},
		{"an object is added again", func() error { return s.Add(n("a", "4")) }, []string{"a@3 became 4"}},
		{"an object is deleted; listeners get its last known version", func() error { return s.Delete(n("b", "5")) }, []string{"deleted b@1"}},
		{"it cannot go twice", func() error { return s.Delete(n("b", "5")) }, nil},
		{
			"a later list includes all changes since the previous one",
			func() error { return s.Replace([]any{n("a", "6"), n("d", "6")}, "6") },
			[]string{"a@4 became 6", "added d@6", "deleted c@2"},
		},
		{"with an empty list, all objects are deleted", func() error { return s.Replace(nil, "7") }, []string{"deleted a@6", "deleted d@6"}},
	}
	for _, step := range steps {
		*told = nil
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		slices.Sort(*told)
		if diff := cmp.Diff(step.want, *told); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.reason, diff)
		}
	}
}

func TestListenersAreCalledForPresentObjects(t *testing.T) {
	s, _ := stored(t, Nodes())
	select {
	case <-s.filled:
		t.Error("nothing was listed yet")
	default:
	}
	a := node("a", "", "1")
	if err := s.Replace([]any{&a}, "1"); err != nil {
		t.Fatal(err)
	}
	<-s.filled
	told := []string{}
	s.listen(recorder(&told))
	if diff := cmp.Diff([]string{"added a@1"}, told); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStrips(t *testing.T) {
	large := node("a", "fake://a", "1")
	large.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	large.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	want := node("a", "fake://a", "1")
	s, _ := stored(t, Nodes())
	for name, put := range map[string]func(*corev1.Node) error{
		"update":  func(n *corev1.Node) error { return s.Update(n) },
		"replace": func(n *corev1.Node) error { return s.Replace([]any{n}, "1") },
	} {
		got := &corev1.Node{}
		if err := put(large.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := s.Get(t.Context(), client.ObjectKey{Name: "a"}, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	failing, told := stored(t, Cached{Object: &corev1.Node{}, Transform: func(any) (any, error) { return nil, errors.New("no") }})
	if err := failing.Update(&large); err == nil || len(*told) > 0 {
		t.Errorf("got %v and listeners got %v: objects that cannot be transformed must not be cached", err, *told)
	}
}

// pods is a store of the Pods of kube-system.
func pods(t *testing.T) *store {
	t.Helper()
	s, _ := stored(t, Cached{Object: &corev1.Pod{}, Namespace: "kube-system"})
	list := []any{}
	for _, name := range []string{"etcd-a", "etcd-b"} {
		list = append(list, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"of": name}}})
	}
	if err := s.Replace(list, "1"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGetFromCache(t *testing.T) {
	s := pods(t)
	first := &corev1.Pod{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "etcd-a"}, first); err != nil {
		t.Fatal(err)
	}
	if first.Kind != "Pod" || first.APIVersion != "v1" {
		t.Errorf("the object is a %s %s, want v1 Pod", first.APIVersion, first.Kind)
	}
	first.Labels["of"] = "changed"
	again := &corev1.Pod{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(first), again); err != nil || again.Labels["of"] != "etcd-a" {
		t.Errorf("got %v, %v: readers must get copies", again.Labels, err)
	}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "other"}, again); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "etcd-a"}, again); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("got %v, want an error for the namespace: NotFound would be wrong", err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(first), &corev1.Node{}); err == nil {
		t.Error("a Pod is no Node")
	}
	nodes, _ := stored(t, Nodes())
	a := node("a", "", "1")
	if err := nodes.Add(&a); err != nil {
		t.Fatal(err)
	}
	if err := nodes.Get(t.Context(), client.ObjectKey{Namespace: "ignored", Name: "a"}, &corev1.Node{}); err != nil {
		t.Errorf("got %v: Nodes are in no namespace, whatever is asked for", err)
	}
}

func TestListFromCache(t *testing.T) {
	in := client.InNamespace("kube-system")
	tests := map[string]struct {
		reason  string
		opts    []client.ListOption
		want    []string
		wantErr string
	}{
		"namespace":       {"all there are", []client.ListOption{in}, []string{"etcd-a", "etcd-b"}, ""},
		"labels":          {"those with the label", []client.ListOption{in, client.MatchingLabels{"of": "etcd-b"}}, []string{"etcd-b"}, ""},
		"none":            {"labels that none has", []client.ListOption{in, client.HasLabels{"else"}}, nil, ""},
		"other namespace": {"namespaces that are not cached are unknown", []client.ListOption{client.InNamespace("default")}, nil, "only has namespace kube-system"},
		"all namespaces":  {"nor are all namespaces", nil, nil, "only has namespace kube-system"},
		"limit":           {"callers would mistake a part for the whole list", []client.ListOption{in, client.Limit(1)}, nil, "does not support limit and continue"},
		"no such index":   {"an index is missing", []client.ListOption{in, client.MatchingFields{"spec.nodeName": "a"}}, nil, "spec.nodeName"},
		"inexact": {
			"an index finds values, not their absence",
			[]client.ListOption{in, client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("a", "b")}}, nil, "one value of one field",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, list := pods(t), &corev1.PodList{}
			err := s.List(t.Context(), list, tt.opts...)
			if (err != nil) != (tt.wantErr != "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Fatalf("%s: got error %v, want %q", tt.reason, err, tt.wantErr)
			}
			var got []string
			for _, p := range list.Items {
				got = append(got, p.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
			for i := range list.Items {
				list.Items[i].Labels["of"] = "changed" // It must not be seen by others.
			}
			for _, o := range s.objects.List() {
				if p, ok := o.(*corev1.Pod); !ok || p.Labels["of"] != p.Name {
					t.Errorf("%s: the list shares %v with the cache", tt.reason, o)
				}
			}
		})
	}
}

// A cluster that sends too much is disconnected, and its memory is released.
func TestStoresShareMemory(t *testing.T) {
	s, _ := stored(t, Nodes())
	s.allowance.pool.used = commonPool
	var lost error
	s.lost = func(err error) { lost = err }
	large := node("large", "", "1")
	large.Spec.ProviderID = strings.Repeat("x", freeShare+1)
	if err := s.Add(&large); err != nil {
		t.Fatal(err)
	}
	if !IsRejected(lost) || len(s.objects.List()) != 0 {
		t.Errorf("the connection ends with %v and %d objects", lost, len(s.objects.List()))
	}
	small := node("small", "", "1")
	if err := s.Add(&small); err != nil || len(s.objects.List()) != 1 {
		t.Errorf("a small object: %v, %d objects", err, len(s.objects.List()))
	}
}
