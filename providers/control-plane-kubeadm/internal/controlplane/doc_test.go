package controlplane

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumentedExcept(t, []string{
		"cluster", "infrastructure", "complete", "propagate", "connect", "initialized", "stranded", "inspect",
		"pre-terminate", "orphaned-members", "certificates", "endpoint", "kubeconfig", "adopt", "remediate", "plan", "scale",
		"finalizer", "observe", "workers", "machines", "release", "report",
	}, (&Controller{}).declared().Names())
}
