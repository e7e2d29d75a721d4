package check

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
)

// Ready returns an error if a class is not ready, because its status is not up to date.
func Ready(class *clusterv1.ClusterClass) error {
	if class.Status.ObservedGeneration != class.Generation {
		return fmt.Errorf("ClusterClass %s/%s has changed and has not been reconciled yet", class.Namespace, class.Name)
	}
	for i := range class.Status.Conditions {
		c := &class.Status.Conditions[i]
		if c.Type != clusterv1.ClusterClassVariablesReconciledCondition {
			continue
		}
		if c.Status == corev1.ConditionFalse {
			why := strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
			return fmt.Errorf("ClusterClass %s/%s: its variables could not be discovered: %s", class.Namespace, class.Name, why)
		}
		return nil
	}
	return fmt.Errorf("ClusterClass %s/%s has not been reconciled yet", class.Namespace, class.Name)
}

// workerClass has what the classes of MachineDeployments and MachinePools have in common.
type workerClass struct {
	class                     string
	metadata                  *clusterv1.ObjectMeta
	bootstrap, infrastructure *clusterv1.LocalObjectTemplate
	healthCheck               *clusterv1.MachineHealthCheckClass
	naming                    *string
	name                      names.Strategy
	path                      *field.Path
}

func machineDeployments(class *clusterv1.ClusterClass) []workerClass {
	var out []workerClass
	for i := range class.Spec.Workers.MachineDeployments {
		c := &class.Spec.Workers.MachineDeployments[i]
		m := workerClass{
			class:          c.Class,
			metadata:       &c.Template.Metadata,
			bootstrap:      &c.Template.Bootstrap,
			infrastructure: &c.Template.Infrastructure,
			healthCheck:    c.MachineHealthCheck,
			name:           names.MachineDeploymentStrategy,
			path:           field.NewPath("spec", "workers", "machineDeployments").Index(i),
		}
		if c.NamingStrategy != nil {
			m.naming = c.NamingStrategy.Template
		}
		out = append(out, m)
	}
	return out
}

func machinePools(class *clusterv1.ClusterClass) []workerClass {
	var out []workerClass
	for i := range class.Spec.Workers.MachinePools {
		c := &class.Spec.Workers.MachinePools[i]
		m := workerClass{
			class:          c.Class,
			metadata:       &c.Template.Metadata,
			bootstrap:      &c.Template.Bootstrap,
			infrastructure: &c.Template.Infrastructure,
			name:           names.MachinePoolStrategy,
			path:           field.NewPath("spec", "workers", "machinePools").Index(i),
		}
		if c.NamingStrategy != nil {
			m.naming = c.NamingStrategy.Template
		}
		out = append(out, m)
	}
	return out
}

// Class validates a class, except for its variables and patches.
func Class(class *clusterv1.ClusterClass) field.ErrorList {
	spec := field.NewPath("spec")
	errs := template(&class.Spec.Infrastructure, class.Namespace, spec.Child("infrastructure"))
	errs = append(errs, controlPlane(class, spec.Child("controlPlane"))...)
	errs = append(errs, workers(machineDeployments(class), class.Namespace)...)
	return append(errs, workers(machinePools(class), class.Namespace)...)
}

func controlPlane(class *clusterv1.ClusterClass, path *field.Path) field.ErrorList {
	cp := &class.Spec.ControlPlane
	errs := template(&cp.LocalObjectTemplate, class.Namespace, path)
	errs = append(errs, Metadata(&cp.Metadata, path.Child("metadata"))...)
	if cp.MachineInfrastructure != nil {
		errs = append(errs, template(cp.MachineInfrastructure, class.Namespace, path.Child("machineInfrastructure"))...)
	}
	if cp.MachineHealthCheck != nil {
		at := path.Child("machineHealthCheck")
		if cp.MachineInfrastructure == nil {
			errs = append(errs, field.Forbidden(at, "requires machineInfrastructure: a control plane without it has no Machines to check"))
		}
		errs = append(errs, HealthCheck(cp.MachineHealthCheck, class.Namespace, at)...)
	}
	if cp.NamingStrategy != nil {
		errs = append(errs, naming(cp.NamingStrategy.Template, names.ControlPlaneStrategy, path)...)
	}
	return errs
}

func workers(classes []workerClass, namespace string) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range classes {
		m := &classes[i]
		if m.class == "" {
			errs = append(errs, field.Required(m.path.Child("class"), "the name of the class is required"))
		}
		if seen[m.class] {
			errs = append(errs, field.Duplicate(m.path.Child("class"), m.class))
		}
		seen[m.class] = true
		at := m.path.Child("template")
		errs = append(errs, Metadata(m.metadata, at.Child("metadata"))...)
		errs = append(errs, template(m.bootstrap, namespace, at.Child("bootstrap"))...)
		errs = append(errs, template(m.infrastructure, namespace, at.Child("infrastructure"))...)
		if m.healthCheck != nil {
			errs = append(errs, HealthCheck(m.healthCheck, namespace, m.path.Child("machineHealthCheck"))...)
		}
		errs = append(errs, naming(m.naming, m.name, m.path)...)
	}
	return errs
}

// naming validates a naming strategy by computing a sample name.
func naming(source *string, name names.Strategy, path *field.Path) field.ErrorList {
	if source == nil {
		return nil
	}
	path = path.Child("namingStrategy", "template")
	sample, err := name(source, names.Sample())
	if _, ok := errors.AsType[*gotemplate.LimitError](err); ok {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, *source, err.Error())}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(sample) {
		errs = append(errs, field.Invalid(path, *source, fmt.Sprintf("yields invalid names such as %q: %s", sample, problem)))
	}
	return errs
}

// CompatibleClasses reports the differences between two classes, or two versions of a class, that prevent Clusters from
// changing from one to the other. Bootstrap templates may differ.
func CompatibleClasses(old, current *clusterv1.ClusterClass) field.ErrorList {
	spec := field.NewPath("spec")
	errs := compatible(&old.Spec.Infrastructure, &current.Spec.Infrastructure, spec.Child("infrastructure"))
	was, is := &old.Spec.ControlPlane, &current.Spec.ControlPlane
	at := spec.Child("controlPlane")
	errs = append(errs, compatible(&was.LocalObjectTemplate, &is.LocalObjectTemplate, at)...)
	if was.MachineInfrastructure != nil && is.MachineInfrastructure != nil {
		errs = append(errs, compatible(was.MachineInfrastructure, is.MachineInfrastructure, at.Child("machineInfrastructure"))...)
	}
	errs = append(errs, compatibleWorkers(machineDeployments(old), machineDeployments(current))...)
	return append(errs, compatibleWorkers(machinePools(old), machinePools(current))...)
}

func compatibleWorkers(old, current []workerClass) field.ErrorList {
	var errs field.ErrorList
	byName := map[string]*workerClass{}
	for i := range old {
		byName[old[i].class] = &old[i]
	}
	for i := range current {
		if was := byName[current[i].class]; was != nil {
			errs = append(errs, compatible(was.infrastructure, current[i].infrastructure, current[i].path.Child("template", "infrastructure"))...)
		}
	}
	return errs
}
