package machinepool

import (
	"testing"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	c := New(Provider[*dockerv1.DockerMachinePool, *dockerv1.DockerMachine]{}, step.Clients{})
	testenv.StepsDocumented(t, c.declared().Names())
}
