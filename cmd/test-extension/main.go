// Command test-extension is a runtime extension whose answers users set, to try how Clusters behave.
package main

import (
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(testextension.NewComponent())
}
