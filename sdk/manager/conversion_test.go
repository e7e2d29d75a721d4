package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// olderServer is apiServer with a Machine, in v1beta1 alone. requests returns the requests for Machines.
func olderServer(t *testing.T) (config *rest.Config, requests func() []string) {
	t.Helper()
	config = apiServer(t, "v1.36.3")
	rest, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	machine := clusterv1beta1.Machine{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", ResourceVersion: "7"},
		Spec:       clusterv1beta1.MachineSpec{ClusterName: "c"}, Status: clusterv1beta1.MachineStatus{BootstrapReady: true},
	}
	mux, mu, log := http.NewServeMux(), sync.Mutex{}, []string{}
	answer := func(pattern string, body any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if !strings.HasPrefix(r.URL.Path, "/apis/cluster.x-k8s.io/") {
				_ = json.NewEncoder(w).Encode(body)
				return
			}
			query := r.URL.Query()
			mu.Lock()
			log = append(log, r.Method+" "+r.URL.Path)
			mu.Unlock()
			switch {
			case query.Get("sendInitialEvents") != "":
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422}`)
			case query.Get("watch") != "":
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			default:
				_ = json.NewEncoder(w).Encode(body)
			}
		})
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: "cluster.x-k8s.io/v1beta1", Version: "v1beta1"}
	answer("GET /apis", metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
		Groups: []metav1.APIGroup{{
			Name: "cluster.x-k8s.io", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		}},
	})
	answer("GET /apis/cluster.x-k8s.io/v1beta1", metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version.GroupVersion,
		APIResources: []metav1.APIResource{{Name: "machines", Kind: "Machine", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}}},
	})
	answer("GET /apis/cluster.x-k8s.io/v1beta1/namespaces/ns/machines/m", machine)
	answer("GET /apis/cluster.x-k8s.io/v1beta1/machines", clusterv1beta1.MachineList{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "MachineList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []clusterv1beta1.Machine{machine},
	})
	mux.Handle("/", httputil.NewSingleHostReverseProxy(rest))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	config.Host = server.URL
	return config, func() []string {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(log)
		return slices.Compact(slices.DeleteFunc(slices.Clone(log), func(r string) bool { return !strings.Contains(r, "/machines") }))
	}
}

// A component whose Go types have another version than the API server reads through cache, client and API reader.
func TestConversions(t *testing.T) {
	c := testComponent()
	c.Conversions = conversion.New(nil)
	c.AddToScheme = append(c.AddToScheme, func(s *runtime.Scheme) error {
		for _, version := range []schema.GroupVersion{clusterv1beta1.GroupVersion, clusterv1.GroupVersion} {
			metav1.AddToGroupVersion(s, version)
		}
		s.AddKnownTypes(clusterv1beta1.GroupVersion, &clusterv1beta1.Machine{}, &clusterv1beta1.MachineList{})
		s.AddKnownTypes(clusterv1.GroupVersion, &clusterv1.Machine{}, &clusterv1.MachineList{})
		return nil
	})
	var mgr ctrl.Manager
	c.Setup = func(_ context.Context, m ctrl.Manager, _ Environment) error {
		mgr = m
		return nil
	}
	config, requests := olderServer(t)
	hosted(t, c, Host{Logger: silent(), Config: config})
	for name, reader := range map[string]client.Reader{"cache": mgr.GetCache(), "client": mgr.GetClient(), "API reader": mgr.GetAPIReader()} {
		m := &clusterv1.Machine{}
		if err := reader.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if created := m.Status.Initialization.BootstrapDataSecretCreated; created == nil || !*created || m.Spec.ClusterName != "c" {
			t.Errorf("%s: got %v", name, m)
		}
	}
	want := []string{"GET /apis/cluster.x-k8s.io/v1beta1/machines", "GET /apis/cluster.x-k8s.io/v1beta1/namespaces/ns/machines/m"}
	if diff := cmp.Diff(want, requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
