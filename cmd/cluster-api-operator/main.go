// Command cluster-api-operator is the manager of the operator.
package main

import (
	"sigs.k8s.io/cluster-api/providers/operator"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(operator.NewComponent())
}
