// Command kubeadm-control-plane-controller is the manager of the kubeadm control plane provider.
package main

import (
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

func main() {
	manager.Main(kubeadm.NewComponent())
}
