package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is what a cause means for the Cluster.
type State string

const (
	// Blocked means that the cause stays until a user or another program acts.
	Blocked State = "Blocked"
	// Progressing means that the controllers are at work: the cause ends without help unless it fails.
	Progressing State = "Progressing"
	// Upcoming means that there is time to act.
	Upcoming State = "Upcoming"
)

// Report is the result of Explain, and the output of `clusterctl explain -o json`.
type Report struct {
	// Cluster is the Cluster that was explained.
	Cluster Object `json:"cluster"`
	// Healthy is true if nothing was found. Causes is empty then.
	Healthy bool `json:"healthy"`
	// Summary describes the replicas, such as "3 of 3 control plane Machines and 2 of 2 workers are ready".
	Summary string `json:"summary"`
	// Causes lists the root cause, and after it what else was found, in the order of the rules.
	Causes []Cause `json:"causes,omitempty"`
	// Upcoming lists what the Cluster does not wait for yet, and what breaks it unless someone acts in time.
	Upcoming []Cause `json:"upcoming,omitempty"`
	// Unread lists what could not be read, with the reason: the report does not consider it.
	Unread []string `json:"unread,omitempty"`
}

// Object identifies an object.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String returns "Kind/name".
func (o Object) String() string { return o.Kind + "/" + o.Name }

func objectOf(u *unstructured.Unstructured) Object {
	return Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Cause is one finding.
type Cause struct {
	// Reason identifies the sort of cause, for programs. The reasons are listed in the book.
	Reason Reason `json:"reason"`
	State  State  `json:"state"`
	// Object has the problem; Message says what it is.
	Object  Object `json:"object"`
	Message string `json:"message"`
	// Since is when it began, if that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Chain leads from the Cluster to the Object.
	Chain []Link `json:"chain"`
	// Events are the newest warnings about the Object, the newest first.
	Events []Event `json:"events,omitempty"`
	// Actions are what to do: sentences, which may contain commands in backticks.
	Actions []string `json:"actions,omitempty"`
}

// Link is one object of a Chain.
type Link struct {
	Object Object `json:"object"`
	// State describes the object's readiness, such as "Ready=False ScalingUp: Scaling up to 3 replicas".
	State string `json:"state,omitempty"`
}

// Event is a warning.
type Event struct {
	Time    metav1.Time `json:"time"`
	Object  Object      `json:"object"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int32       `json:"count,omitempty"`
}
