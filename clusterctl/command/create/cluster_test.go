package create

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

func replace(text, old, replacement string) string {
	if !strings.Contains(text, old) {
		panic("the fixture has no " + old)
	}
	return strings.ReplaceAll(text, old, replacement)
}

const template = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: "${CLUSTER_NAME}"}
spec:
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryCluster, name: "${CLUSTER_NAME}"}
  controlPlaneEndpoint: {host: "", port: 0}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryCluster
metadata: {name: "${CLUSTER_NAME}"}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachineTemplate
metadata: {name: "${CLUSTER_NAME}"}
spec: {template: {spec: {}}}
`

// cli runs the command against a namespace of a real API server.
type cli struct {
	t         *testing.T
	env       *testenv.Env
	namespace string
	// client, if not nil, takes the place of the real one.
	client client.WithWatch
}

func newCLI(t *testing.T) *cli {
	e := server.Start(t, "providers/core/config/crd", "providers/infrastructure-in-memory/config/crd")
	t.Setenv("KUBECONFIG", e.Kubeconfig)
	return &cli{t: t, env: e, namespace: e.Namespace(t)}
}

func (c *cli) run(input string, args ...string) (out, stderr string, err error) {
	c.t.Helper()
	streams, buffers := iostreams.Test()
	buffers.In.WriteString(input)
	f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
	f.ConfigPath = filepath.Join(c.t.TempDir(), "clusterctl.yaml")
	if err := os.WriteFile(f.ConfigPath, []byte("{}"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if c.client != nil {
		f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
			return &management.Cluster{Client: c.client, Namespace: "default"}, nil
		}
	}
	cmd := NewCluster(f, nil)
	cmd.SetArgs(append([]string{"--from", "-", "-n", c.namespace}, args...))
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.Err)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.ExecuteContext(c.t.Context())
	return buffers.Out.String(), strings.ReplaceAll(buffers.Err.String(), c.namespace, "NS"), err
}

// kinds returns which of the template's objects exist.
func (c *cli) kinds(name string) []string {
	c.t.Helper()
	var found []string
	for _, kind := range [][2]string{
		{"cluster.x-k8s.io/v1beta1", "Cluster"}, {"infrastructure.cluster.x-k8s.io/v1alpha1", "InMemoryCluster"},
		{"infrastructure.cluster.x-k8s.io/v1alpha1", "InMemoryMachineTemplate"},
	} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(kind[0])
		u.SetKind(kind[1])
		err := c.env.Client.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, u)
		if err == nil {
			found = append(found, kind[1])
		} else if !apierrors.IsNotFound(err) {
			c.t.Fatal(err)
		}
	}
	return found
}

func TestCreateAndAgain(t *testing.T) {
	c := newCLI(t)
	// Webhooks, which this API server does not have, would set the namespace; v1beta2 does not store an endpoint without a host.
	text := replace(template, `host: ""`, `host: "first.example.com"`)
	text = replace(text, "kind: InMemoryCluster, name", "kind: InMemoryCluster, namespace: "+c.namespace+", name")
	_, stderr, err := c.run(text, "c1", "--no-wait")
	if err != nil {
		t.Fatal(err)
	}
	want := `InMemoryMachineTemplate NS/c1 created
InMemoryCluster NS/c1 created
Cluster NS/c1 created
To follow its progress, run: clusterctl describe cluster c1 -n NS
`
	if diff := cmp.Diff(want, stderr); diff != "" {
		t.Errorf("Templates come first, the Cluster last: -want +got:\n%s", diff)
	}
	_, stderr, err = c.run(text, "c1", "--wait=false")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(stderr, "unchanged") != 3 || !strings.Contains(stderr, "Cluster NS/c1 is up to date") {
		t.Errorf("the same again must change nothing:\n%s", stderr)
	}
	_, stderr, err = c.run(replace(template, `host: ""`, `host: "example.com"`), "c1", "--no-wait")
	if err != nil || !strings.Contains(stderr, "Cluster NS/c1 changed") {
		t.Errorf("what differs must be changed: %v\n%s", err, stderr)
	}
}

func TestProvidersThatStart(t *testing.T) {
	// API servers give errors of conversions no reason.
	converts := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "conversion webhook for example.com/v1, Kind=Toy failed: connection refused",
	}}
	for reason, failure := range map[string]error{
		"a webhook that admits": apierrors.NewInternalError(errors.New(`failed calling webhook "default.cluster": connection refused`)),
		"one that converts":     converts,
	} {
		t.Run(reason, func(t *testing.T) {
			c := newCLI(t)
			calls := 0
			c.client = interceptor.NewClient(c.env.Client, interceptor.Funcs{
				Apply: func(ctx context.Context, w client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					if calls++; calls < 3 {
						return failure
					}
					return w.Apply(ctx, o, opts...)
				},
			})
			_, stderr, err := c.run(template, "c1", "--no-wait")
			if err != nil || strings.Count(stderr, "Waiting for the webhook of InMemoryMachineTemplate NS/c1") != 1 {
				t.Errorf("a provider that has just been installed is waited for, with one message: %v\n%s", err, stderr)
			}
		})
	}
}

// TestLostResponse: every object is applied, but the connection ends before the response. The request is repeated, and the object
// counts as created by this command: it is rolled back when a later one is rejected.
func TestLostResponse(t *testing.T) {
	c := newCLI(t)
	lost := map[string]bool{}
	c.client = interceptor.NewClient(c.env.Client, interceptor.Funcs{
		Apply: func(ctx context.Context, w client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			kind := o.(interface{ GetKind() string }).GetKind()
			options := (&client.ApplyOptions{}).ApplyOptions(opts)
			if kind == "Cluster" && len(options.DryRun) == 0 {
				return apierrors.NewBadRequest("no more Clusters")
			}
			err := w.Apply(ctx, o, opts...)
			if err == nil && len(options.DryRun) == 0 && !lost[kind] {
				lost[kind] = true
				return &url.Error{Op: "Patch", URL: "https://x", Err: io.EOF}
			}
			return err
		},
	})
	_, stderr, err := c.run(template, "c1", "--no-wait")
	if err == nil || !strings.Contains(err.Error(), "no more Clusters") || !strings.Contains(stderr, "InMemoryCluster NS/c1 created") {
		t.Errorf("a lost response must be repeated: %v\n%s", err, stderr)
	}
	if left := c.kinds("c1"); left != nil {
		t.Errorf("nothing must remain, found %v", left)
	}
}

func TestEmptyFields(t *testing.T) {
	c := newCLI(t)
	empty := replace(template, "spec: {template: {spec: {}}}", "spec:\n  template:\n    metadata:\n      labels:\n    spec:\n      behaviour:\n        vm:\n") + `---
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: "${CLUSTER_NAME}"}
spec:
  controlPlane:
    metadata: {annotations: }
    ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachineTemplate, name: "${CLUSTER_NAME}"}
`
	if _, stderr, err := c.run(empty, "c1", "--no-wait"); err != nil {
		t.Errorf("fields without a value are as if they were not there: %v\n%s", err, stderr)
	}
}

func TestMistakesWriteNothing(t *testing.T) {
	c := newCLI(t)
	for name, tc := range map[string]struct {
		reason, template string
		args             []string
		want             string
	}{
		"Type":      {"The API server checks every object first.", replace(template, `port: 0`, `port: many`), nil, ".spec.controlPlaneEndpoint.port: expected numeric (int or float), got string: correct the template"},
		"Field":     {"What is not a field may be a slip of the pen.", replace(template, `port: 0`, `prot: 0`), nil, "Cluster NS/bad does not match the schema of its kind: .spec.controlPlaneEndpoint.prot: field not declared in schema"},
		"Reference": {"What is referred to must come from somewhere.", replace(template, "kind: InMemoryCluster\nmetadata: {name: \"${CLUSTER_NAME}\"", "kind: InMemoryCluster\nmetadata: {name: other"), nil, "Cluster NS/bad references InMemoryCluster NS/bad, which does not exist"},
		"Class":     {"A Cluster of a missing class would wait forever.", classTemplate, nil, "Cluster NS/bad references ClusterClass NS/toy, which does not exist: create it first, or add it to the template"},
		"Kind":      {"A provider may be missing.", replace(template, "kind: InMemoryCluster\n", "kind: OtherCluster\n"), nil, "install its provider with `clusterctl init`, or `clusterctl operator init` where the operator manages providers"},
		"Namespace": {"A namespace must exist.", template, []string{"-n", "no-such-namespace"}, "create it with `kubectl create namespace no-such-namespace`"},
		"Name":      {"The template must make the cluster.", replace(template, "${CLUSTER_NAME}", "fixed"), nil, "contains no Cluster bad, only fixed"},
		"Nothing":   {"The template must make a cluster.", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", nil, "contains no Cluster"},
		"Timeout":   {"Flags are checked first.", template, []string{"--timeout", "-1s"}, "--timeout is -1s"},
		"Version":   {"Flags mean what they mean to generate cluster.", template, []string{"--kubernetes-version", "new"}, "--kubernetes-version"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := c.run(tc.template, append([]string{"bad"}, tc.args...)...)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), c.namespace, "NS"), tc.want) {
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
			if left := c.kinds("bad"); left != nil {
				t.Errorf("%s\nnothing must be written, found %v", tc.reason, left)
			}
		})
	}
}

func TestRefusedHalfwayIsUndone(t *testing.T) {
	c := newCLI(t)
	refused := errors.New("no more Clusters")
	c.client = interceptor.NewClient(c.env.Client, interceptor.Funcs{
		Apply: func(ctx context.Context, w client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			options := (&client.ApplyOptions{}).ApplyOptions(opts)
			if u, ok := o.(interface{ GetKind() string }); ok && u.GetKind() == "Cluster" && len(options.DryRun) == 0 {
				return refused
			}
			return w.Apply(ctx, o, opts...)
		},
	})
	_, stderr, err := c.run(template, "half", "--no-wait")
	if !errors.Is(err, refused) || !strings.Contains(stderr, "InMemoryMachineTemplate NS/half rolled back") {
		t.Errorf("want the rejection and what was undone, got %v\n%s", err, stderr)
	}
	if left := c.kinds("half"); left != nil {
		t.Errorf("nothing must remain, found %v", left)
	}
}

func TestConflict(t *testing.T) {
	c := newCLI(t)
	if _, _, err := c.run(template, "c1", "--no-wait"); err != nil {
		t.Fatal(err)
	}
	u := object(t, `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: c1}}`)
	u.SetNamespace(c.namespace)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"controlPlaneEndpoint":{"host":"by-hand"}}}`))
	if err := c.env.Client.Patch(t.Context(), u, patch, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	_, _, err := c.run(template, "c1", "--no-wait")
	if err == nil || !strings.Contains(err.Error(), "some of its fields are managed by other tools") || !strings.Contains(err.Error(), "kubectl-edit") {
		t.Errorf("what others changed must not be changed back, and be said; got %v", err)
	}
}

func TestTimeoutSaysWhatIsMissing(t *testing.T) {
	c := newCLI(t)
	timeout := 300 * time.Millisecond
	out, stderr, err := c.run(template, "c1", "--timeout", timeout.String())
	// A longer timeout, if the objects could not be read within a short one.
	for err != nil && strings.Contains(err.Error(), "objects to be read") {
		timeout *= 2
		out, stderr, err = c.run(template, "c1", "--timeout", timeout.String())
	}
	want := fmt.Sprintf("is not ready after %s: still waiting for the infrastructure to be ready; the control plane to be initialized", timeout)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want what is waited for, got %v\n%s", err, stderr)
	}
	if !strings.Contains(out, "ClusterInfrastructure - InMemoryCluster/c1") {
		t.Errorf("want the tree as it is, got:\n%s", out)
	}
}

func TestWaitUntilItRuns(t *testing.T) {
	c := newCLI(t)
	done := make(chan error, 1)
	var out, stderr string
	go func() {
		var err error
		out, stderr, err = c.run(template, "c1", "--timeout", "1m")
		done <- err
	}()
	if err := c.initialize("c1"); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !strings.HasPrefix(out, "NAME ") || !strings.Contains(stderr, "clusterctl get kubeconfig c1 -n NS") || !strings.Contains(stderr, "clusterctl delete cluster c1 -n NS") {
		t.Errorf("want the tree and what to do next, got:\n%s%s", out, stderr)
	}
}

// initialize does what controllers would, once the Cluster is there.
func (c *cli) initialize(name string) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(tree.ClusterKind.GroupVersion().WithKind("ClusterList"))
	w, err := c.env.Client.Watch(ctx, list, client.InNamespace(c.namespace))
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		if !ok || u.GetName() != name {
			continue
		}
		condition := map[string]any{"type": "ControlPlaneInitialized", "status": "True", "lastTransitionTime": "2030-01-02T12:00:00Z"}
		u.Object["status"] = map[string]any{"infrastructureReady": true, "conditions": []any{condition}}
		return c.env.Client.Status().Update(ctx, u)
	}
	return ctx.Err()
}

// object reads an object of namespace ns.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace("ns")
	return u
}
