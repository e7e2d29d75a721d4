package object

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Deleting sets the deletion timestamp of obj to Now. Without a finalizer it gets one: that of its kind for Clusters and
// Machines, otherwise "test/deleting".
func Deleting[T client.Object](obj T) {
	at := metav1.NewTime(Now())
	obj.SetDeletionTimestamp(&at)
	if len(obj.GetFinalizers()) > 0 {
		return
	}
	finalizer := "test/deleting"
	switch any(obj).(type) {
	case *clusterv1.Cluster:
		finalizer = clusterv1.ClusterFinalizer
	case *clusterv1.Machine:
		finalizer = clusterv1.MachineFinalizer
	}
	obj.SetFinalizers([]string{finalizer})
}

// Paused pauses the Cluster.
func Paused(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) }

// PausedByAnnotation pauses an object, and nothing else, by its annotation.
func PausedByAnnotation[T client.Object](obj T) {
	annotations := map[string]string{clusterv1.PausedAnnotation: ""}
	maps.Copy(annotations, obj.GetAnnotations())
	obj.SetAnnotations(annotations)
}

// InfrastructureReady makes the infrastructure of the Cluster ready.
func InfrastructureReady(c *clusterv1.Cluster) {
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
}

// Initialized makes the control plane of the Cluster initialized.
func Initialized(c *clusterv1.Cluster) {
	condition.Set(c, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
	condition.Stamp(c, nil, Now())
}

// ControlPlane makes the Machine one of the control plane.
func ControlPlane(m *clusterv1.Machine) {
	metav1.SetMetaDataLabel(&m.ObjectMeta, clusterv1.MachineControlPlaneLabel, "")
}

// Complete gives a Machine, or an object with a template of Machines, bootstrap data and infrastructure if it has none: a real API server
// requires them.
func Complete[T client.Object](obj T) {
	var spec *clusterv1.MachineSpec
	switch obj := any(obj).(type) {
	case *clusterv1.Machine:
		spec = &obj.Spec
	case *clusterv1.MachineSet:
		spec = &obj.Spec.Template.Spec
	case *clusterv1.MachineDeployment:
		spec = &obj.Spec.Template.Spec
	case *clusterv1.MachinePool:
		spec = &obj.Spec.Template.Spec
	default:
		panic(fmt.Sprintf("%T has no spec of a Machine", obj))
	}
	if spec.Bootstrap.DataSecretName == nil && !spec.Bootstrap.ConfigRef.IsDefined() {
		spec.Bootstrap.DataSecretName = ptr.To("data")
	}
	if !spec.InfrastructureRef.IsDefined() {
		spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "GenericInfrastructure", Name: "infra",
		}
	}
}

// WithNode gives the Machine the Node that Node returns.
func WithNode(name string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		id := ProviderID(name)
		m.Spec.ProviderID = id
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: name}
	}
}

// Running gives the Machine the status of one whose infrastructure is ready, and whose Node of the same name is healthy since at.
func Running(at time.Time) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		before := m.GetV1Beta1Conditions()
		condition.Set(m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
		condition.Set(m, condition.True(clusterv1.ReadyV1Beta1Condition))
		condition.Stamp(m, before, at)
		for t, reason := range map[string]string{
			clusterv1.ReadyCondition: clusterv1.ReadyReason, clusterv1.AvailableCondition: clusterv1.AvailableReason,
		} {
			report.Set(m, m.Generation, at, report.True(t, reason, ""))
		}
	}
}

// ProviderID returns the provider ID of a Node.
func ProviderID(node string) string { return "test:///" + node }

// Node returns a Node of a workload cluster.
func Node(name string, with ...func(*corev1.Node)) *corev1.Node {
	return changed(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: UID("Node", name)}, Spec: corev1.NodeSpec{ProviderID: ProviderID(name)},
	}, with)
}

// ControlledBy makes owner the controller of obj, and returns obj. The kind of owner is taken from its TypeMeta, which only objects of
// Cluster API's core group may lack.
func ControlledBy[T client.Object](obj T, owner client.Object) T {
	kind := owner.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		scheme := runtime.NewScheme()
		err := clusterv1.AddToScheme(scheme)
		if err == nil {
			kind, err = apiutil.GVKForObject(owner, scheme)
		}
		if err != nil {
			panic(fmt.Sprintf("the owner %T has no kind: %v", owner, err))
		}
	}
	obj.SetOwnerReferences([]metav1.OwnerReference{ownership.Reference(owner, kind, true)})
	return obj
}

// State returns a condition of an object in short: status, severity, reason and message; empty if there is none.
func State(on condition.Getter, t clusterv1.ConditionType) string {
	c := condition.Get(on, t)
	if c == nil {
		return ""
	}
	parts := []string{string(c.Status), string(c.Severity), c.Reason, c.Message}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}
