package machine

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/drain"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	now   = object.Now()
	build object.Builder
	// withNode gives a Machine the Node that node returns.
	withNode = object.WithNode("node-1")
)

const (
	id             = "test:///node-1"
	infrastructure = "infrastructure.cluster.x-k8s.io"
	bootstrapping  = "bootstrap.cluster.x-k8s.io"
)

// world is a Controller with a fake management cluster and a fake workload cluster.
type world struct {
	*fakeapi.Server
	*Controller
	workload *fakeapi.Workload
	// left is the result of attempts to drain, drainFails their error, and drained their number.
	left        drain.Left
	drainFails  error
	volumesFail error
	drained     int
	// rules are those of the last attempt.
	rules drain.Rules
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	for _, kind := range []schema.GroupVersionKind{kindOf("GenericMachine", infrastructure), kindOf("GenericConfig", bootstrapping), kindOf("GenericControlPlane", "controlplane.cluster.x-k8s.io")} {
		objects = append(objects, object.CRD(kind))
	}
	w := &world{Server: fakeapi.New(t, fakeapi.Options{Objects: objects, Indexes: indexes()})}
	w.workload = w.NewWorkload(t)
	clients := w.ForController()
	w.Controller = &Controller{
		Clients: clients, workloads: w.workload, drainer: w, follow: fakeapi.Follower(t, clients, &clusterv1.MachineList{}),
	}
	return w
}

// step runs one step.
func (w *world) step(t *testing.T, name string, s *scope) (step.Result, error) {
	t.Helper()
	return steptest.Run(t.Context(), s.machine, s, w.declared().Step(name))
}

// Drain implements drainer.
func (w *world) Drain(_ context.Context, _ *remote.Cluster, _ *corev1.Node, rules drain.Rules) (drain.Left, error) {
	w.drained++
	w.rules = rules
	return w.left, w.drainFails
}

// Volumes implements drainer: what the Node reports, without Pods.
func (w *world) Volumes(_ context.Context, _ *remote.Cluster, node *corev1.Node, _ drain.Rules) ([]string, error) {
	var attached []string
	for _, v := range node.Status.VolumesAttached {
		attached = append(attached, string(v.Name))
	}
	return attached, w.volumesFail
}

func kindOf(kind, group string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// provided returns an object m-1 of a provider, controlled by owner unless that is nil.
func provided(kind, group string, owner *clusterv1.Machine, f fields) *unstructured.Unstructured {
	u := build.Provided(kindOf(kind, group), "m-1", f)
	if owner == nil {
		return u
	}
	return object.ControlledBy(u, owner)
}

type fields = object.Fields

func infraMachine(f fields) *unstructured.Unstructured {
	return provided("GenericMachine", infrastructure, machine(), f)
}

func config(f fields) *unstructured.Unstructured {
	return provided("GenericConfig", bootstrapping, machine(), f)
}

// machine returns Machine m-1 of Cluster c, changed by with.
func machine(with ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := build.Machine("m-1", func(m *clusterv1.Machine) {
		m.Labels[clusterv1.MachineSetNameLabel] = "set"
		m.Spec.InfrastructureRef = *object.Reference(kindOf("GenericMachine", infrastructure), "m-1")
		m.Spec.Bootstrap.ConfigRef = *object.Reference(kindOf("GenericConfig", bootstrapping), "m-1")
	})
	for _, f := range with {
		f(m)
	}
	return m
}

func withProviderID(m *clusterv1.Machine) { m.Spec.ProviderID = id }

// deleting makes a Machine one that is being deleted for a second.
func deleting(m *clusterv1.Machine) {
	object.Deleting(m)
	m.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Second)}
}

func annotated(key, value string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) }
}

func named(name string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Name, m.UID = name, object.UID(clusterv1.MachineKind, name) }
}

func node(with ...func(*corev1.Node)) *corev1.Node { return object.Node("node-1", with...) }

// older returns the status that only v1beta1 has, with conditions.
func older(conditions clusterv1.Conditions) *clusterv1.MachineDeprecatedStatus {
	return &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: conditions}}
}

// failed is older, with a failure; an empty reason or message is not set.
func failed(reason, message string, conditions clusterv1.Conditions) *clusterv1.MachineDeprecatedStatus {
	status := older(conditions)
	if reason != "" {
		status.V1Beta1.FailureReason = &reason
	}
	if message != "" {
		status.V1Beta1.FailureMessage = &message
	}
	return status
}
