// Command capd-manager is the manager of the Docker infrastructure provider.
package main

import (
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(docker.NewComponent())
}
