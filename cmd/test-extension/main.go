// Command test-extension is a runtime extension whose answers users set, to try how Clusters behave.
package main

import (
	"sigs.k8s.io/cluster-api/provider/manager"
	"sigs.k8s.io/cluster-api/runtimeextension/testextension"
)

func main() {
	manager.Main(testextension.NewComponent())
}
