// Package bounds limits what is copied from workload clusters and provider objects. Users control them: without limits, they could
// fill the management cluster. References to Nodes are only made of names and UIDs that can come from an API server. Numbers that are
// computed from percentages stay within an int32.
package bounds

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	// Message is the maximum size of messages of conditions and failures, in bytes.
	Message = 4 << 10
	// Token is the maximum size of reasons, addresses, versions, UIDs and other identifiers, in bytes.
	Token = 256
	// ProviderID is the maximum size of provider IDs, in bytes. Some are long paths.
	ProviderID = 1 << 10
)

// Conditions truncates the reasons and messages of conditions.
func Conditions(all clusterv1.Conditions) {
	for i := range all {
		Truncate(&all[i].Message, Message)
		Truncate(&all[i].Reason, Token)
	}
}

// Truncate shortens a text to at most limit bytes, without splitting a character. The text may be nil.
func Truncate[T ~string](text *T, limit int) {
	if text != nil {
		*text = condition.Truncate(*text, limit)
	}
}
