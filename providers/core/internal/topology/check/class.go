package check

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/providers/internal/nametemplate"
)

// Ready returns an error if a class is not ready, because its status is not up to date.
func Ready(class *clusterv1.ClusterClass) error {
	if class.Status.ObservedGeneration != class.Generation {
		return fmt.Errorf("ClusterClass %s/%s has changed and has not been reconciled yet", class.Namespace, class.Name)
	}
	for i := range class.GetV1Beta1Conditions() {
		c := &class.GetV1Beta1Conditions()[i]
		if c.Type != clusterv1.ClusterClassVariablesReconciledV1Beta1Condition {
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
	bootstrap, infrastructure *clusterv1.ClusterClassTemplateReference
	healthCheck               clusterv1.ControlPlaneClassHealthCheck
	naming                    string
	name                      names.Strategy
	path                      *field.Path
}

func machineDeployments(class *clusterv1.ClusterClass) []workerClass {
	var out []workerClass
	for i := range class.Spec.Workers.MachineDeployments {
		c := &class.Spec.Workers.MachineDeployments[i]
		out = append(out, workerClass{
			class:          c.Class,
			metadata:       &c.Metadata,
			bootstrap:      &c.Bootstrap.TemplateRef,
			infrastructure: &c.Infrastructure.TemplateRef,
			healthCheck:    WorkersHealthCheck(c.HealthCheck.Checks, c.HealthCheck.Remediation),
			naming:         c.Naming.Template,
			name:           names.MachineDeploymentStrategy,
			path:           field.NewPath("spec", "workers", "machineDeployments").Index(i),
		})
	}
	return out
}

func machinePools(class *clusterv1.ClusterClass) []workerClass {
	var out []workerClass
	for i := range class.Spec.Workers.MachinePools {
		c := &class.Spec.Workers.MachinePools[i]
		out = append(out, workerClass{
			class:          c.Class,
			metadata:       &c.Metadata,
			bootstrap:      &c.Bootstrap.TemplateRef,
			infrastructure: &c.Infrastructure.TemplateRef,
			naming:         c.Naming.Template,
			name:           names.MachinePoolStrategy,
			path:           field.NewPath("spec", "workers", "machinePools").Index(i),
		})
	}
	return out
}

// Class validates a class, except for its variables and patches.
func Class(class *clusterv1.ClusterClass) field.ErrorList {
	spec := field.NewPath("spec")
	errs := template(&class.Spec.Infrastructure.TemplateRef, spec.Child("infrastructure"))
	errs = append(errs, naming(class.Spec.Infrastructure.Naming.Template, names.InfrastructureStrategy, spec.Child("infrastructure"))...)
	errs = append(errs, controlPlane(&class.Spec.ControlPlane, spec.Child("controlPlane"))...)
	errs = append(errs, workers(machineDeployments(class))...)
	errs = append(errs, workers(machinePools(class))...)
	return append(errs, classVersions(class.Spec.KubernetesVersions, spec.Child("kubernetesVersions"))...)
}

func controlPlane(cp *clusterv1.ControlPlaneClass, path *field.Path) field.ErrorList {
	errs := template(&cp.TemplateRef, path)
	errs = append(errs, Metadata(&cp.Metadata, path.Child("metadata"))...)
	hasMachines := cp.MachineInfrastructure.TemplateRef.IsDefined()
	if hasMachines {
		errs = append(errs, template(&cp.MachineInfrastructure.TemplateRef, path.Child("machineInfrastructure"))...)
	}
	if cp.HealthCheck.IsDefined() {
		at := path.Child("healthCheck")
		if !hasMachines {
			errs = append(errs, field.Forbidden(at, "requires machineInfrastructure: a control plane without it has no Machines to check"))
		}
		errs = append(errs, HealthCheck(&cp.HealthCheck, at)...)
	}
	return append(errs, naming(cp.Naming.Template, names.ControlPlaneStrategy, path)...)
}

func workers(classes []workerClass) field.ErrorList {
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
		errs = append(errs, Metadata(m.metadata, m.path.Child("metadata"))...)
		errs = append(errs, template(m.bootstrap, m.path.Child("bootstrap"))...)
		errs = append(errs, template(m.infrastructure, m.path.Child("infrastructure"))...)
		if m.healthCheck.IsDefined() {
			errs = append(errs, HealthCheck(&m.healthCheck, m.path.Child("healthCheck"))...)
		}
		errs = append(errs, naming(m.naming, m.name, m.path)...)
	}
	return errs
}

// naming validates the template of names, if there is one, by computing a sample name.
func naming(source string, name names.Strategy, path *field.Path) field.ErrorList {
	if source == "" {
		return nil
	}
	sample, err := name(source, names.Sample())
	return nametemplate.Check(source, sample, err, path.Child("naming", "template"))
}

// CompatibleClasses reports the differences between two classes, or two versions of a class, that prevent Clusters from
// changing from one to the other. Bootstrap templates may differ.
func CompatibleClasses(old, current *clusterv1.ClusterClass) field.ErrorList {
	spec := field.NewPath("spec")
	errs := compatible(&old.Spec.Infrastructure.TemplateRef, &current.Spec.Infrastructure.TemplateRef, spec.Child("infrastructure"))
	was, is := &old.Spec.ControlPlane, &current.Spec.ControlPlane
	at := spec.Child("controlPlane")
	errs = append(errs, compatible(&was.TemplateRef, &is.TemplateRef, at)...)
	errs = append(errs, compatible(&was.MachineInfrastructure.TemplateRef, &is.MachineInfrastructure.TemplateRef,
		at.Child("machineInfrastructure"))...)
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
			errs = append(errs, compatible(was.infrastructure, current[i].infrastructure, current[i].path.Child("infrastructure"))...)
		}
	}
	return errs
}
