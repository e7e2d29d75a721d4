package standalone

import "sigs.k8s.io/cluster-api/standalone/internal/host"

// Components lists what the program hosts, by the last element of the image's name in a Deployment.
func Components() map[string]host.Program {
	return map[string]host.Program{}
}
