package pool

import (
	"testing"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller[*inclusterv1.InClusterIPPool]{}).Declared().Names())
}
