package permission

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm"
	controlplane "sigs.k8s.io/cluster-api/providers/control-plane-kubeadm"
	"sigs.k8s.io/cluster-api/providers/core"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

//go:embed testdata/tenant.yaml
var manifests embed.FS

// scoped is an API server and the requests of managers.
type scoped struct {
	*testing.T
	*testenv.Env
	client client.Client

	mu       sync.Mutex
	requests []request
}

// request is a request of a manager.
type request struct{ manager, method, path string }

func newScoped(t *testing.T) *scoped {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd", "providers/bootstrap-kubeadm/config/crd", "providers/control-plane-kubeadm/config/crd", "providers/infrastructure-in-memory/config/crd", "providers/infrastructure-docker/config/crd")
	return &scoped{T: t, Env: e, client: e.NewClient(t, nil)}
}

// run runs all managers with these flags until the test ends.
func (w *scoped) run(flags ...string) {
	w.Helper()
	w.runs("", []manager.Component{core.NewComponent(), kubeadm.NewComponent(), controlplane.NewComponent(), inmemory.NewComponent(), docker.NewComponent()}, flags...)
}

// runs runs managers with these flags until the test ends. Their requests are recorded with their name and a suffix.
func (w *scoped) runs(suffix string, components []manager.Component, flags ...string) {
	w.Helper()
	certificates := testenv.ServingCertificate(w)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.Cleanup(func() { cancel(); running.Wait() })
	for _, c := range components {
		args := append(slices.Clone(flags), "--webhook-cert-dir", certificates)
		switch c.Name {
		case "cluster-api-controller", "kubeadm-control-plane-controller":
			args = append(args, "--feature-gates=ClusterTopology=true")
		case "capim-manager":
			args = append(args, "--debug-address=")
		}
		host := w.host(c.Name + suffix)
		running.Go(func() {
			if err := manager.Run(ctx, c, args, host); err != nil {
				w.Errorf("%s: %v", c.Name, err)
			}
		})
	}
}

// host returns the environment of a manager: its requests are recorded, and its endpoints are sockets without clients.
func (w *scoped) host(name string) manager.Host {
	w.Helper()
	config := rest.CopyConfig(w.Config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			w.mu.Lock()
			w.requests = append(w.requests, request{name, r.Method, r.URL.Path})
			w.mu.Unlock()
			return next.RoundTrip(r)
		})
	})
	sockets, err := os.MkdirTemp("", "scope") // The paths of sockets must be short.
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(sockets) })
	return manager.Host{
		Config: config, Namespace: "default", Logger: w.logger(name), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Getenv: withoutDocker,
		Listen: func(purpose string) (net.Listener, error) { return net.Listen("unix", filepath.Join(sockets, purpose)) },
	}
}

// withoutDocker is the environment of the managers. There is no container runtime: what is tested are requests to the API server.
func withoutDocker(name string) string {
	if name == "DOCKER_HOST" {
		return "unix:///nonexistent/docker.sock"
	}
	return os.Getenv(name)
}

// logger logs errors to the test while it is running.
func (w *scoped) logger(name string) logr.Logger {
	return funcr.New(func(_, args string) {
		if w.Context().Err() == nil && strings.Contains(args, `"error"`) {
			w.Logf("%s: %s", name, args)
		}
	}, funcr.Options{})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// sent returns the requests so far that match.
func (w *scoped) sent(matches func(request) bool) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []request
	for _, r := range w.requests {
		if matches(r) {
			out = append(out, r)
		}
	}
	return out
}

// tenant creates the objects of a tenant, all with a label, and returns its namespace.
func (w *scoped) tenant(label string) string {
	w.Helper()
	namespace := w.Namespace(w)
	raw, err := manifests.ReadFile("testdata/tenant.yaml")
	if err != nil {
		w.Fatal(err)
	}
	raw = []byte(strings.NewReplacer("NAMESPACE", namespace, "LABEL", label).Replace(string(raw)))
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	created := map[string]*unstructured.Unstructured{}
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); err != nil {
			break // the end
		}
		u.SetNamespace(namespace)
		u.SetOwnerReferences(ownersOf(u, created))
		if err := w.client.Create(w.Context(), u); err != nil {
			w.Fatalf("creating %s %s: %v", u.GetKind(), u.GetName(), err)
		}
		created[u.GetKind()+"/"+u.GetName()] = u
	}
	if len(created) != 18 {
		w.Fatalf("%d objects were created, want 18: the manifests cannot be parsed", len(created))
	}
	return namespace
}

// ownersOf returns the owner references that controllers would set, so that owned objects are reconciled immediately.
func ownersOf(u *unstructured.Unstructured, created map[string]*unstructured.Unstructured) []metav1.OwnerReference {
	owner, ok := map[string]string{
		"DockerCluster/docked": "Cluster/docked", "InMemoryCluster/plain": "Cluster/plain", "KubeadmControlPlane/plain": "Cluster/plain",
		"KubeadmConfig/single": "Machine/single", "InMemoryMachine/single": "Machine/single",
	}[u.GetKind()+"/"+u.GetName()]
	if !ok {
		return nil
	}
	o := created[owner]
	return []metav1.OwnerReference{{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), Controller: ptr.To(true)}}
}

// change changes a tenant's Clusters so that all their objects are reconciled, and deletes a Machine and a MachineDeployment.
func (w *scoped) change(namespace string) {
	w.Helper()
	for _, name := range []string{"plain", "classy"} {
		u := partial("cluster.x-k8s.io/v1beta1", "Cluster", namespace, name)
		spec := `{"spec":{"controlPlaneEndpoint":{"host":"127.0.0.1","port":6443}}}`
		status := `{"status":{"infrastructureReady":true,"conditions":[{"type":"ControlPlaneInitialized","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
		if err := w.client.Patch(w.Context(), u, client.RawPatch("application/merge-patch+json", []byte(spec))); err != nil {
			w.Fatal(err)
		}
		if err := w.client.Status().Patch(w.Context(), u, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			w.Fatal(err)
		}
	}
	for kind, name := range map[string]string{"Machine": "orphan", "MachineDeployment": "leaving"} {
		if err := w.client.Delete(w.Context(), partial("cluster.x-k8s.io/v1beta1", kind, namespace, name)); err != nil {
			w.Fatal(err)
		}
	}
}

func partial(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// waitUntilReconciled waits until every controller of every manager has reconciled an object of a tenant.
func (w *scoped) waitUntilReconciled(namespace string) {
	w.Helper()
	for _, want := range []struct{ what, apiVersion, kind, name, field string }{
		{"the Cluster controller", "cluster.x-k8s.io/v1beta1", "Cluster", "plain", "status.infrastructureReady"},
		{"the in-memory cluster controller", "infrastructure.cluster.x-k8s.io/v1alpha1", "InMemoryCluster", "plain", "status.ready"},
		{"the Docker cluster controller", "infrastructure.cluster.x-k8s.io/v1beta1", "DockerCluster", "docked", "metadata.finalizers"},
		{"the in-memory machine controller", "infrastructure.cluster.x-k8s.io/v1alpha1", "InMemoryMachine", "single", "spec.providerID"},
		{"the KubeadmConfig controller", "bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfig", "single", "status.dataSecretName"},
		{"the KubeadmControlPlane controller", "controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane", "plain", "status.initialized"},
		{"the Machine controller", "cluster.x-k8s.io/v1beta1", "Machine", "single", "status.nodeRef"},
		{"the MachineSet controller", "cluster.x-k8s.io/v1beta1", "MachineSet", "set", "status.replicas"},
		{"the MachineDeployment controller", "cluster.x-k8s.io/v1beta1", "MachineDeployment", "deployment", "status.replicas"},
		{"the ClusterClass controller", "cluster.x-k8s.io/v1beta1", "ClusterClass", "class", "status.observedGeneration"},
		{"the topology controller", "cluster.x-k8s.io/v1beta1", "Cluster", "classy", "spec.controlPlaneRef"},
	} {
		testenv.Eventually(w, want.what+" to reconcile "+namespace, func() error {
			u := partial(want.apiVersion, want.kind, namespace, want.name)
			if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(u), u); err != nil {
				return err
			}
			if value, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(want.field, ".")...); value == nil || value == false {
				return fmt.Errorf("%s %s has no %s: %v", want.kind, want.name, want.field, u.Object["status"])
			}
			return nil
		})
	}
}
