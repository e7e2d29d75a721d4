// Command capd-manager is the manager of the Docker infrastructure provider.
package main

import (
	"sigs.k8s.io/cluster-api/infrastructure/docker"
	"sigs.k8s.io/cluster-api/provider/manager"
)

func main() {
	manager.Main(docker.NewComponent())
}
