package cluster

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumentedExcept(t, []string{"open", "close"}, (&Controller{}).declared().Names())
}
