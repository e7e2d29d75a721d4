package cloud

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What a workload cluster may keep. Whoever has its kubeconfig writes into the memory, and onto the disk, of a process
// that all workload clusters share.
const (
	// DefaultLimit is how many bytes a group keeps if Options.Limit says nothing.
	DefaultLimit = 64 << 20
	// maxObject is how large an object may be, which is what an etcd takes.
	maxObject = 3 << 19
	// overhead is what an object costs besides its encoding.
	overhead = 1 << 10
)

// simulation is the group of what the simulation itself keeps. It has to go on when a cluster is full.
const simulation = "simulated.cloud"

// admit refuses a write for which there is no room. before is nil for a new object. What makes an object smaller is
// always possible. The group's lock is held.
func (g *Group) admit(before, after *Object) error {
	if after.Key.Resource.Group == simulation {
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
	if g.stored+int64(growth) > g.limit {
		return apierrors.NewGenericServerResponse(http.StatusInsufficientStorage, "", after.Key.Resource, after.Key.Name,
			fmt.Sprintf("the simulated cluster is full: it keeps %d bytes at most, of which each object takes %d besides its own; delete something", g.limit, overhead), 0, true)
	}
	return nil
}

func (o *Object) weight() int64 { return int64(len(o.raw)) + overhead }
