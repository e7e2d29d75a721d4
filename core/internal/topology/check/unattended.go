package check

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Unattended lists features of classes that this manager does not implement. They are accepted, because manifests that use them must
// stay valid, with warnings for users.
type Unattended struct {
	// Extensions are not called, neither for external patches nor for hooks.
	Extensions bool
}

// Class returns warnings about what a class uses of it.
func (u Unattended) Class(class *clusterv1.ClusterClass) []string {
	if !u.Extensions {
		return nil
	}
	var out []string
	for i := range class.Spec.Patches {
		if class.Spec.Patches[i].External != nil {
			out = append(out, fmt.Sprintf("spec.patches[%d].external: this release does not call runtime extensions: Clusters of this class will not be reconciled", i))
		}
	}
	return out
}
