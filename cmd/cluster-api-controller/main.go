// Command cluster-api-controller is the core manager.
package main

import (
	"sigs.k8s.io/cluster-api/providers/core"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(core.NewComponent())
}
