// Command hosts-manager is the manager of the hosts infrastructure provider.
package main

import (
	hosts "sigs.k8s.io/cluster-api/examples/provider-hosts"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(hosts.NewComponent())
}
