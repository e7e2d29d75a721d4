package machine

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumentedExcept(t, []string{"owners", "prepare", "vm", "node", "etcd", "api-server", "addons"}, (&Controller{}).declared().Names())
}
