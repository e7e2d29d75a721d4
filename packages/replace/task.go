package replace

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/packages/lock"
)

// LockNamespace is the namespace of the Lease of Task: every cluster has it.
const LockNamespace = metav1.NamespaceSystem

// Task is what one process at a time does in a management cluster.
func Task() lock.Task {
	return lock.Task{Lease: "clusterctl-upgrade", Does: "upgrades providers", Cluster: "management cluster"}
}
