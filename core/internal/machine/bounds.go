package machine

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/step"
)

// Workload clusters and providers' objects belong to users. What a Machine takes over of them is bounded, so that they
// cannot fill the management cluster.
const (
	// maxMessage bounds messages of conditions and failures.
	maxMessage = 4 << 10
	// maxToken bounds what identifies something: reasons, addresses, versions, UIDs.
	maxToken = 256
	// maxProviderID bounds provider IDs. Some are long paths.
	maxProviderID = 1 << 10
	// maxAddresses is how many addresses a Machine has at most.
	maxAddresses = 256
)

// bounds cuts what was taken over from workload clusters and providers.
func bounds(_ context.Context, s *scope) (step.Result, error) {
	m := s.machine
	for i := range m.Status.Conditions {
		c := &m.Status.Conditions[i]
		cut(&c.Message, maxMessage)
		cut(&c.Reason, maxToken)
	}
	cut(m.Status.FailureReason, maxToken)
	cut(m.Status.FailureMessage, maxMessage)
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
		cut(text, maxToken)
	}
}

// cut shortens a text to so many bytes, at the end of a character.
func cut[T ~string](text *T, most int) {
	if text != nil && len(*text) > most {
		*text = T(strings.ToValidUTF8(string((*text)[:most-len("...")]), "") + "...")
	}
}
