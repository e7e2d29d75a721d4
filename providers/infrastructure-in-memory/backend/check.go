package backend

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/webhook"
)

// CheckCluster returns what is wrong with the annotations of a cluster whose machines are simulated.
func CheckCluster(obj client.Object) field.ErrorList { return webhook.CheckFaults(obj) }

// CheckMachine returns what is wrong with the behavior of a simulated machine.
func CheckMachine(spec *dockerv1.InMemoryMachineBackendSpec, path *field.Path) field.ErrorList {
	return webhook.CheckBehaviour(kinds.BehaviourOf(spec), path)
}
