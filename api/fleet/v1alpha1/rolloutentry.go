package v1alpha1

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// RolloutAnnotation is on each Cluster of a ClusterRollout, and has a RolloutEntry as JSON: what the rollout plans for the Cluster, and
	// has done with it. All that a rollout knows of Clusters is there. It stays when the rollout has ended, until another one begins.
	RolloutAnnotation = "fleet.cluster.x-k8s.io/rollout"
	// RolloutIDAnnotation is on ClusterRollouts, and has the UID that the object had at first: entries of Clusters refer to it. A move to
	// another management cluster keeps it, but not the UID.
	RolloutIDAnnotation = "fleet.cluster.x-k8s.io/rollout-id"
	// RolloutPlanAnnotation is on ClusterRollouts whose plan is complete, and has its hash. Which Clusters take part is certain from then on.
	RolloutPlanAnnotation = "fleet.cluster.x-k8s.io/rollout-plan"
)

// RolloutState is how far a rollout is with a Cluster.
type RolloutState string

// States of Clusters in a rollout. Done, Failed, Skipped and RolledBack are final, unless spec.attempt is increased.
const (
	// RolloutStateWaiting: it was not changed yet.
	RolloutStateWaiting RolloutState = "Waiting"
	// RolloutStateUpdating: it was changed, and is not yet up to date and healthy.
	RolloutStateUpdating RolloutState = "Updating"
	// RolloutStateDone: it was changed, and is healthy.
	RolloutStateDone RolloutState = "Done"
	// RolloutStateFailed: it was changed, and did not become healthy, or did not stay so.
	RolloutStateFailed RolloutState = "Failed"
	// RolloutStateSkipped: it is left as it is.
	RolloutStateSkipped RolloutState = "Skipped"
	// RolloutStateRollingBack: it was set back, and is not yet up to date and healthy.
	RolloutStateRollingBack RolloutState = "RollingBack"
	// RolloutStateRolledBack: it was set back. Its message says so if it has not become healthy.
	RolloutStateRolledBack RolloutState = "RolledBack"
)

// RolloutEffect is what a change does to a Cluster.
type RolloutEffect string

// Effects of changes.
const (
	// RolloutUnchanged: no object changes.
	RolloutUnchanged RolloutEffect = "Unchanged"
	// RolloutInPlace: objects change, and no Machine is replaced.
	RolloutInPlace RolloutEffect = "InPlace"
	// RolloutReplacing: Machines are replaced.
	RolloutReplacing RolloutEffect = "Replacing"
	// RolloutForbidden: the change is not permitted.
	RolloutForbidden RolloutEffect = "Forbidden"
	// RolloutUnknown: no plan could be made.
	RolloutUnknown RolloutEffect = "Unknown"
)

// RolloutEntry is what a ClusterRollout knows of a Cluster, in RolloutAnnotation of the Cluster.
// +kubebuilder:object:generate=false
type RolloutEntry struct {
	// Rollout is the name of the ClusterRollout, in the namespace of the Cluster, and ID its RolloutIDAnnotation.
	Rollout string    `json:"rollout"`
	ID      types.UID `json:"id"`
	// Stage is the name of the stage that the Cluster is in.
	Stage string `json:"stage"`
	// Plan identifies what was planned: the change, and the class as it was. Effect is what the change does to the Cluster, Machines how many
	// Machines are replaced, and Reason why nothing is planned.
	Plan     string        `json:"plan"`
	Effect   RolloutEffect `json:"effect"`
	Machines int32         `json:"machines,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	// State is how far the rollout is with the Cluster, since Since, and Message why, or what it waits for.
	State   RolloutState `json:"state"`
	Since   metav1.Time  `json:"since"`
	Message string       `json:"message,omitempty"`
	// Attempt is the attempt of the rollout in which the state was determined.
	Attempt int32 `json:"attempt,omitempty"`
	// Unhealthy is set if the Cluster was not healthy, or Machines were being remediated, when it was changed.
	Unhealthy bool `json:"unhealthy,omitempty"`
	// Previous is what the change has replaced; nil before that.
	Previous *RolloutPrevious `json:"previous,omitempty"`
}

// RolloutPrevious is what a change has replaced in spec.topology of a Cluster. What the change does not set is empty.
// +kubebuilder:object:generate=false
type RolloutPrevious struct {
	ClassRef *RolloutClassReference `json:"classRef,omitempty"`
	Version  string                 `json:"version,omitempty"`
	// Variables are those that the Cluster had, and Unset the names of those that it did not have.
	Variables []RolloutVariable `json:"variables,omitempty"`
	Unset     []string          `json:"unset,omitempty"`
}

// RolloutEntryOf returns the entry of a Cluster, or nil if it has none.
func RolloutEntryOf(cluster metav1.Object) (*RolloutEntry, error) {
	text := cluster.GetAnnotations()[RolloutAnnotation]
	if text == "" {
		return nil, nil
	}
	e := &RolloutEntry{}
	if err := json.Unmarshal([]byte(text), e); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", RolloutAnnotation, err)
	}
	if e.Rollout == "" || e.ID == "" || e.State == "" {
		return nil, fmt.Errorf("annotation %s: rollout, id and state must be set", RolloutAnnotation)
	}
	return e, nil
}

// SetRolloutEntry sets the entry of a Cluster.
func SetRolloutEntry(cluster metav1.Object, e *RolloutEntry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding annotation %s: %w", RolloutAnnotation, err)
	}
	annotations := cluster.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[RolloutAnnotation] = string(text)
	cluster.SetAnnotations(annotations)
	return nil
}

// Count counts a Cluster in a state.
func (s *RolloutStageStatus) Count(state RolloutState) {
	s.Total++
	switch state {
	case RolloutStateWaiting:
		s.Waiting++
	case RolloutStateUpdating:
		s.Updating++
	case RolloutStateDone:
		s.Done++
	case RolloutStateFailed:
		s.Failed++
	case RolloutStateSkipped:
		s.Skipped++
	case RolloutStateRollingBack, RolloutStateRolledBack:
		s.RolledBack++
	}
}
