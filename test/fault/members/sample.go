package members

import "time"

// Sample is the response of one member.
type Sample struct {
	// At is when the member responded, Asked its name.
	At    time.Time
	Asked string
	// ClusterID is the identity of the etcd cluster.
	ClusterID uint64
	// Members are the names of the members.
	Members []string
	// Gone are the members whose infrastructure did not exist before the request.
	Gone []string
	// Over is set if the whole control plane was being deleted.
	Over bool
}
