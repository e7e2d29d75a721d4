package clusterclass

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumentedExcept(t, []string{"variables", "own", "versions", "observe"}, (&Controller{}).declared().Names())
}
