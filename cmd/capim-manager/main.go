// Command capim-manager is the manager of the in-memory infrastructure provider.
package main

import (
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(inmemory.NewComponent())
}
