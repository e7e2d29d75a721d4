package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// Kinds that explain reads in addition to those of a tree.
var (
	ClaimKind       = ipamv1beta1.GroupVersion.WithKind("IPAddressClaim")
	ResourceSetKind = addonsv1beta1.GroupVersion.WithKind("ClusterResourceSet")
	ClassKind       = clusterv1beta1.GroupVersion.WithKind("ClusterClass")
)

// Input is what Explain considers.
type Input struct {
	Cluster types.NamespacedName
	// Objects are those of the Cluster's tree with every option, its ClusterClass, and the ClusterResourceSets and
	// IPAddressClaims of its namespace.
	Objects *tree.Objects
	// Providers are the Deployments of providers in all namespaces, and Pods those of the Deployments that are not available.
	Providers []appsv1.Deployment
	Pods      []corev1.Pod
	// PodEvents are warnings about Pods whose containers are not created.
	PodEvents []corev1.Event
	// NoManagers is set if no provider is installed, and no manager runs elsewhere.
	NoManagers bool
	// ProviderOf has the provider of each kind, the value of label cluster.x-k8s.io/provider of its CustomResourceDefinition.
	ProviderOf map[schema.GroupKind]string
	// NoKind lists kinds that the API server does not serve.
	NoKind map[schema.GroupKind]bool
	// Operation is the operation of the fleet provider on the control plane; nil if there is none, or it could not be read.
	Operation *unstructured.Unstructured
	// ClassRead is set if the ClusterClass could be read: it does not exist if it is not among the objects.
	ClassRead bool
	// Events are warnings in the Cluster's namespace.
	Events []corev1.Event
	// Unread is copied into the Report.
	Unread []string
	Now    time.Time
}

// view is the Input with what several rules need.
type view struct {
	Input
	cluster *unstructured.Unstructured
	// machines has the control plane Machines first, then the oldest.
	machines []*unstructured.Unstructured
	// tree is every object of the Cluster, without those of the namespace that only may belong to it.
	tree    []*unstructured.Unstructured
	byUID   map[types.UID]*unstructured.Unstructured
	parents map[*unstructured.Unstructured]*unstructured.Unstructured
}

func newView(in Input) *view {
	v := &view{
		Input: in, cluster: in.Objects.Cluster(in.Cluster), machines: in.Objects.Of(tree.MachineKind, in.Cluster),
		byUID: map[types.UID]*unstructured.Unstructured{}, parents: map[*unstructured.Unstructured]*unstructured.Unstructured{},
	}
	slices.SortStableFunc(v.machines, older)
	all := in.Objects.All()
	for _, u := range all {
		if uid := u.GetUID(); uid != "" {
			v.byUID[uid] = u
		}
	}
	for _, r := range tree.References(in.Cluster, in.Objects) {
		if u := in.Objects.Get(r.Kind.GroupKind(), r.Name); u != nil {
			v.parents[u] = r.From
		}
	}
	for _, u := range all {
		if u.GetKind() == tree.ClusterKind.Kind && u != v.cluster {
			continue
		}
		if v.parents[u] == nil && u != v.cluster {
			v.parents[u] = v.ownerOf(u)
		}
		if u == v.cluster || v.parents[u] != nil || u.GetLabels()[clusterv1.ClusterNameLabel] == in.Cluster.Name {
			v.tree = append(v.tree, u)
		}
	}
	slices.SortStableFunc(v.tree, older)
	return v
}

// older sorts control plane Machines first, then by creation and name.
func older(a, b *unstructured.Unstructured) int {
	worker := func(u *unstructured.Unstructured) int {
		if isControlPlane(u) {
			return 0
		}
		return 1
	}
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(cmp.Compare(worker(a), worker(b)), at.Compare(bt.Time), cmp.Compare(a.GetName(), b.GetName()))
}

func isControlPlane(u *unstructured.Unstructured) bool {
	_, ok := u.GetLabels()[clusterv1.MachineControlPlaneLabel]
	return ok
}

// ownerOf returns the object's controller, or else another owner, among the objects.
func (v *view) ownerOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	var owner *unstructured.Unstructured
	for _, ref := range u.GetOwnerReferences() {
		found := v.byUID[ref.UID]
		if found == nil {
			continue
		}
		if ref.Controller != nil && *ref.Controller {
			return found
		}
		owner = cmp.Or(owner, found)
	}
	return owner
}

// deleting reports whether the Cluster is being deleted, or no longer exists.
func (v *view) deleting() bool { return v.cluster == nil || v.cluster.GetDeletionTimestamp() != nil }

func (v *view) resolve(u *unstructured.Unstructured, path ...string) *unstructured.Unstructured {
	return v.Objects.Resolve(u, path...)
}

func (v *view) infrastructureOf(m *unstructured.Unstructured) *unstructured.Unstructured {
	return v.resolve(m, "spec", "infrastructureRef")
}

func (v *view) bootstrapOf(m *unstructured.Unstructured) *unstructured.Unstructured {
	return v.resolve(m, "spec", "bootstrap", "configRef")
}

func (v *view) controlPlane() *unstructured.Unstructured {
	return v.resolve(v.cluster, "spec", "controlPlaneRef")
}

// age is how long ago an object was created.
func (v *view) age(u *unstructured.Unstructured) time.Duration {
	created := u.GetCreationTimestamp()
	return v.Now.Sub(created.Time)
}

// failing returns the condition if it is not True, and nil if it is, or does not exist.
func failing[T ~string](u *unstructured.Unstructured, t T) *tree.Condition {
	if u == nil {
		return nil
	}
	if c := tree.ConditionOf(u, string(t)); c != nil && c.Status != "True" {
		return c
	}
	return nil
}

// why returns the reason and the message of a condition.
func why(c *tree.Condition) string { return strings.TrimSuffix(c.Reason+": "+c.Message, ": ") }

// text returns the message of a condition, or its state if it has none.
func text(c *tree.Condition) string { return cmp.Or(strings.TrimSpace(c.Message), conditionState(c)) }

// severe reports whether a condition is False with severity Warning or Error.
func severe(c *tree.Condition) bool {
	return c != nil && c.Status == "False" && (c.Severity == "Error" || c.Severity == "Warning")
}

func since(c *tree.Condition) *metav1.Time {
	if c == nil || c.Since.IsZero() {
		return nil
	}
	return &metav1.Time{Time: c.Since}
}
