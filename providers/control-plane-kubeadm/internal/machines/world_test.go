package machines

import (
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

// manager returns a Manager in a World.
func manager(w *kcptest.World) *Manager {
	return &Manager{Clients: w.Clients, External: w.External}
}
