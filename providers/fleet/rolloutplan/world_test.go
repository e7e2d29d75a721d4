package rolloutplan

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/replacement"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const topologyYAML = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: NAME, namespace: default, uid: NAME}
spec:
  topology:
    classRef: {name: in-memory}
    version: v1.30.0
    controlPlane: {replicas: 3}
    workers:
      machineDeployments:
      - {class: default-worker, name: md-0, replicas: 2}
`

// api is a management cluster whose requests are recorded.
type api struct {
	client.Client
	t     testing.TB
	world *topologyplan.World

	mu       sync.Mutex
	requests []string
	// fail returns the error of a request, such as "get Machine".
	fail func(request string) error
}

// newAPI returns a management cluster with the in-memory class, and an equal one with another name.
func newAPI(t testing.TB) *api {
	t.Helper()
	w, err := topologyplan.NewWorld(nil)
	testenv.Must(t, err)
	a := &api{t: t, world: w}
	for _, u := range append(definitions(t), classes(t)...) {
		a.put(u)
	}
	return a
}

func (a *api) put(u *unstructured.Unstructured) {
	u = u.DeepCopy()
	u.SetResourceVersion("1")
	if u.GetUID() == "" {
		u.SetUID(types.UID(u.GetKind() + u.GetName()))
	}
	a.world.Put(u)
}

func (a *api) putTyped(obj client.Object) {
	a.t.Helper()
	obj.SetResourceVersion("1")
	testenv.Must(a.t, a.world.PutTyped(obj))
}

// do records a request.
func (a *api) do(request string, send func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, request)
	if a.fail != nil {
		if err := a.fail(request); err != nil {
			return err
		}
	}
	return send()
}

// take returns the requests since the last call.
func (a *api) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.requests
	a.requests = nil
	return out
}

func (a *api) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return a.do("get "+obj.GetObjectKind().GroupVersionKind().Kind+" "+key.Name, func() error { return a.world.Get(ctx, key, obj, opts...) })
}

func (a *api) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind := strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List")
	return a.do("list "+kind, func() error { return a.world.List(ctx, list, opts...) })
}

// Apply answers dry runs: everything is immutable.
func (a *api) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	u := obj.(interface{ GetKind() string })
	return a.do("dry-run "+u.GetKind(), func() error { return apierrors.NewInvalid(schema.GroupKind{Kind: u.GetKind()}, "x", nil) })
}

// read reads objects from files.
func read(t testing.TB, files ...string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, file := range files {
		raw, err := os.ReadFile(file)
		testenv.Must(t, err)
		parsed, err := manifest.Parse(raw)
		testenv.Must(t, err)
		for i := range parsed {
			all = append(all, &parsed[i])
		}
	}
	return all
}

// definitions returns the CustomResourceDefinitions of all providers of the class.
func definitions(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, provider := range []string{"core", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-in-memory"} {
		files, err := filepath.Glob("../../" + provider + "/config/crd/*.yaml")
		testenv.Must(t, err)
		all = append(all, read(t, files...)...)
	}
	for _, u := range all {
		u.SetGeneration(1)
		u.SetUID(types.UID(u.GetName()))
		version := "v1beta2"
		if strings.HasPrefix(u.GetName(), "inmemory") {
			version = "v1alpha1"
		}
		u.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": version})
	}
	return all
}

// classes returns the templates, and the class in-memory with another one, faster, both reconciled.
func classes(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	all := read(t, "../../infrastructure-in-memory/config/templates/clusterclass-in-memory.yaml")
	for _, u := range all {
		u.SetNamespace("default")
	}
	for i, u := range all {
		if u.GetKind() != "ClusterClass" {
			continue
		}
		all[i] = reconciled(t, u)
		other := u.DeepCopy()
		other.SetName("in-memory-v2")
		all = append(all, reconciled(t, other))
	}
	return all
}

// reconciled returns a class with the status that its controller sets.
func reconciled(t testing.TB, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	class := &clusterv1.ClusterClass{}
	testenv.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, class))
	class.Generation, class.Status.ObservedGeneration = 1, 1
	condition.Set(class, condition.True(clusterv1.ClusterClassVariablesReconciledV1Beta1Condition))
	for _, v := range class.Spec.Variables {
		class.Status.Variables = append(class.Status.Variables, clusterv1.ClusterClassStatusVariable{
			Name: v.Name, DefinitionsConflict: new(bool), Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{
				From: clusterv1.VariableDefinitionFromInline, Required: v.Required, Schema: v.Schema,
			}},
		})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(class)
	testenv.Must(t, err)
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(u.GroupVersionKind())
	return out
}

// cluster adds a Cluster that exists, is up to date and has all its Machines, and returns it.
func (a *api) cluster(name string) *clusterv1.Cluster {
	a.t.Helper()
	parsed, err := manifest.Parse([]byte(strings.ReplaceAll(topologyYAML, "NAME", name)))
	testenv.Must(a.t, err)
	objects := append(definitions(a.t), read(a.t, "../../infrastructure-in-memory/config/templates/clusterclass-in-memory.yaml")...)
	objects = append(objects, &parsed[0])
	for _, u := range objects {
		if u.GetKind() != "CustomResourceDefinition" {
			u.SetNamespace("default")
		}
	}
	plan, err := topologyplan.Compute(a.t.Context(), topologyplan.Input{Objects: objects, Namespace: "default", Now: time.Unix(0, 0)})
	testenv.Must(a.t, err)
	out := &clusterv1.Cluster{}
	for _, change := range plan.Rounds[0].Changes {
		u := change.After
		switch u.GetKind() {
		case "KubeadmControlPlane":
			provisioned := map[string]any{
				"version": "v1.30.0", "replicas": int64(3), "readyReplicas": int64(3), "availableReplicas": int64(3), "upToDateReplicas": int64(3),
				"initialization": map[string]any{"controlPlaneInitialized": true},
			}
			testenv.Must(a.t, unstructured.SetNestedMap(u.Object, provisioned, "status"))
			a.machines(name, 3, nil, map[string]string{clusterv1.MachineControlPlaneLabel: ""})
		case "MachineDeployment":
			a.machines(name+"-md", 2, u, map[string]string{
				clusterv1.MachineDeploymentNameLabel:                u.GetName(),
				clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0",
			})
		case "Cluster":
			testenv.Must(a.t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out))
			out.ResourceVersion = "1"
		}
		a.put(u)
	}
	return out
}

// machines adds Machines of a Cluster's control plane, or of a MachineDeployment.
func (a *api) machines(prefix string, n int, deployment *unstructured.Unstructured, labels map[string]string) {
	a.t.Helper()
	labels[clusterv1.ClusterNameLabel], labels[clusterv1.ClusterTopologyOwnedLabel] = strings.TrimSuffix(prefix, "-md"), ""
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: labels}
	}
	var owners []metav1.OwnerReference
	if deployment != nil {
		set := &clusterv1.MachineSet{ObjectMeta: meta(prefix)}
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, deployment.GroupVersionKind())}
		md := &clusterv1.MachineDeployment{}
		testenv.Must(a.t, runtime.DefaultUnstructuredConverter.FromUnstructured(deployment.Object, md))
		set.Spec.Template = md.Spec.Template
		a.putTyped(set)
		owners = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
	}
	for i := range n {
		m := &clusterv1.Machine{ObjectMeta: meta(fmt.Sprintf("%s-%d", prefix, i))}
		m.OwnerReferences, m.Spec.Version, m.Spec.ClusterName = owners, "v1.30.0", labels[clusterv1.ClusterNameLabel]
		m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: m.Name,
		}
		m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "InMemoryMachine", Name: m.Name,
		}
		a.putTyped(m)
	}
}

// planner returns a Planner of this management cluster.
func (a *api) planner() *Planner {
	return &Planner{
		Live: a, Clock: testclock.NewFakePassiveClock(time.Unix(0, 0)),
		ControlPlanes: map[schema.GroupKind]topologyplan.Outdated{replacement.Kind(): replacement.Reasons},
	}
}
