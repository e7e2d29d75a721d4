package topology

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumentedExcept(t, []string{"work", "refer", "after", "before-delete", "deleted"}, (&Controller{}).declared().Names())
}
