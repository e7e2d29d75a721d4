package store

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Limits of a workload cluster: users with its kubeconfig write to the memory and disk of a process that all workload
// clusters share.
const (
	// DefaultLimit is the default of a limit.
	DefaultLimit = 64 << 20
	// maxObject is the maximum size of an object, as in etcd.
	maxObject = 3 << 19
	// overhead is the size of an object in addition to its encoding.
	overhead = 1 << 10
)

// Simulation is the API group of the simulation's own objects, which are not limited.
const Simulation = "simulated.cloud"

// admit rejects a write that exceeds the limits. before is nil for a new object. Writes that do not grow an object are
// always admitted. The store's lock is held.
func (t *table) admit(before, after *Object) error {
	if after.Key.Resource.Group == Simulation {
		return nil
	}
	growth := len(after.raw) + overhead
	if before != nil {
		growth = len(after.raw) - len(before.raw)
	}
	if growth <= 0 {
		return nil
	}
	if len(after.raw) > maxObject {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s has %d bytes, limit is %d", after.Key, len(after.raw), maxObject))
	}
	if t.stored+int64(growth) > t.limit {
		return apierrors.NewGenericServerResponse(http.StatusInsufficientStorage, "", after.Key.Resource, after.Key.Name,
			fmt.Sprintf("the simulated cluster is full: its limit is %d bytes, with %d bytes of overhead per object; delete objects",
				t.limit, overhead), 0, true)
	}
	return nil
}
