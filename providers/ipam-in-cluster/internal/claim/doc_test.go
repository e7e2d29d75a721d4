package claim

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumentedExcept(t, []string{"pool", "adopt"}, (&Controller{}).Declared().Names())
}
