package rollout

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// The types of resources, as in arguments of the form type/name.
const (
	MachineDeployment   = "machinedeployment"
	KubeadmControlPlane = "kubeadmcontrolplane"
	ClusterRollout      = "clusterrollout"
)

// Types returns the types of resources that have Machines.
func Types() []string { return []string{MachineDeployment, KubeadmControlPlane} }

// Pausable returns the types of resources that Pause and Resume accept.
func Pausable() []string { return append(Types(), ClusterRollout) }

// Kinds maps types of resources to their kinds.
func Kinds(types []string) map[string]schema.GroupVersionKind {
	all := map[string]schema.GroupVersionKind{
		MachineDeployment:   clusterv1beta1.GroupVersion.WithKind("MachineDeployment"),
		KubeadmControlPlane: controlplanev1beta1.GroupVersion.WithKind("KubeadmControlPlane"),
		ClusterRollout:      fleetv1.GroupVersion.WithKind("ClusterRollout"),
	}
	kinds := map[string]schema.GroupVersionKind{}
	for _, t := range types {
		kinds[t] = all[t]
	}
	return kinds
}

// Resource is an object whose rollout an operation changes.
type Resource struct {
	// Type is one of Pausable.
	Type string
	// Name is the object's name.
	Name string
}

// String returns the form that Parse accepts.
func (r Resource) String() string { return r.Type + "/" + r.Name }

// Parse reads the form type/name; types are the accepted ones. Like kubectl, it ignores the case of the type.
func Parse(argument string, types []string) (Resource, error) {
	word, name, _ := strings.Cut(strings.ToLower(argument), "/")
	if word == "" || name == "" || strings.Contains(name, "/") {
		return Resource{}, fmt.Errorf("resource %q does not have the form type/name: use %s", argument, forms(types))
	}
	if !slices.Contains(types, word) {
		return Resource{}, fmt.Errorf("resource %q has the type %q, which is not supported: use %s", argument, word, forms(types))
	}
	return Resource{Type: word, Name: name}, nil
}

// forms lists the accepted arguments for an error.
func forms(types []string) string {
	var list []string
	for _, t := range types {
		list = append(list, t+"/{name}")
	}
	return strings.Join(list, " or ")
}

// subject is an object with what the operations read and change.
type subject interface {
	client.Object
	isPaused() bool
	setPaused(bool)
	rolloutAfter() *metav1.Time
	setRolloutAfter(metav1.Time)
	// object is the value to read and patch.
	object() client.Object
}

func (r Resource) subject() subject {
	switch r.Type {
	case KubeadmControlPlane:
		return &controlPlane{}
	case ClusterRollout:
		return &clusterRollout{}
	}
	return &deployment{}
}

// clusterRollout is only paused and resumed: it has no Machines.
type clusterRollout struct {
	fleetv1.ClusterRollout
}

func (r *clusterRollout) object() client.Object       { return &r.ClusterRollout }
func (r *clusterRollout) isPaused() bool              { return ptr.Deref(r.Spec.Paused, false) }
func (r *clusterRollout) rolloutAfter() *metav1.Time  { return nil }
func (r *clusterRollout) setRolloutAfter(metav1.Time) {}

func (r *clusterRollout) setPaused(paused bool) {
	r.Spec.Paused = nil
	if paused {
		r.Spec.Paused = &paused
	}
}

type deployment struct {
	clusterv1beta1.MachineDeployment
}

func (d *deployment) object() client.Object         { return &d.MachineDeployment }
func (d *deployment) isPaused() bool                { return d.Spec.Paused }
func (d *deployment) setPaused(paused bool)         { d.Spec.Paused = paused }
func (d *deployment) rolloutAfter() *metav1.Time    { return d.Spec.RolloutAfter }
func (d *deployment) setRolloutAfter(t metav1.Time) { d.Spec.RolloutAfter = &t }

type controlPlane struct {
	controlplanev1beta1.KubeadmControlPlane
}

func (c *controlPlane) object() client.Object         { return &c.KubeadmControlPlane }
func (c *controlPlane) rolloutAfter() *metav1.Time    { return c.Spec.RolloutAfter }
func (c *controlPlane) setRolloutAfter(t metav1.Time) { c.Spec.RolloutAfter = &t }

// isPaused reports whether the annotation is set, whatever its value.
func (c *controlPlane) isPaused() bool {
	_, paused := c.Annotations[clusterv1beta1.PausedAnnotation]
	return paused
}

func (c *controlPlane) setPaused(paused bool) {
	if !paused {
		delete(c.Annotations, clusterv1beta1.PausedAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1beta1.PausedAnnotation, "true")
}
