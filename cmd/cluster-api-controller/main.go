// Command cluster-api-controller is the core manager.
package main

import (
	"sigs.k8s.io/cluster-api/core"
	"sigs.k8s.io/cluster-api/provider/manager"
)

func main() {
	manager.Main(core.NewComponent())
}
