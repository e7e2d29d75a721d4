// Command capi-fleet-controller is the manager of the fleet provider.
package main

import (
	"sigs.k8s.io/cluster-api/providers/fleet"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(fleet.NewComponent())
}
