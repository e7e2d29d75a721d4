package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ObjectMeta is the metadata that a template sets on its objects.
type ObjectMeta struct {
	// labels are set on every object created from the template.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are set on every object created from the template.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ConditionPolarity is which status of a condition is the healthy one.
type ConditionPolarity = clusterv1beta2.ConditionPolarity

const (
	// PositivePolarityCondition means that True is healthy. It is the default.
	PositivePolarityCondition = clusterv1beta2.PositivePolarityCondition
	// NegativePolarityCondition means that False is healthy.
	NegativePolarityCondition = clusterv1beta2.NegativePolarityCondition
)

// StatusVersion is a Kubernetes version with the number of machines that have it.
type StatusVersion = clusterv1beta2.StatusVersion

// MachineNamingStrategy defines the names of new machines.
type MachineNamingStrategy struct {
	// template is a Go text template of the name. It can use .cluster.name, .machineSet.name and .random, five random
	// characters, which it must contain. A name longer than 63 characters is truncated to 58, and five random ones are
	// appended. When unset, "{{ .machineSet.name }}-{{ .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Template string `json:"template,omitempty"`
}

// MachineAddressType is the type of a MachineAddress.
type MachineAddressType string

const (
	// MachineHostName is the host name of the machine in its infrastructure.
	MachineHostName MachineAddressType = "Hostname"
	// MachineExternalIP is an address reachable from outside the machine's own network.
	MachineExternalIP MachineAddressType = "ExternalIP"
	// MachineInternalIP is an address reachable from inside the machine's own network.
	MachineInternalIP MachineAddressType = "InternalIP"
	// MachineExternalDNS is a name that resolves to an external address of the machine.
	MachineExternalDNS MachineAddressType = "ExternalDNS"
	// MachineInternalDNS is a name that resolves to an internal address of the machine.
	MachineInternalDNS MachineAddressType = "InternalDNS"
)

// MachineAddress is one address of a machine.
type MachineAddress struct {
	// type is one of Hostname, ExternalIP, InternalIP, ExternalDNS, InternalDNS.
	Type MachineAddressType `json:"type"`

	// address is the IP address or name itself.
	Address string `json:"address"`
}

// MachineAddresses is the list of a machine's addresses, set by its infrastructure provider.
type MachineAddresses []MachineAddress

// MachineHealthCheckClass defines when machines are unhealthy and the limits of remediation. Which machines it selects
// follows from where the class is used.
type MachineHealthCheckClass struct {
	// unhealthyConditions are Node conditions; a machine is unhealthy when any one of them has held for its timeout.
	// +optional
	UnhealthyConditions []UnhealthyCondition `json:"unhealthyConditions,omitempty"`

	// unhealthyMachineConditions are Machine conditions; a machine is unhealthy when any one of them has held for its
	// timeout.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	UnhealthyMachineConditions []UnhealthyMachineCondition `json:"unhealthyMachineConditions,omitempty"`

	// maxUnhealthy stops remediation while more than this number or percentage of machines is unhealthy.
	// When unset, every machine may be unhealthy (100%).
	// +optional
	// +kubebuilder:validation:XIntOrString
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`

	// unhealthyRange allows remediation only while the number of unhealthy machines is within "[min-max]", both ends
	// included. It takes precedence over maxUnhealthy.
	// +optional
	// +kubebuilder:validation:Pattern=^\[[0-9]+-[0-9]+\]$
	UnhealthyRange *string `json:"unhealthyRange,omitempty"`

	// nodeStartupTimeout is how long a machine may take to get a Node before it counts as unhealthy: at least 30s, or
	// exactly 0s to never count it. When unset, 10m.
	// +optional
	NodeStartupTimeout *metav1.Duration `json:"nodeStartupTimeout,omitempty"`

	// remediationTemplate references a template from which a remediation request is created for each unhealthy machine,
	// for an external controller. When unset, the owner of the machine replaces it.
	// +optional
	RemediationTemplate *corev1.ObjectReference `json:"remediationTemplate,omitempty"`
}
