package rolloutplan

import fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"

// Effect is what a change does to a Cluster.
type Effect struct {
	Effect   fleetv1.RolloutEffect
	Machines int32
	Reason   string
}
