package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// HostFinalizer keeps a Host as long as it is claimed.
	HostFinalizer = "infrastructure.cluster.x-k8s.io/host-claim"
	// ZoneLabel on a Host is its failure domain.
	ZoneLabel = "topology.kubernetes.io/zone"
	// HostAvailableCondition reports whether the Host can be claimed.
	HostAvailableCondition clusterv1.ConditionType = "Available"
)

// Role is what a Host may be used for.
// +kubebuilder:validation:Enum=control-plane;worker
type Role string

// The roles of Hosts.
const (
	RoleControlPlane Role = "control-plane"
	RoleWorker       Role = "worker"
)

// HostSpec specifies how a machine is reached, and which HostMachine has claimed it.
type HostSpec struct {
	// address is the IP address or DNS name of the machine.
	// +kubebuilder:validation:MinLength=1
	Address string `json:"address"`
	// port of the SSH server.
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
	// user to log in as.
	// +kubebuilder:default=root
	// +optional
	User string `json:"user,omitempty"`
	// sudo runs commands through sudo, which must not ask for a password.
	// +optional
	Sudo bool `json:"sudo,omitempty"`
	// hostKeys are the public keys of the SSH server, as in /etc/ssh/ssh_host_*_key.pub. A server with another key is rejected.
	// +kubebuilder:validation:MinItems=1
	HostKeys []string `json:"hostKeys"`
	// sshKeySecret is the name of a Secret in the Host's namespace with the user's private key under ssh-privatekey.
	// +kubebuilder:validation:MinLength=1
	SSHKeySecret string `json:"sshKeySecret"`
	// roles restricts what the Host is used for. Empty: everything.
	// +optional
	Roles []Role `json:"roles,omitempty"`
	// unschedulable keeps the Host from being claimed. A claim that it has stays.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`
	// claim is the HostMachine that has the Host. The provider writes it.
	// +optional
	Claim *Claim `json:"claim,omitempty"`
}

// Claim names the HostMachine that has a Host. It is in the spec, because clusterctl move does not keep the status.
type Claim struct {
	// machine is the name of the HostMachine.
	Machine string `json:"machine"`
	// id is the UID that the HostMachine had when it claimed the Host.
	ID types.UID `json:"id"`
}

// HostStatus reports a Host.
type HostStatus struct {
	// phase is Available, Unschedulable, Claimed or Orphaned (claimed by a HostMachine that does not exist).
	// +optional
	Phase string `json:"phase,omitempty"`
	// conditions describe the present state.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
}

// Host is a machine that exists already.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hosts,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=".spec.address"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".spec.claim.machine"
type Host struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HostSpec   `json:"spec"`
	Status HostStatus `json:"status,omitempty"`
}

// GetV1Beta1Conditions returns the conditions of the status.
func (h *Host) GetV1Beta1Conditions() clusterv1.Conditions { return h.Status.Conditions }

// SetV1Beta1Conditions replaces the conditions of the status.
func (h *Host) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	h.Status.Conditions = conditions
}

// ClaimedBy reports whether a HostMachine has claimed the Host. Once spec.host is written it has the ID of the claim, which clusterctl move
// keeps.
func (h *Host) ClaimedBy(m *HostMachine) bool {
	id := m.UID
	if m.Spec.Host != nil {
		id = m.Spec.Host.Claim
	}
	return h.Spec.Claim != nil && *h.Spec.Claim == Claim{Machine: m.Name, ID: id}
}

// HostList is a list of Hosts.
//
// +kubebuilder:object:root=true
type HostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Host `json:"items"`
}
