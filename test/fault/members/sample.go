package members

import "time"

// Sample is what one member said.
type Sample struct {
	// At is when it answered, Asked its name.
	At    time.Time
	Asked string
	// ClusterID is the identity of the etcd cluster.
	ClusterID uint64
	// Members are the names of the members.
	Members []string
	// Gone are the members whose infrastructure was gone before the question was asked.
	Gone []string
	// Over says that the whole control plane was being deleted.
	Over bool
}
