package v1alpha1

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// OperationAnnotation is set on a KubeadmControlPlane by a ControlPlaneRestore or another operation, and has an Operation as JSON. While
	// it is there, the controller of the KubeadmControlPlane changes neither Machines nor members of etcd, except as the mode says.
	OperationAnnotation = "fleet.cluster.x-k8s.io/operation"
	// OperationObservedAnnotation is set on the KubeadmControlPlane by its controller, to Operation.Token, once it acts by the annotation
	// above: from then on the operation may rely on it. When that annotation is gone, the controller removes it before it changes anything. So
	// an operation waits for the answer to the mode that it has set, and does not set the annotation again after it has removed it.
	OperationObservedAnnotation = "fleet.cluster.x-k8s.io/operation-observed"
	// OperatedAnnotation is set on the KubeadmControlPlane to the UID of the latest operation that has ended, in the write that removes
	// OperationAnnotation. Names of Machines derive from it: hardware that an operation has given up may start again, and its kubelet would
	// register the Node of a new Machine of the same name.
	OperatedAnnotation = "fleet.cluster.x-k8s.io/operated"
	// RestoreDataAnnotation is set by the controller of a KubeadmControlPlane on the Machine that it creates in OperationModeRestore, and on
	// its KubeadmConfig, to the name of the Secret in Operation.DataSecret. That Machine runs kubeadm init, although the cluster is
	// initialized, after it has filled etcd's data directory.
	RestoreDataAnnotation = "fleet.cluster.x-k8s.io/restore-data"
	// AuthoritiesAnnotation is set by the kubeadm bootstrap provider on Secrets with the bootstrap data of control plane Machines, to
	// AuthoritiesOf the certificates of the cluster, etcd and front proxy CAs and the public keys of ServiceAccount tokens, if one of these
	// files has several. A Machine has been told of all of them then, and that it can start with them.
	AuthoritiesAnnotation = "fleet.cluster.x-k8s.io/authorities"
)

// OperationMode is what the controller of a KubeadmControlPlane does during an operation.
type OperationMode string

const (
	// OperationModeHold changes no Machines and no members of etcd.
	OperationModeHold OperationMode = "Hold"
	// OperationModeRestore creates the first Machine with the data in Operation.DataSecret, if there is no Machine, and is like
	// OperationModeHold otherwise.
	OperationModeRestore OperationMode = "Restore"
	// OperationModeRotate changes nothing: Machines are replaced as usual. It excludes other operations, and the answer tells that the
	// controller can use Secrets of CAs with several certificates.
	OperationModeRotate OperationMode = "Rotate"
)

// Operation is an operation on a control plane, in OperationAnnotation.
// +kubebuilder:object:generate=false
type Operation struct {
	// Kind, Name and UID are those of the object that operates, in the namespace of the KubeadmControlPlane.
	Kind string    `json:"kind"`
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Mode is what the controller of the KubeadmControlPlane does meanwhile.
	Mode OperationMode `json:"mode"`
	// DataSecret is the name of the Secret, in the same namespace, with what the first Machine of a restored control plane needs in
	// addition; only with OperationModeRestore. Its keys are RestoreScriptKey and RestoreConfigKey.
	DataSecret string `json:"dataSecret,omitempty"`
}

const (
	// RestoreScriptKey is the key of a script, which the Machine runs as root before kubeadm.
	RestoreScriptKey = "restore.sh"
	// RestoreConfigKey is the key of a JSON document, which the script reads.
	RestoreConfigKey = "restore.json"
	// RestoreScriptPath is the path of the script on the Machine.
	RestoreScriptPath = "/etc/cluster-api/restore.sh"
	// RestoreConfigPath is the path of the document on the Machine.
	RestoreConfigPath = "/etc/cluster-api/restore.json"
)

// Token identifies the operation and its mode, for OperationObservedAnnotation.
func (o Operation) Token() string { return string(o.UID) + "/" + string(o.Mode) }

// Holds reports whether the controller of the KubeadmControlPlane must not change Machines or members of etcd. Nil does not hold it.
func (o *Operation) Holds() bool { return o != nil && o.Mode != OperationModeRotate }

// OperationOf returns the operation on an object, or nil if there is none. An invalid annotation is an error: nothing may be changed then,
// either.
func OperationOf(obj metav1.Object) (*Operation, error) {
	text, ok := obj.GetAnnotations()[OperationAnnotation]
	if !ok {
		return nil, nil
	}
	o := &Operation{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", OperationAnnotation, err)
	}
	switch {
	case o.UID == "" || o.Kind == "" || o.Name == "":
		return nil, fmt.Errorf("annotation %s: kind, name and uid must be set", OperationAnnotation)
	case o.Mode == OperationModeHold, o.Mode == OperationModeRotate, o.Mode == OperationModeRestore && o.DataSecret != "":
		return o, nil
	}
	return nil, fmt.Errorf("annotation %s: mode must be %s or %s, or %s with a dataSecret", OperationAnnotation, OperationModeHold,
		OperationModeRotate, OperationModeRestore)
}

// AuthoritiesOf returns the value of AuthoritiesAnnotation for files with certificates and public keys; empty if none has several.
func AuthoritiesOf(files ...[]byte) string {
	sum, several := sha256.New(), false
	for _, file := range files {
		several = several || bytes.Count(file, []byte("-----BEGIN ")) > 1
		of := sha256.Sum256(file)
		sum.Write(of[:])
	}
	if !several {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// OperationPhase summarizes an operation, for people.
type OperationPhase string

// Phases of operations.
const (
	// OperationPhasePending: nothing has been changed yet; the conditions say what it waits for.
	OperationPhasePending OperationPhase = "Pending"
	// OperationPhaseRunning: steps are being taken, see status.steps.
	OperationPhaseRunning OperationPhase = "Running"
	// OperationPhaseCompleted: it has succeeded.
	OperationPhaseCompleted OperationPhase = "Completed"
	// OperationPhaseFailed: it cannot succeed; the conditions say why, and what to do.
	OperationPhaseFailed OperationPhase = "Failed"
)

// OperationCompletedCondition is True if an operation has succeeded. False with reason Failed is final.
const OperationCompletedCondition = "Completed"

// Reasons of the condition Completed of operations.
const (
	// OperationCompletedReason: it has succeeded.
	OperationCompletedReason = "Completed"
	// OperationNotConfirmedReason: spec.confirm does not have the expected value; the message has it.
	OperationNotConfirmedReason = "NotConfirmed"
	// OperationRefusedReason: it would do harm, or cannot work here; nothing was changed. The message says what to change.
	OperationRefusedReason = "Refused"
	// OperationWaitingReason: a step waits for what the message says.
	OperationWaitingReason = "Waiting"
	// OperationPausedReason: users have paused it; the message says what comes next.
	OperationPausedReason = "Paused"
	// OperationRunningReason: a step is being taken.
	OperationRunningReason = "Running"
	// OperationFailedReason: it cannot succeed.
	OperationFailedReason = "Failed"
)

// OperationStep is a step of an operation. A step that has a completionTime is not taken again.
type OperationStep struct {
	// name is the name of the step.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// startTime is when it was begun.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when it was completed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// message is what it has done, or waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// OperationEndedAnnotation is on operations that have completed or failed, with their phase: a copy of such an object without its status,
// by a move or from a backup, is not carried out again.
const OperationEndedAnnotation = "fleet.cluster.x-k8s.io/ended"
