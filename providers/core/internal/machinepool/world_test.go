package machinepool

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machine"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	now   = object.Now()
	build object.Builder

	poolKind    = kindOf("GenericMachinePool", "infrastructure.cluster.x-k8s.io")
	machineKind = kindOf("GenericMachine", "infrastructure.cluster.x-k8s.io")
	configKind  = kindOf("GenericConfig", "bootstrap.cluster.x-k8s.io")
)

func kindOf(kind, group string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

type fields = object.Fields

// world is a Controller with a fake management cluster and a fake workload cluster.
type world struct {
	*fakeapi.Server
	*Controller
	workload *fakeapi.Workload
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	objects = append(objects, object.CRD(poolKind), object.CRD(machineKind), object.CRD(configKind))
	w := &world{Server: fakeapi.New(t, fakeapi.Options{Objects: objects, Indexes: append(indexes(), machine.ByProviderID)})}
	w.workload = w.NewWorkload(t)
	w.Controller = newController(w.ForController())
	w.Controller.workloads = w.workload
	w.follow = fakeapi.Follower(t, w.Controller.Clients, &clusterv1.MachinePoolList{})
	w.follow.Live = w.Controller.Live
	w.machineKinds = w.follow.Watcher
	return w
}

// step runs one step.
func (w *world) step(t *testing.T, name string, s *scope) (step.Result, error) {
	t.Helper()
	return steptest.Run(t.Context(), s.pool, s, w.declared().Step(name))
}

// node creates a Node in the workload cluster.
func (w *world) node(t *testing.T, name string, with ...func(*corev1.Node)) {
	t.Helper()
	testenv.Must(t, w.workload.Client.Create(t.Context(), object.Node(name, with...)))
}

// ready makes a Node ready since a time before now.
func ready(since time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-since))}}
	}
}

// pool returns MachinePool p of Cluster c, changed by with.
func pool(with ...func(*clusterv1.MachinePool)) *clusterv1.MachinePool {
	return named("p", with...)
}

func named(name string, with ...func(*clusterv1.MachinePool)) *clusterv1.MachinePool {
	created := func(p *clusterv1.MachinePool) { p.CreationTimestamp = metav1.NewTime(now) }
	return build.MachinePool(name, append([]func(*clusterv1.MachinePool){withReferences, created}, with...)...)
}

// withReferences gives a pool a template with metadata, a version, a timeout and references to objects p.
func withReferences(p *clusterv1.MachinePool) {
	template := &p.Spec.Template
	template.Labels, template.Annotations = map[string]string{"tier": "one"}, map[string]string{"note": "old"}
	template.Spec.Version, template.Spec.Deletion.NodeDrainTimeoutSeconds = "v1.35.4", ptr.To[int32](60)
	template.Spec.InfrastructureRef = *object.Reference(poolKind, "p")
	template.Spec.Bootstrap.ConfigRef = *object.Reference(configKind, "p")
}

// withIDs gives a pool the provider IDs of Nodes, and as many replicas.
func withIDs(nodes ...string) func(*clusterv1.MachinePool) {
	return func(p *clusterv1.MachinePool) {
		for _, n := range nodes {
			p.Spec.ProviderIDList = append(p.Spec.ProviderIDList, object.ProviderID(n))
		}
		p.Spec.Replicas, p.Status.Replicas = ptr.To(int32(len(nodes))), ptr.To(int32(len(nodes)))
	}
}

// withNodes gives a pool references to Nodes.
func withNodes(nodes ...string) func(*clusterv1.MachinePool) {
	return func(p *clusterv1.MachinePool) { p.Status.NodeRefs = append(p.Status.NodeRefs, refsTo(nodes...)...) }
}

// failureOf returns the terminal failure of a pool; empty if there is none.
func failureOf(p *clusterv1.MachinePool) string {
	older := p.GetV1Beta1Status()
	if older.FailureReason == nil {
		return ""
	}
	return *older.FailureReason + ": " + *older.FailureMessage
}

func refsTo(nodes ...string) []corev1.ObjectReference {
	var out []corev1.ObjectReference
	for _, n := range nodes {
		out = append(out, corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n, UID: object.UID("Node", n)})
	}
	return out
}

// provided returns an object p of a provider that the pool controls.
func provided(kind schema.GroupVersionKind, f fields) *unstructured.Unstructured {
	return object.ControlledBy(build.Provided(kind, "p", f), pool())
}

// infraWith returns the infrastructure object with the provider IDs of Nodes.
func infraWith(nodes ...string) *unstructured.Unstructured {
	var ids []any
	for _, n := range nodes {
		ids = append(ids, object.ProviderID(n))
	}
	return provided(poolKind, fields{"spec": fields{"providerIDList": ids}, "status": fields{"ready": true, "replicas": int64(len(nodes))}})
}

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}
