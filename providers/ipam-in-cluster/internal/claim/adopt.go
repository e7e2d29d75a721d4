package claim

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the finalizer before an address is reserved. A claim that no machine owns gets the label with which clusterctl moves it with
// its IPAddress: the pool is moved, and its addresses must not be allocated to others then.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	if len(s.claim.OwnerReferences) == 0 {
		metav1.SetMetaDataLabel(&s.claim.ObjectMeta, clusterctlv1.ClusterctlMoveHierarchyLabel, "")
	}
	controllerutil.AddFinalizer(s.claim, inclusterv1.ClaimFinalizer)
	return step.Checkpoint(), nil
}
