package host

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumentedExcept(t, []string{"phase"}, (&Controller{}).Declared().Names())
}
