package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxNames is how many Clusters an error lists.
const maxNames = 5

// Removes reports whether a change of a class removes anything that Clusters may use, or lets an autoscaler determine replicas that they
// may set. If so, check Removals.
func Removes(old, current *clusterv1.ClusterClass) bool {
	return removesMachines(old, current) || removesVersions(old, current) ||
		removesCheck(&old.Spec.ControlPlane.HealthCheck, &current.Spec.ControlPlane.HealthCheck) ||
		removesFrom(machineDeployments(old), machineDeployments(current)) || removesFrom(machinePools(old), machinePools(current)) ||
		len(newlyAutoscaled(old, current)) > 0
}

func removesMachines(old, current *clusterv1.ClusterClass) bool {
	was, is := &old.Spec.ControlPlane.MachineInfrastructure.TemplateRef, &current.Spec.ControlPlane.MachineInfrastructure.TemplateRef
	return was.IsDefined() && !is.IsDefined()
}

func removesCheck(old, current *clusterv1.ControlPlaneClassHealthCheck) bool {
	return old.IsDefined() && !current.IsDefined()
}

func removesFrom(old, current []workerClass) bool {
	return slices.ContainsFunc(old, func(was workerClass) bool {
		i := slices.IndexFunc(current, func(is workerClass) bool { return is.class == was.class })
		return i < 0 || removesCheck(&was.healthCheck, &current[i].healthCheck)
	})
}

// Removals reports what a change of a class removes although Clusters use it: machines of the control plane, classes of workers,
// Kubernetes versions, and MachineHealthChecks that Clusters enable without a definition of their own. It also reports annotations of the
// autoscaler that are added to classes of MachineDeployments whose replicas Clusters set.
func Removals(old, current *clusterv1.ClusterClass, clusters []clusterv1.Cluster) field.ErrorList {
	path := field.NewPath("spec", "workers")
	errs := removedClasses(machineDeployments(old), machineDeployments(current), clusters, deploymentClasses, path.Child("machineDeployments"))
	errs = append(errs, removedClasses(machinePools(old), machinePools(current), clusters, poolClasses, path.Child("machinePools"))...)
	if users := using(clusters, func(*clusterv1.Topology) bool { return true }); removesMachines(old, current) && len(users) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "controlPlane", "machineInfrastructure"),
			"cannot be removed: Clusters use it: "+listed(users)))
	}
	errs = append(errs, removedVersions(old, current, clusters)...)
	errs = append(errs, removedControlPlaneCheck(old, current, clusters)...)
	errs = append(errs, removedWorkerChecks(machineDeployments(current), clusters, machineDeployments(old))...)
	return append(errs, addedAutoscaling(old, current, clusters)...)
}

func deploymentClasses(w *clusterv1.WorkersTopology) []string {
	var out []string
	for i := range w.MachineDeployments {
		out = append(out, w.MachineDeployments[i].Class)
	}
	return out
}

func poolClasses(w *clusterv1.WorkersTopology) []string {
	var out []string
	for i := range w.MachinePools {
		out = append(out, w.MachinePools[i].Class)
	}
	return out
}

func removedClasses(
	old, current []workerClass, clusters []clusterv1.Cluster, used func(*clusterv1.WorkersTopology) []string, path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	for i := range old {
		class := old[i].class
		if slices.ContainsFunc(current, func(m workerClass) bool { return m.class == class }) {
			continue
		}
		users := using(clusters, func(t *clusterv1.Topology) bool { return slices.Contains(used(&t.Workers), class) })
		if len(users) > 0 {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("class %q cannot be removed: Clusters use it: %s", class, listed(users))))
		}
	}
	return errs
}

func removedControlPlaneCheck(old, current *clusterv1.ClusterClass, clusters []clusterv1.Cluster) field.ErrorList {
	if !removesCheck(&old.Spec.ControlPlane.HealthCheck, &current.Spec.ControlPlane.HealthCheck) {
		return nil
	}
	users := using(clusters, func(t *clusterv1.Topology) bool { return ofControlPlane(&t.ControlPlane.HealthCheck).requiresClass() })
	if len(users) == 0 {
		return nil
	}
	return field.ErrorList{removedCheck(field.NewPath("spec", "controlPlane"), users)}
}

func removedWorkerChecks(current []workerClass, clusters []clusterv1.Cluster, old []workerClass) field.ErrorList {
	var errs field.ErrorList
	for i := range current {
		class := current[i].class
		had := slices.ContainsFunc(old, func(m workerClass) bool { return m.class == class && m.healthCheck.IsDefined() })
		if !had || current[i].healthCheck.IsDefined() {
			continue
		}
		users := using(clusters, func(t *clusterv1.Topology) bool {
			return slices.ContainsFunc(t.Workers.MachineDeployments, func(md clusterv1.MachineDeploymentTopology) bool {
				return md.Class == class && ofDeployment(&md.HealthCheck).requiresClass()
			})
		})
		if len(users) > 0 {
			errs = append(errs, removedCheck(current[i].path, users))
		}
	}
	return errs
}

func removedCheck(path *field.Path, users []string) *field.Error {
	return field.Forbidden(path.Child("healthCheck"), fmt.Sprintf(
		"cannot be removed: Clusters enable it without a definition of their own: %s", listed(users)))
}

// using returns the sorted names of the Clusters whose topology satisfies uses, as <namespace>/<name> if their class is in another
// namespace.
func using(clusters []clusterv1.Cluster, uses func(*clusterv1.Topology) bool) []string {
	return usingIn(clusters, func(c *clusterv1.Cluster) bool { return uses(&c.Spec.Topology) })
}

// usingIn is using for what depends on more than the topology.
func usingIn(clusters []clusterv1.Cluster, uses func(*clusterv1.Cluster) bool) []string {
	var out []string
	for i := range clusters {
		if clusters[i].Spec.Topology.IsDefined() && uses(&clusters[i]) {
			name := clusters[i].Name
			if clusters[i].GetClassKey().Namespace != clusters[i].Namespace {
				name = clusters[i].Namespace + "/" + name
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func listed(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

// Unused returns an error if Clusters use a class, so that it cannot be deleted.
func Unused(clusters []clusterv1.Cluster) error {
	if len(clusters) == 0 {
		return nil
	}
	users := using(clusters, func(*clusterv1.Topology) bool { return true })
	return fmt.Errorf("the ClusterClass cannot be deleted: Clusters use it: %s; delete them or change them to another class first",
		listed(users))
}
