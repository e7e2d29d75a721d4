package patches

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// wildcard matches any number of characters, at one end of the name of a class of workers.
const wildcard = "*"

// selects reports whether a definition applies to a template.
func selects(s *clusterv1.PatchSelector, i *item) bool {
	if s.APIVersion != i.source.GetAPIVersion() || s.Kind != i.source.GetKind() {
		return false
	}
	match := &s.MatchResources
	switch i.place {
	case infrastructureCluster:
		return ptr.Deref(match.InfrastructureCluster, false)
	case controlPlane, controlPlaneMachines:
		return ptr.Deref(match.ControlPlane, false)
	case machineDeployment:
		return match.MachineDeploymentClass != nil && matchesAny(match.MachineDeploymentClass.Names, i.class)
	case machinePool:
		return match.MachinePoolClass != nil && matchesAny(match.MachinePoolClass.Names, i.class)
	}
	return false
}

func matchesAny(patterns []string, class string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, class) })
}

// matches reports whether the name of a class matches a pattern, which may have a wildcard at one end.
func matches(pattern, class string) bool {
	if prefix, ok := strings.CutSuffix(pattern, wildcard); ok {
		return strings.HasPrefix(class, prefix)
	}
	if suffix, ok := strings.CutPrefix(pattern, wildcard); ok {
		return strings.HasSuffix(class, suffix)
	}
	return pattern == class
}

// validPattern reports whether a pattern has at most one wildcard, at one end. A wildcard alone is valid, too.
func validPattern(pattern string) bool {
	inner := pattern
	if trimmed, ok := strings.CutSuffix(pattern, wildcard); ok {
		inner = trimmed
	} else if trimmed, ok := strings.CutPrefix(pattern, wildcard); ok {
		inner = trimmed
	}
	return pattern != "" && !strings.Contains(inner, wildcard)
}
