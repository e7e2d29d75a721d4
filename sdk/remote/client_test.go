package remote

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// offline answers no request.
type offline struct{}

func (offline) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.New("asked for " + r.URL.Path)
}

// TestScopes compares with client-go: kinds are namespaced if their client takes a namespace.
func TestScopes(t *testing.T) {
	mapper, err := newMapper(&rest.Config{Host: "https://localhost"}, &http.Client{Transport: offline{}}, knownKinds(clientgoscheme.Scheme))
	if err != nil {
		t.Fatal(err)
	}
	groups, seen := reflect.TypeFor[kubernetes.Interface](), 0
	for i := range groups.NumMethod() {
		group := groups.Method(i).Type.Out(0)
		for j := range group.NumMethod() {
			getter := group.Method(j)
			if getter.Name == "RESTClient" {
				continue
			}
			get, ok := getter.Type.Out(0).MethodByName("Get")
			if !ok {
				continue
			}
			obj, ok := reflect.New(get.Type.Out(0).Elem()).Interface().(runtime.Object)
			if !ok {
				continue
			}
			seen++
			want := meta.RESTScopeNameRoot
			if getter.Type.NumIn() == 1 {
				want = meta.RESTScopeNameNamespace
			}
			checkScope(t, mapper, obj, want)
		}
	}
	if seen < 50 {
		t.Errorf("only %d kinds were compared, there are more", seen)
	}
}

func checkScope(t *testing.T, mapper meta.RESTMapper, obj runtime.Object, want meta.RESTScopeName) {
	t.Helper()
	kinds, _, err := clientgoscheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{kinds[0].Kind, kinds[0].Kind + "List"} {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: kinds[0].Group, Kind: kind}, kinds[0].Version)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := mapping.Scope.Name(); got != want {
			t.Errorf("%s: scope is %s, want %s", kind, got, want)
		}
	}
}

func TestReads(t *testing.T) {
	untyped := &unstructured.Unstructured{}
	untyped.SetAPIVersion("v1")
	untyped.SetKind("Node")
	metadata := &metav1.PartialObjectMetadata{TypeMeta: nodeType()}
	server := newAPI(t, serving, node("n1", "fake://1", "1"))
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	cluster := w.connected(blue)
	server.awaitWatch(t)
	for _, c := range []struct {
		name, reason string
		key          client.ObjectKey
		obj          client.Object
		want         []string
	}{
		{
			"Cached", "what is cached costs no request", client.ObjectKey{Name: "n1"}, &corev1.Node{}, nil,
		},
		{
			"Uncached", "what is not cached is asked for by one request, without any to learn what there is",
			client.ObjectKey{Namespace: "kube-system", Name: "kubeadm-config"}, &corev1.ConfigMap{},
			[]string{"GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config"},
		},
		{
			"Unstructured", "the cache has Go types: other forms of a cached kind must not start another watch",
			client.ObjectKey{Name: "live"}, untyped, []string{"GET /api/v1/nodes/live"},
		},
		{
			"Metadata", "nor must metadata alone",
			client.ObjectKey{Name: "live"}, metadata, []string{"GET /api/v1/nodes/live"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(server.asked(""))
			if err := cluster.Get(t.Context(), c.key, c.obj); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range server.asked("")[before:] {
				path, _, _ := strings.Cut(r, "?")
				got = append(got, path)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
	if got := len(server.asked("watch=")); got != 1 {
		t.Errorf("there were %d watches, want the one of Nodes: %q", got, server.asked("watch="))
	}
}
