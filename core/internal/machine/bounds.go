package machine

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// Users control workload clusters and provider objects. These limits keep values copied from there from filling the management
// cluster.
const (
	// maxMessage is the maximum size of messages of conditions and failures, in bytes.
	maxMessage = 4 << 10
	// maxToken is the maximum size of reasons, addresses, versions, UIDs and other identifiers, in bytes.
	maxToken = 256
	// maxProviderID is the maximum size of provider IDs, in bytes. Some are long paths.
	maxProviderID = 1 << 10
	// maxAddresses is the maximum number of addresses of a Machine.
	maxAddresses = 256
)

// bounds truncates values copied from workload clusters and providers.
func bounds(_ context.Context, s *scope) (step.Result, error) {
	m := s.machine
	for i := range m.Status.Conditions {
		c := &m.Status.Conditions[i]
		truncate(&c.Message, maxMessage)
		truncate(&c.Reason, maxToken)
	}
	truncate(m.Status.FailureReason, maxToken)
	truncate(m.Status.FailureMessage, maxMessage)
	boundAddresses(m)
	boundNodeInfo(m.Status.NodeInfo)
	return step.Done(), nil
}

func boundAddresses(m *clusterv1.Machine) {
	m.Status.Addresses = slices.DeleteFunc(m.Status.Addresses, func(a clusterv1.MachineAddress) bool {
		return len(a.Address) > maxToken || len(a.Type) > maxToken
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
		truncate(text, maxToken)
	}
}

// truncate shortens a text to at most limit bytes, without splitting a character.
func truncate[T ~string](text *T, limit int) {
	if text != nil {
		*text = condition.Truncate(*text, limit)
	}
}
