package kinds

import (
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

func machineHealthCheck() *lossless.Kind {
	kind := coreKind(at[clusterv1.MachineHealthCheck](clusterv1.GroupVersion, "MachineHealthCheck"),
		at[clusterv1beta1.MachineHealthCheck](clusterv1beta1.GroupVersion, "MachineHealthCheck"))
	status := status{counters: nil}
	kind.Up = func(o object) {
		healthCheckUp(lossless.At(o, "spec"))
		s := lossless.At(o, "status")
		if s["observedGeneration"] == nil {
			for _, name := range []string{"expectedMachines", "currentHealthy", "remediationsAllowed"} {
				if s[name] == int64(0) {
					delete(s, name) // No controller has reported it.
				}
			}
		}
		status.up(s)
	}
	kind.Down = func(o object, _ lossless.VersionOf) {
		healthCheckDown(lossless.At(o, "spec"), namespaceOf(o))
		status.down(lossless.At(o, "status"))
	}
	return kind
}

// healthCheck is where the fields of a health check are, also of a topology and of a class.
func healthCheck() rules {
	return rules{
		fields: [][2]path{
			{{"enable"}, {"enabled"}},
			{{"unhealthyConditions"}, {"checks", "unhealthyNodeConditions"}},
			{{"unhealthyMachineConditions"}, {"checks", "unhealthyMachineConditions"}},
			{{"maxUnhealthy"}, {"remediation", "triggerIf", "unhealthyLessThanOrEqualTo"}},
			{{"unhealthyRange"}, {"remediation", "triggerIf", "unhealthyInRange"}},
			{{remediationTemplate}, {"remediation", templateRef}},
		},
		durations: [][2]path{{{"nodeStartupTimeout"}, {"checks", "nodeStartupTimeoutSeconds"}}},
	}
}

// unhealthy are the lists of conditions with a timeout.
func unhealthy() []string { return []string{"unhealthyConditions", "unhealthyMachineConditions"} }

func healthCheckUp(o object) {
	if o == nil {
		return
	}
	for _, list := range unhealthy() {
		for _, condition := range lossless.Items(o, list) {
			lossless.MoveDuration(condition, path{"timeout"}, path{"timeoutSeconds"})
		}
	}
	templateUp(lossless.At(o, remediationTemplate))
	healthCheck().up(o)
}

func healthCheckDown(o object, namespace any) {
	if o == nil {
		return
	}
	healthCheck().down(o)
	qualify(lossless.At(o, remediationTemplate), namespace)
	for _, list := range unhealthy() {
		for _, condition := range lossless.Items(o, list) {
			lossless.MoveSeconds(condition, path{"timeoutSeconds"}, path{"timeout"})
		}
	}
}

// healthCheckOf are the fields of a class or topology in which a health check is.
func healthCheckOf() [2]path { return [2]path{{"machineHealthCheck"}, {"healthCheck"}} }
