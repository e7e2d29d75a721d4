// Command capim-manager is the manager of the in-memory infrastructure provider.
package main

import (
	"sigs.k8s.io/cluster-api/infrastructure/inmemory"
	"sigs.k8s.io/cluster-api/provider/manager"
)

func main() {
	manager.Main(inmemory.NewComponent())
}
