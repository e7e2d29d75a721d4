// Command kubeadm-bootstrap-controller is the manager of the kubeadm bootstrap provider.
package main

import (
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(kubeadm.NewComponent())
}
