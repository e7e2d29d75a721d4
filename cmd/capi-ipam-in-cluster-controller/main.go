// Command capi-ipam-in-cluster-controller is the manager of the in-cluster IPAM provider.
package main

import (
	"sigs.k8s.io/cluster-api/ipam/incluster"
	"sigs.k8s.io/cluster-api/provider/manager"
)

func main() {
	manager.Main(incluster.NewComponent())
}
