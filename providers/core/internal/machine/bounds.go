package machine

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// maxAddresses is the maximum number of addresses of a Machine.
const maxAddresses = 256

// bound truncates values copied from workload clusters and providers.
func bound(_ context.Context, s *scope) (step.Result, error) {
	m := s.machine
	older := m.GetV1Beta1Status()
	bounds.Conditions(older.Conditions)
	bounds.Truncate(older.FailureReason, bounds.Token)
	bounds.Truncate(older.FailureMessage, bounds.Message)
	boundAddresses(m)
	boundNodeInfo(m.Status.NodeInfo)
	return step.Done(), nil
}

func boundAddresses(m *clusterv1.Machine) {
	m.Status.Addresses = slices.DeleteFunc(m.Status.Addresses, func(a clusterv1.MachineAddress) bool {
		return len(a.Address) > bounds.Token || len(a.Type) > bounds.Token
	})
	if len(m.Status.Addresses) > maxAddresses {
		m.Status.Addresses = m.Status.Addresses[:maxAddresses:maxAddresses]
	}
}

func boundNodeInfo(info *corev1.NodeSystemInfo) {
	if info == nil {
		return
	}
	for _, text := range []*string{
		&info.MachineID, &info.SystemUUID, &info.BootID, &info.KernelVersion, &info.OSImage, &info.ContainerRuntimeVersion,
		&info.KubeletVersion, &info.KubeProxyVersion, //nolint:staticcheck // Old kubelets set it.
		&info.OperatingSystem, &info.Architecture,
	} {
		bounds.Truncate(text, bounds.Token)
	}
}
