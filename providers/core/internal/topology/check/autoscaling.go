package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// isAutoscaled reports whether annotations make an autoscaler determine the number of replicas.
func isAutoscaled(meta *clusterv1.ObjectMeta) bool {
	_, hasMin := meta.Annotations[clusterv1.AutoscalerMinSizeAnnotation]
	_, hasMax := meta.Annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	return hasMin || hasMax
}

// Autoscaling reports MachineDeployments that have replicas although annotations, here or in the class, make an autoscaler determine
// them: the topology controller would set them back. class may be nil; path is the path of the topology.
func Autoscaling(t *clusterv1.Topology, class *clusterv1.ClusterClass, path *field.Path) field.ErrorList {
	inClass := map[string]bool{}
	if class != nil {
		inClass = autoscaledClasses(class)
	}
	var errs field.ErrorList
	for i := range t.Workers.MachineDeployments {
		md := &t.Workers.MachineDeployments[i]
		where := "metadata.annotations"
		if !isAutoscaled(&md.Metadata) {
			where = "the metadata of its class in ClusterClass"
			if !inClass[md.Class] {
				continue
			}
			where += " " + class.Name
		}
		if md.Replicas != nil {
			errs = append(errs, field.Invalid(path.Child("workers", "machineDeployments").Index(i).Child("replicas"), *md.Replicas,
				fmt.Sprintf("must not be set together with the annotations of the autoscaler (%s, %s) in %s: remove one of them",
					clusterv1.AutoscalerMinSizeAnnotation, clusterv1.AutoscalerMaxSizeAnnotation, where)))
		}
	}
	return errs
}

// autoscaledClasses returns the classes of MachineDeployments with annotations of the autoscaler.
func autoscaledClasses(class *clusterv1.ClusterClass) map[string]bool {
	out := map[string]bool{}
	for i := range class.Spec.Workers.MachineDeployments {
		if c := &class.Spec.Workers.MachineDeployments[i]; isAutoscaled(&c.Metadata) {
			out[c.Class] = true
		}
	}
	return out
}

// newlyAutoscaled returns the classes of MachineDeployments that get annotations of the autoscaler by a change.
func newlyAutoscaled(old, current *clusterv1.ClusterClass) map[string]bool {
	out := autoscaledClasses(current)
	for class := range autoscaledClasses(old) {
		delete(out, class)
	}
	return out
}

// addedAutoscaling reports annotations of the autoscaler that a change adds to a class of MachineDeployments with replicas.
func addedAutoscaling(old, current *clusterv1.ClusterClass, clusters []clusterv1.Cluster) field.ErrorList {
	added := newlyAutoscaled(old, current)
	var errs field.ErrorList
	for i := range current.Spec.Workers.MachineDeployments {
		class := current.Spec.Workers.MachineDeployments[i].Class
		if !added[class] {
			continue
		}
		users := using(clusters, func(t *clusterv1.Topology) bool {
			for j := range t.Workers.MachineDeployments {
				if md := &t.Workers.MachineDeployments[j]; md.Class == class && md.Replicas != nil {
					return true
				}
			}
			return false
		})
		if len(users) > 0 {
			at := field.NewPath("spec", "workers", "machineDeployments").Index(i).Child("metadata", "annotations")
			errs = append(errs, field.Forbidden(at,
				"annotations of the autoscaler cannot be added: Clusters set replicas of this class: "+listed(users)))
		}
	}
	return errs
}
