// Command capi-ipam-in-cluster-controller is the manager of the in-cluster IPAM provider.
package main

import (
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(incluster.NewComponent())
}
