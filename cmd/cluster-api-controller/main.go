// Command cluster-api-controller is the core manager.
package main

import (
	"sigs.k8s.io/cluster-api/core"
	"sigs.k8s.io/cluster-api/internal/manager"
)

func main() {
	manager.Main(core.NewComponent())
}
