package webhook

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// parse parses YAML into an API type. Unknown fields are errors.
func parse[T any](t testing.TB, source string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(source), &out); err != nil {
		t.Fatalf("bad test data: %v\n%s", err, source)
	}
	return out
}

// instant is a clock whose waits end immediately. It adds up the time waited, and calls during at
// every wait.
type instant struct {
	clock.RealClock
	waited time.Duration
	during func(waited time.Duration)
}

func (c *instant) After(d time.Duration) <-chan time.Time {
	c.waited += d
	if c.during != nil {
		c.during(c.waited)
	}
	out := make(chan time.Time, 1)
	out <- time.Time{}
	return out
}

// counting counts reads.
type counting struct {
	client.Reader
	gets, lists int
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.gets++
	return c.Reader.Get(ctx, key, obj, opts...)
}

func (c *counting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, list, opts...)
}

// world has everything that the webhook of Clusters reads.
type world struct {
	client       client.Client
	reader       *counting
	clock        *instant
	controlPlane string // as YAML
	nodes        map[string]string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &world{client: c, reader: &counting{Reader: c}, clock: &instant{}}
}

func (w *world) webhook(t *testing.T) *Cluster {
	t.Helper()
	out, err := NewCluster(Options{
		Reader: w.reader,
		Object: func(context.Context, *clusterv1.ContractVersionedObjectReference, string) (contract.Object, error) {
			return contract.Object{Unstructured: &unstructured.Unstructured{Object: parse[map[string]any](t, w.controlPlane)}}, nil
		},
		Workload: func(context.Context, types.NamespacedName) (client.Reader, error) {
			b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			for name, version := range w.nodes {
				node := &corev1.Node{}
				node.Name, node.Status.NodeInfo.KubeletVersion = name, version
				b = b.WithObjects(node)
			}
			return b.Build(), nil
		},
		Clock:           w.clock,
		ClusterTopology: true,
		RuntimeSDK:      true,
		MachinePool:     true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reconciledClass returns a reconciled class with a variable and classes of workers.
func reconciledClass(t *testing.T, name string, change ...func(*clusterv1.ClusterClass)) *clusterv1.ClusterClass {
	t.Helper()
	c := parse[clusterv1.ClusterClass](t, `
metadata: {namespace: default, generation: 1}
spec:
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerClusterTemplate, name: a}}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: a}
  workers:
    machineDeployments:
    - class: default-worker
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a}}
      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a}}
status:
  observedGeneration: 1
  deprecated: {v1beta1: {conditions: [{type: VariablesReconciled, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}
  variables:
  - name: imageRepository
    definitionsConflict: false
    definitions: [{from: inline, required: true, schema: {openAPIV3Schema: {type: string, default: registry.k8s.io}}}]
`)
	c.Name, c.UID = name, types.UID(name)
	for _, f := range change {
		f(&c)
	}
	return &c
}

// classIn returns a reconciled class "a" in a namespace.
func classIn(t *testing.T, namespace string) *clusterv1.ClusterClass {
	t.Helper()
	return reconciledClass(t, "a", func(c *clusterv1.ClusterClass) { c.Namespace = namespace })
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
