package machinepool

import (
	"context"

	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// Users control workload clusters and provider objects. These limits keep values copied from there from filling the management
// cluster.
const (
	// maxMessage is the maximum size of messages of conditions and failures, in bytes.
	maxMessage = 4 << 10
	// maxToken is the maximum size of reasons, in bytes.
	maxToken = 256
	// maxProviderID is the maximum size of provider IDs, in bytes. Some are long paths.
	maxProviderID = 1 << 10
	// maxMachines is the maximum number of machines of a pool: that of Nodes that Kubernetes supports in a cluster.
	maxMachines = 5000
)

// bounds truncates texts copied from providers.
func bounds(_ context.Context, s *scope) (step.Result, error) {
	status := &s.pool.Status
	for i := range status.Conditions {
		c := &status.Conditions[i]
		truncate(&c.Message, maxMessage)
		truncate(&c.Reason, maxToken)
	}
	truncate(status.FailureReason, maxToken)
	truncate(status.FailureMessage, maxMessage)
	return step.Done(), nil
}

// truncate shortens a text to at most limit bytes, without splitting a character.
func truncate[T ~string](text *T, limit int) {
	if text != nil {
		*text = condition.Truncate(*text, limit)
	}
}
