package v1alpha1

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// EtcdCommandAnnotation is set by a ControlPlaneRecovery on the infrastructure machine of a control plane Machine, and has an EtcdCommand
	// as JSON: what the infrastructure provider is asked to do with the etcd member on that machine, where no API server is needed for it.
	EtcdCommandAnnotation = "fleet.cluster.x-k8s.io/etcd-command"
	// EtcdAnswerAnnotation is set on the infrastructure machine by its provider, and has an EtcdAnswer as JSON. Providers that do not know the
	// command never set it.
	EtcdAnswerAnnotation = "fleet.cluster.x-k8s.io/etcd-answer"
)

// EtcdCommandName is what an infrastructure provider can do with the etcd member on a machine.
type EtcdCommandName string

const (
	// EtcdCommandInspect reads the state of the member, from itself. It changes nothing.
	EtcdCommandInspect EtcdCommandName = "Inspect"
	// EtcdCommandForceNewCluster makes the member the only one of its cluster, with the data that it has. The provider does that at most once
	// for each UID, and has etcd run without the flag --force-new-cluster when it answers. It is repeated until it succeeds.
	EtcdCommandForceNewCluster EtcdCommandName = "ForceNewCluster"
)

// EtcdCommand is a command for the etcd member on a machine, in EtcdCommandAnnotation.
// +kubebuilder:object:generate=false
type EtcdCommand struct {
	// UID identifies the command. A command with another UID is another one, even if it has the same name. It has at most 128 letters, digits
	// and characters of "-_.".
	UID string `json:"uid"`
	// Command is what to do.
	Command EtcdCommandName `json:"command"`
}

// EtcdAnswer is the answer to an EtcdCommand, in EtcdAnswerAnnotation.
// +kubebuilder:object:generate=false
type EtcdAnswer struct {
	// UID and Command are those of the EtcdCommand.
	UID     string          `json:"uid"`
	Command EtcdCommandName `json:"command"`
	// Error is why the command has failed, empty if it has succeeded. That of EtcdCommandForceNewCluster may be replaced by another answer to
	// the same command.
	Error string `json:"error,omitempty"`
	// Member is the state of the member, after the command. It is nil if the member does not respond.
	Member *EtcdMemberState `json:"member,omitempty"`
}

// EtcdMemberState is the state of an etcd member as itself reports it, without asking others. IDs are hexadecimal numbers.
// +kubebuilder:object:generate=false
type EtcdMemberState struct {
	// ID and ClusterID identify the member and its cluster.
	ID        string `json:"id"`
	ClusterID string `json:"clusterID"`
	// Leader is the ID of the leader, empty if the member knows none: its cluster has no quorum then, as far as it knows.
	Leader string `json:"leader,omitempty"`
	// RaftIndex is the index of the last committed entry of its log, RaftTerm its term, and Revision that of its data.
	RaftIndex int64 `json:"raftIndex"`
	RaftTerm  int64 `json:"raftTerm"`
	Revision  int64 `json:"revision"`
	// Version is the version of etcd.
	Version string `json:"version,omitempty"`
	// Members are the IDs of the voting members of the cluster, itself included, as far as it knows. Empty: unknown.
	Members []string `json:"members,omitempty"`
}

// EtcdCommandOf returns the command on an infrastructure machine that has not been answered, or nil. A ForceNewCluster that was answered
// with an error is returned again.
func EtcdCommandOf(obj metav1.Object) (*EtcdCommand, error) {
	text, ok := obj.GetAnnotations()[EtcdCommandAnnotation]
	if !ok {
		return nil, nil
	}
	c := &EtcdCommand{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", EtcdCommandAnnotation, err)
	}
	if !validUID(c.UID) {
		return nil, fmt.Errorf("annotation %s: uid must have 1 to 128 letters, digits and characters of -_.", EtcdCommandAnnotation)
	}
	if c.Command != EtcdCommandInspect && c.Command != EtcdCommandForceNewCluster {
		return nil, fmt.Errorf("annotation %s: command must be %s or %s", EtcdCommandAnnotation, EtcdCommandInspect, EtcdCommandForceNewCluster)
	}
	answer := EtcdAnswerOf(obj, c.UID)
	if answer != nil && (answer.Error == "" || c.Command == EtcdCommandInspect) {
		return nil, nil
	}
	return c, nil
}

// EtcdAnswerOf returns the answer to the command with a UID, or nil. One that is not valid is none.
func EtcdAnswerOf(obj metav1.Object, uid string) *EtcdAnswer {
	text, ok := obj.GetAnnotations()[EtcdAnswerAnnotation]
	a := &EtcdAnswer{}
	if !ok || json.Unmarshal([]byte(text), a) != nil || a.UID != uid {
		return nil
	}
	return a
}

// SetEtcdAnswer sets an answer on an infrastructure machine in memory.
func SetEtcdAnswer(obj metav1.Object, a EtcdAnswer) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	all := obj.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[EtcdAnswerAnnotation] = string(text)
	obj.SetAnnotations(all)
	return nil
}

func validUID(uid string) bool {
	for _, c := range uid {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return len(uid) > 0 && len(uid) <= 128
}
