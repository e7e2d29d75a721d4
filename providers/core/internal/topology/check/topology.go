package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// entry has what the topologies of MachineDeployments and MachinePools have in common.
type entry struct {
	name, class string
	metadata    *clusterv1.ObjectMeta
	path        *field.Path
}

func deploymentEntries(t *clusterv1.Topology, path *field.Path) []entry {
	var out []entry
	for i := range t.Workers.MachineDeployments {
		md := &t.Workers.MachineDeployments[i]
		out = append(out, entry{md.Name, md.Class, &md.Metadata, path.Child("workers", "machineDeployments").Index(i)})
	}
	return out
}

func poolEntries(t *clusterv1.Topology, path *field.Path) []entry {
	var out []entry
	for i := range t.Workers.MachinePools {
		mp := &t.Workers.MachinePools[i]
		out = append(out, entry{mp.Name, mp.Class, &mp.Metadata, path.Child("workers", "machinePools").Index(i)})
	}
	return out
}

// Topology validates a topology without its class; path is the path of the topology.
func Topology(t *clusterv1.Topology, path *field.Path) field.ErrorList {
	errs := Metadata(&t.ControlPlane.Metadata, path.Child("controlPlane", "metadata"))
	errs = append(errs, entries(deploymentEntries(t, path))...)
	return append(errs, entries(poolEntries(t, path))...)
}

func entries(all []entry) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for _, e := range all {
		errs = append(errs, Metadata(e.metadata, e.path.Child("metadata"))...)
		at := e.path.Child("name")
		if e.name == "" {
			errs = append(errs, field.Required(at, "the name is required"))
			continue
		}
		for _, problem := range validation.IsValidLabelValue(e.name) {
			errs = append(errs, field.Invalid(at, e.name, "must be a valid label value: "+problem))
		}
		if seen[e.name] {
			errs = append(errs, field.Duplicate(at, e.name))
		}
		seen[e.name] = true
	}
	return errs
}

// TopologyOf validates a topology against its class, except for variables; path is the path of the topology.
func TopologyOf(t *clusterv1.Topology, class *clusterv1.ClusterClass, path *field.Path) field.ErrorList {
	deployments, pools := machineDeployments(class), machinePools(class)
	errs := undefined(deploymentEntries(t, path), deployments, class)
	errs = append(errs, undefined(poolEntries(t, path), pools, class)...)

	cp, at := &class.Spec.ControlPlane, path.Child("controlPlane", "healthCheck")
	check := ofControlPlane(&t.ControlPlane.HealthCheck)
	if check.own.IsDefined() && !cp.MachineInfrastructure.TemplateRef.IsDefined() {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf(
			"requires machineInfrastructure in the control plane of ClusterClass %q: without it there are no Machines to check", class.Name)))
	}
	errs = append(errs, check.validate(cp.HealthCheck.IsDefined(), at)...)
	for i := range t.Workers.MachineDeployments {
		md := &t.Workers.MachineDeployments[i]
		inClass := false
		for j := range deployments {
			inClass = inClass || deployments[j].class == md.Class && deployments[j].healthCheck.IsDefined()
		}
		errs = append(errs, ofDeployment(&md.HealthCheck).validate(inClass,
			path.Child("workers", "machineDeployments").Index(i).Child("healthCheck"))...)
	}
	return errs
}

// undefined reports entries whose class of workers is not defined.
func undefined(all []entry, classes []workerClass, class *clusterv1.ClusterClass) field.ErrorList {
	known := map[string]bool{}
	for i := range classes {
		known[classes[i].class] = true
	}
	var errs field.ErrorList
	for _, e := range all {
		if !known[e.class] {
			errs = append(errs,
				field.Invalid(e.path.Child("class"), e.class, fmt.Sprintf("ClusterClass %q does not define this class of workers", class.Name)))
		}
	}
	return errs
}
