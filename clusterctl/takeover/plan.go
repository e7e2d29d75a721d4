package takeover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Objects are those of a management cluster that matter for another version.
type Objects struct {
	// Metadata are Clusters, Machines, MachineSets and MachineDeployments, with their kinds.
	Metadata []metav1.PartialObjectMetadata
	// Stored are the versions in which objects may be stored, by the name of their definition.
	Stored map[string][]string
	// ServesV1Beta2 is whether a definition serves v1beta2.
	ServesV1Beta2 bool
	// Managers are those of the core provider and the kubeadm providers.
	Managers []Manager
	// Led is since when the present leader of the control plane managers leads; nil if there is none.
	Led *metav1.MicroTime
}

// Manager is a Deployment of a manager.
type Manager struct {
	Namespace, Name, Image string
	// RolledOut is whether all replicas have this image, and one serves webhooks.
	RolledOut bool
}

// Change is what has to be removed from an object.
type Change struct {
	Object *metav1.PartialObjectMetadata
	// Annotations and Finalizers are keys to remove.
	Annotations, Finalizers []string
}

// String returns the change as "remove finalizer x from MachineSet ns/name".
func (c Change) String() string {
	var what []string
	for _, a := range c.Annotations {
		what = append(what, "annotation "+a)
	}
	for _, f := range c.Finalizers {
		what = append(what, "finalizer "+f)
	}
	return fmt.Sprintf("remove %s from %s", strings.Join(what, " and "), describe(c.Object))
}

// Plan is what a handback does.
type Plan struct {
	Changes []Change
	// Obstacles are why objects cannot be handed back now, with what to do about it.
	Obstacles []string
	// Early are why nothing can be removed before the managers of the other version run: those of this version would add it again, and
	// without any, the webhooks of what is changed have no server.
	Early []string
}

// The first versions of Cluster API that know what Machines may have.
var (
	knowsFinalizers  = semver.MustParse("1.8.0") // of MachineSets and MachineDeployments, and the hook of control plane Machines
	knowsV1Beta2     = semver.MustParse("1.11.0")
	knowsInPlace     = semver.MustParse("1.12.0") // updates in place, and upgrades by several minor versions
	oldestSupported  = semver.MustParse("1.7.0")
	newestCompatible = semver.MustParse("1.15.0") // exclusive
	oldestOurs       = semver.MustParse("2.0.0")  // of this project
)

// Target parses the version that takes over, such as "v1.7.9". It must be one whose objects are compatible: v1.7 to v1.14.
func Target(version string) (semver.Version, error) {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return v, fmt.Errorf("version %q is invalid: it must be one like v1.7.9", version)
	}
	if v.LT(oldestSupported) || v.GTE(newestCompatible) {
		return v, fmt.Errorf("version %s is not supported: it must be one from v1.7 to v1.14", version)
	}
	return v, nil
}

// HandBack returns what a version of Cluster API does not know of objects. Everything else means the same to it.
func HandBack(to semver.Version, o Objects) Plan {
	p := Plan{}
	for _, name := range slices.Sorted(maps.Keys(o.Stored)) {
		if to.LT(knowsV1Beta2) && slices.Contains(o.Stored[name], clusterv1.GroupVersion.Version) {
			p.Obstacles = append(p.Obstacles, fmt.Sprintf("objects of %s may be stored in %s, which v%s does not have: run "+
				"`clusterctl upgrade storage --storage-version v1beta1` first", name, clusterv1.GroupVersion.Version, to))
		}
	}
	for _, manager := range o.Managers {
		p.Early = append(p.Early, manager.early(to)...)
	}
	for i := range o.Metadata {
		m := &o.Metadata[i]
		p.Obstacles = append(p.Obstacles, obstacles(to, m, o.Led)...)
		if c := change(to, m); len(c.Annotations)+len(c.Finalizers) > 0 {
			p.Changes = append(p.Changes, c)
		}
	}
	return p
}

// early returns why a manager is not one of the other version that serves webhooks. Images without a version in their tag are accepted.
func (m Manager) early(to semver.Version) []string {
	name := m.Namespace + "/" + m.Name
	image, _, _ := strings.Cut(m.Image, "@")
	if tag := strings.LastIndex(image, ":"); tag > strings.LastIndex(image, "/") {
		if v, err := semver.ParseTolerant(image[tag+1:]); err == nil && v.GTE(oldestOurs) {
			return []string{fmt.Sprintf("Deployment %s runs %s: deploy v%s there", name, m.Image, to)}
		}
	}
	if !m.RolledOut {
		return []string{fmt.Sprintf("Deployment %s is not rolled out: v%s has to serve its webhooks", name, to)}
	}
	return nil
}

// obstacles returns what must end before an object is handed back. A version without the hook has removed the etcd members of Machines
// whose deletion has begun under its own leader.
func obstacles(to semver.Version, m *metav1.PartialObjectMetadata, led *metav1.MicroTime) []string {
	has := func(annotation string) bool { return metav1.HasAnnotation(m.ObjectMeta, annotation) }
	unsupported := func(what, advice string) []string {
		return []string{fmt.Sprintf("%s %s, which v%s does not support: %s", describe(m), what, to, advice)}
	}
	switch {
	case to.LT(knowsInPlace) && m.Kind == clusterv1.ClusterKind && has(clusterv1.ClusterTopologyUpgradeStepAnnotation):
		return unsupported("is being upgraded by several minor versions", "wait until the upgrade is complete")
	case to.LT(knowsInPlace) && m.Kind == clusterv1.MachineKind && has(clusterv1.UpdateInProgressAnnotation):
		return unsupported("is being updated in place", "wait until that is complete, or delete it")
	case to.LT(knowsInPlace) && m.Kind == machineSetKind && has(clusterv1.MachineSetMoveMachinesToMachineSetAnnotation):
		return unsupported("hands over Machines to be updated in place", "wait until the rollout is complete")
	case to.LT(knowsFinalizers) && m.Kind == clusterv1.MachineKind && m.DeletionTimestamp != nil &&
		has(controlplanev1.PreTerminateHookCleanupAnnotation) && (led == nil || m.DeletionTimestamp.Time.Before(led.Time)):
		return []string{describe(m) + " is being deleted, and its etcd member may not be removed yet: wait, with the managers of this version, " +
			"until it is deleted"}
	}
	return nil
}

const machineSetKind, machineDeploymentKind = "MachineSet", "MachineDeployment"

// change returns what a version would wait for without knowing it.
func change(to semver.Version, m *metav1.PartialObjectMetadata) Change {
	c := Change{Object: m}
	if to.GTE(knowsFinalizers) {
		return c
	}
	finalizer := map[string]string{
		machineSetKind: clusterv1.MachineSetFinalizer, machineDeploymentKind: clusterv1.MachineDeploymentFinalizer,
	}[m.Kind]
	if finalizer != "" && slices.Contains(m.Finalizers, finalizer) {
		c.Finalizers = []string{finalizer}
	}
	if m.Kind == clusterv1.MachineKind && metav1.HasAnnotation(m.ObjectMeta, controlplanev1.PreTerminateHookCleanupAnnotation) {
		c.Annotations = []string{controlplanev1.PreTerminateHookCleanupAnnotation}
	}
	return c
}

func describe(m *metav1.PartialObjectMetadata) string {
	return m.Kind + " " + client.ObjectKeyFromObject(m).String()
}

// NeedsGarbageCollectorRestart reports whether definitions of a version have no v1beta2. The garbage collector of kube-controller-manager
// addresses an object in the version in which it first saw it until it is restarted, and does not find those that it saw in v1beta2.
func NeedsGarbageCollectorRestart(to semver.Version) bool { return to.LT(knowsV1Beta2) }
