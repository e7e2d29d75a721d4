package cloud

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
)

// power tells the store which machines have power.
type power struct {
	*faults.Injector
	clock clock.PassiveClock
}

// MarkUnreachable implements store.Power.
func (p power) MarkUnreachable(u *unstructured.Unstructured) {
	machines.MarkUnreachable(u, p.clock.Now())
}

func (p power) markReachable(u *unstructured.Unstructured) { machines.MarkReachable(u, p.clock.Now()) }
