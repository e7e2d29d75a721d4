package content

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/manifest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: object.Builder{}.Meta("ConfigMap", "x"), Data: data}
}

func secret(kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: object.Builder{}.Meta("Secret", "x"), Type: kind, Data: map[string][]byte{"a": []byte("b")}}
}

func ref(kind string) addonsv1.ResourceRef { return addonsv1.ResourceRef{Kind: kind, Name: "x"} }

func TestFind(t *testing.T) {
	right := addonsv1.ClusterResourceSetSecretType
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		// hidden is set if the cache does not have the object (yet).
		hidden bool
		kind   string
		err    string
		reads  []string
	}{
		{reason: "cached ConfigMap", objects: []client.Object{configMap(nil)}, kind: "ConfigMap"},
		{reason: "cached Secret", objects: []client.Object{secret(right)}, kind: "Secret"},
		{reason: "new ConfigMap", objects: []client.Object{configMap(nil)}, hidden: true, kind: "ConfigMap", reads: []string{"get ConfigMap x"}},
		{reason: "new Secret", objects: []client.Object{secret(right)}, hidden: true, kind: "Secret", reads: []string{"get Secret x"}},
		{reason: "another type", objects: []client.Object{secret(corev1.SecretTypeOpaque)}, hidden: true, kind: "Secret", reads: []string{"get Secret x"},
			err: "Secret x must have type addons.cluster.x-k8s.io/resource-set: delete it and create it with this type"},
		{reason: "missing", kind: "ConfigMap", err: "ConfigMap x does not exist", reads: []string{"get ConfigMap x"}},
		{reason: "missing, of this kind", objects: []client.Object{configMap(nil)}, kind: "Secret", err: "Secret x does not exist", reads: []string{"get Secret x"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := fakeapi.New(t, fakeapi.Options{Objects: tc.objects})
			if tc.hidden {
				s.Cache.Hide(tc.objects...)
			}
			clients := s.ForController()
			m, err := NewReader(clients.Client, clients.Live).Find(t.Context(), "default", ref(tc.kind))
			text := ""
			if err != nil {
				text = err.Error()
			} else if m.GetName() != "x" || m.GetUID() != object.UID(tc.kind, "x") || m.GetResourceVersion() == "" {
				t.Errorf("metadata = %+v", m)
			}
			if diff := cmp.Diff(tc.reads, s.LiveReads); diff != "" || text != tc.err {
				t.Errorf("error %q, want %q; reads, -want +got:\n%s", text, tc.err, diff)
			}
		})
	}
}

// TestHash reads once per version.
func TestHash(t *testing.T) {
	s := fakeapi.New(t, fakeapi.Options{Objects: []client.Object{configMap(map[string]string{"a": "one"})}})
	clients := s.ForController()
	r := NewReader(clients.Client, clients.Live)
	for i, value := range []string{"one", "one", "two", "two"} {
		current := configMap(nil)
		testenv.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(current), current))
		if current.Data["a"] != value {
			current.Data["a"] = value
			testenv.Must(t, s.Update(t.Context(), current))
		}
		got, err := r.Hash(t.Context(), "default", ref("ConfigMap"))
		if want := manifest.Hash(map[string][]byte{"a": []byte(value)}); err != nil || got != want {
			t.Errorf("hash = %s, %v; want %s", got, err, want)
		}
		if want := i/2 + 1; len(s.LiveReads) != want {
			t.Errorf("%d reads after %d calls, want %d", len(s.LiveReads), i+1, want)
		}
	}
}

// TestRecent reads each version once, unless too many others were read since.
func TestRecent(t *testing.T) {
	s := fakeapi.New(t, fakeapi.Options{Objects: []client.Object{configMap(map[string]string{"a": "one"})}})
	clients := s.ForController()
	r := NewReader(clients.Client, clients.Live)
	for i, value := range []string{"one", "one", "two", "two"} {
		current := configMap(nil)
		testenv.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(current), current))
		if current.Data["a"] != value {
			current.Data["a"] = value
			testenv.Must(t, s.Update(t.Context(), current))
		}
		got, err := r.Recent(t.Context(), "default", ref("ConfigMap"))
		data := map[string][]byte{"a": []byte(value)}
		if diff := cmp.Diff(Content{Data: data, Hash: manifest.Hash(data)}, got); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
		if want := i/2 + 1; len(s.LiveReads) != want {
			t.Errorf("%d reads after %d calls, want %d", len(s.LiveReads), i+1, want)
		}
	}
	for i := range kept {
		r.recent.Add(i, versioned{})
	}
	_, err := r.Recent(t.Context(), "default", ref("ConfigMap"))
	testenv.Must(t, err)
	if len(s.LiveReads) != 3 {
		t.Errorf("%d reads after others, want 3", len(s.LiveReads))
	}
	s.Cache.Hide(configMap(nil))
	testenv.Must(t, s.Delete(t.Context(), configMap(nil)))
	if _, err := r.Recent(t.Context(), "default", ref("ConfigMap")); err == nil {
		t.Error("a ConfigMap that does not exist was read")
	}
}
