package webhook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
)

// This file has the rules for numbers that the schemas do not limit. Only those are rejected with which an object cannot work: a negative
// minReadySeconds or timeout counts as zero, as in Cluster API v1.7. Controllers compute with any number, because objects may be
// stored that were admitted before a rule existed.

const maxPort = 65535

func validateNotNegative(value *int32, path *field.Path) field.ErrorList {
	if value == nil || *value >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, "must not be negative")}
}

// validatePort accepts zero, which means that no port is set.
func validatePort(value int32, path *field.Path) field.ErrorList {
	if value >= 0 && value <= maxPort {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be a port, at most %d", maxPort))}
}

func validateBound(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	switch n, err := bounds.Scaled(value, 100, true); {
	case err != nil:
		return field.ErrorList{field.Invalid(path, value.String(), err.Error())}
	case n < 0:
		return field.ErrorList{field.Invalid(path, value.String(), "must not be negative")}
	}
	return nil
}

// validateStrategy validates the numbers of a rollout; only rolling updates use them. path is that of the object with the rollout.
func validateStrategy(strategy *clusterv1.MachineDeploymentRolloutStrategy, path *field.Path) field.ErrorList {
	if strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		return nil
	}
	path = path.Child("rollout", "strategy", "rollingUpdate")
	return append(validateBound(strategy.RollingUpdate.MaxSurge, path.Child("maxSurge")),
		validateBound(strategy.RollingUpdate.MaxUnavailable, path.Child("maxUnavailable"))...)
}

// validateRemediation validates the number of a health check; path is that of the object with the check.
func validateRemediation(r *clusterv1.MachineDeploymentHealthCheckRemediation, path *field.Path) field.ErrorList {
	return validateBound(r.MaxInFlight, path.Child("healthCheck", "remediation", "maxInFlight"))
}

// deploymentNumbers validates the numbers of a MachineDeployment; it may be nil.
func deploymentNumbers(md *clusterv1.MachineDeployment) field.ErrorList {
	if md == nil {
		return nil
	}
	spec := field.NewPath("spec")
	errs := validateNotNegative(md.Spec.Replicas, spec.Child("replicas"))
	errs = append(errs, validateBound(md.Spec.Remediation.MaxInFlight, spec.Child("remediation", "maxInFlight"))...)
	return append(errs, validateStrategy(&md.Spec.Rollout.Strategy, spec)...)
}

// setNumbers validates the numbers of a MachineSet; it may be nil.
func setNumbers(set *clusterv1.MachineSet) field.ErrorList {
	if set == nil {
		return nil
	}
	return validateNotNegative(set.Spec.Replicas, field.NewPath("spec", "replicas"))
}

// poolNumbers validates the numbers of a MachinePool; it may be nil.
func poolNumbers(p *clusterv1.MachinePool) field.ErrorList {
	if p == nil {
		return nil
	}
	spec := field.NewPath("spec")
	return append(validateNotNegative(p.Spec.Replicas, spec.Child("replicas")),
		validateNotNegative(p.Spec.Template.Spec.MinReadySeconds, spec.Child("template", "spec", "minReadySeconds"))...)
}

// clusterNumbers validates the numbers of a Cluster, which may be nil, and of its topology.
func clusterNumbers(cluster *clusterv1.Cluster) field.ErrorList {
	if cluster == nil {
		return nil
	}
	spec := field.NewPath("spec")
	errs := validatePort(cluster.Spec.ControlPlaneEndpoint.Port, spec.Child("controlPlaneEndpoint", "port"))
	errs = append(errs, validatePort(cluster.Spec.ClusterNetwork.APIServerPort, spec.Child("clusterNetwork", "apiServerPort"))...)
	topology := &cluster.Spec.Topology
	path := spec.Child("topology")
	errs = append(errs, validateNotNegative(topology.ControlPlane.Replicas, path.Child("controlPlane", "replicas"))...)
	for i := range topology.Workers.MachineDeployments {
		md, at := &topology.Workers.MachineDeployments[i], path.Child("workers", "machineDeployments").Index(i)
		errs = append(errs, validateNotNegative(md.Replicas, at.Child("replicas"))...)
		errs = append(errs, validateRemediation(&md.HealthCheck.Remediation, at)...)
		errs = append(errs, validateStrategy(&md.Rollout.Strategy, at)...)
	}
	for i := range topology.Workers.MachinePools {
		mp, at := &topology.Workers.MachinePools[i], path.Child("workers", "machinePools").Index(i)
		errs = append(errs, validateNotNegative(mp.Replicas, at.Child("replicas"))...)
		errs = append(errs, validateNotNegative(mp.MinReadySeconds, at.Child("minReadySeconds"))...)
	}
	return errs
}

// classNumbers validates the numbers of a ClusterClass; it may be nil.
func classNumbers(class *clusterv1.ClusterClass) field.ErrorList {
	if class == nil {
		return nil
	}
	var errs field.ErrorList
	workers := field.NewPath("spec", "workers")
	for i := range class.Spec.Workers.MachineDeployments {
		md, at := &class.Spec.Workers.MachineDeployments[i], workers.Child("machineDeployments").Index(i)
		errs = append(errs, validateRemediation(&md.HealthCheck.Remediation, at)...)
		errs = append(errs, validateStrategy(&md.Rollout.Strategy, at)...)
	}
	for i := range class.Spec.Workers.MachinePools {
		errs = append(errs, validateNotNegative(class.Spec.Workers.MachinePools[i].MinReadySeconds,
			workers.Child("machinePools").Index(i).Child("minReadySeconds"))...)
	}
	return errs
}
