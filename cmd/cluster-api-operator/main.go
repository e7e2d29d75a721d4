// Command cluster-api-operator is the manager of the operator.
package main

import (
	"sigs.k8s.io/cluster-api/operator"
	"sigs.k8s.io/cluster-api/provider/manager"
)

func main() {
	manager.Main(operator.NewComponent())
}
