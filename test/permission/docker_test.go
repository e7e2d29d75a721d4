package permission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	moby "github.com/moby/moby/client"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/managers"
)

// nodeImage is the image of the load balancer. It is also that of the machine here: nothing has to run in it.
const nodeImage = "kindest/haproxy:v20230510-486859a6"

// TestDockerManagerUsesItsPermissions is TestManagersUseTheirPermissions for the Docker manager. It requires Docker: without it, the
// test is skipped unless CAPI_REQUIRE_DOCKER is set.
func TestDockerManagerUsesItsPermissions(t *testing.T) {
	t.Parallel()
	requireImage(t)
	w := start(t, managers.Programs()[0], managers.Docker())
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(w.namespace)
	w.eventually("creating the namespace", func(ctx context.Context) error { return w.Client.Create(ctx, namespace.DeepCopy()) })
	for _, prefix := range []string{"Docker", "Dev"} {
		w.walkDocker(fmt.Sprintf("b-%d", time.Now().UnixNano()%1e9), prefix)
	}
	w.migrate()
	w.checkMetrics()
	// The core manager has another walk.
	core := w.managers[0]
	w.managers = w.managers[1:]
	w.compare()
	if err := core.Stop(); err != nil {
		t.Error(err)
	}
}

func requireImage(t *testing.T) {
	t.Helper()
	absent := t.Skipf
	if os.Getenv("CAPI_REQUIRE_DOCKER") != "" {
		absent = t.Fatalf
	}
	api, err := moby.New(moby.WithHost(cmp.Or(os.Getenv("DOCKER_HOST"), moby.DefaultDockerHost)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = api.Close() }()
	if _, err := api.ImageInspect(t.Context(), nodeImage); err != nil {
		absent("no container runtime with image %s; see hack/docker.sh and make node-image: %v", nodeImage, err)
	}
}

// walkDocker creates and deletes a Cluster with a load balancer, whose configuration has a template, and a control plane machine. There
// is nobody to bootstrap it: its bootstrap data fails. The names of the kinds begin with a prefix, Docker or Dev.
func (w *world) walkDocker(name, prefix string) {
	w.t.Helper()
	clusterKind, machineKind := prefix+"Cluster", prefix+"Machine"
	spec := func(backend map[string]any) map[string]any {
		if prefix == "Dev" {
			return map[string]any{"backend": map[string]any{"docker": backend}}
		}
		return backend
	}
	infrastructure := func(kind string) map[string]any {
		return map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": name}
	}
	labels := map[string]any{"cluster.x-k8s.io/cluster-name": name, "cluster.x-k8s.io/control-plane": ""}
	objects := []map[string]any{
		{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": haproxyTemplate}},
		{"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret", "stringData": map[string]any{"value": "#cloud-config\nruncmd: [\"false\"]\n"}},
		{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": clusterKind, "spec": spec(map[string]any{
			"loadBalancer": map[string]any{"customHAProxyConfigTemplateRef": map[string]any{"name": name}},
		})},
		{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "spec": map[string]any{"infrastructureRef": infrastructure(clusterKind)}},
		{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": machineKind, "metadata": map[string]any{"labels": labels}, "spec": spec(map[string]any{"customImage": nodeImage})},
		{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"clusterName": name, "version": "v1.36.3", "bootstrap": map[string]any{"dataSecretName": name}, "infrastructureRef": infrastructure(machineKind),
		}},
	}
	var last *unstructured.Unstructured
	for _, fields := range objects {
		last = &unstructured.Unstructured{Object: fields}
		if last.GetName() == "" {
			last.SetName(name)
			last.SetNamespace(w.namespace)
		}
		w.eventually("creating "+last.GetKind(), func(ctx context.Context) error { return w.Client.Create(ctx, last.DeepCopy()) })
	}
	of := func(kind string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
		if kind == "Cluster" {
			o.SetAPIVersion("cluster.x-k8s.io/v1beta1")
		}
		o.SetKind(kind)
		o.SetName(name)
		o.SetNamespace(w.namespace)
		return o
	}
	w.eventually("the bootstrap data to fail", func(ctx context.Context) error {
		m := of(machineKind)
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
		for _, c := range conditions {
			if c.(map[string]any)["reason"] == "BootstrapFailed" {
				return nil
			}
		}
		return fmt.Errorf("its status is %v", m.Object["status"])
	})
	if err := w.Client.Delete(w.t.Context(), of("Cluster")); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the cluster to be gone", func(ctx context.Context) error {
		for _, kind := range []string{"Cluster", clusterKind, machineKind} {
			o := of(kind)
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("%s exists", kind), err)
			}
		}
		return nil
	})
}

// haproxyTemplate is a template that HAProxy accepts.
const haproxyTemplate = `defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend control-plane
  bind *:{{ $FrontendControlPlanePort }}
  default_backend kube-apiservers
backend kube-apiservers
{{- range $name, $address := $BackendServers }}
  server {{ $name }} {{ JoinHostPort $address $BackendControlPlanePort }}
{{- end }}
`
