// Command kubeadm-bootstrap-controller is the manager of the kubeadm bootstrap provider.
package main

import (
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm"
	"sigs.k8s.io/cluster-api/provider/manager"
)

func main() {
	manager.Main(kubeadm.NewComponent())
}
