package machinepool

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// incomplete returns what a change of the MachinePool and its objects still lacks; empty if it is complete. The topology controller
// writes three objects, and the bootstrap data follows later: a machine that is created in between would be replaced again. Without
// revisions, such as in pools of other clients, every change is complete.
func (s *scope[P, M]) incomplete() string {
	want := s.pool.Annotations
	switch {
	case want[clusterv1.MachinePoolInfrastructureRevisionAnnotation] != s.obj.GetAnnotations()[clusterv1.MachinePoolRevisionAnnotation]:
		return "the MachinePool and its " + s.provider.Pool.Kind + " to have the same revision"
	case want[clusterv1.MachinePoolBootstrapRevisionAnnotation] != want[clusterv1.MachinePoolDataRevisionAnnotation]:
		return "the bootstrap data of the MachinePool's revision"
	}
	return ""
}

// held reports whether machines would be replaced if the change were complete.
func (s *scope[P, M]) held() bool {
	if s.incomplete() == "" || s.frozen() {
		return false
	}
	for _, m := range s.members {
		if !m.deleting() && s.outdated(m) != "" {
			return true
		}
	}
	return false
}
