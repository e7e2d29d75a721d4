package kinds

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// Lookup returns the version of a kind of a provider that implements a contract we support, and reports whether it is installed.
type Lookup = func(ctx context.Context, kind schema.GroupKind) (version string, ok bool)

// All returns all kinds with several versions. Each is converted between its newest version and one of the others.
func All(lookup Lookup) []*lossless.Kind {
	all := slices.Concat(coreKinds(), kubeadmKinds(), addonKinds(), dockerKinds())
	for _, kind := range all {
		kind.Lookup = lookup
		kind.AsWritten = isTemplate(kind.Hub.Kind)
	}
	return all
}

func isTemplate(kind string) bool { return strings.HasSuffix(kind, "Template") }

type (
	// object is the JSON of an object.
	object = lossless.Object
	// path is a path of fields.
	path = []string
)

// at returns a kind in a version.
func at[T any, P interface {
	*T
	client.Object
}](version schema.GroupVersion, kind string) lossless.Version {
	return lossless.Version{GroupVersionKind: version.WithKind(kind), New: func() client.Object { return P(new(T)) }}
}

// rules are the paths of fields that are elsewhere, of the spoke and of the hub.
type rules struct {
	fields [][2]path
	// durations are seconds in the hub.
	durations [][2]path
}

// up moves the fields of an object to where the hub has them.
func (r rules) up(o object) {
	for _, field := range r.fields {
		lossless.Move(o, field[0], field[1])
	}
	for _, field := range r.durations {
		lossless.MoveDuration(o, field[0], field[1])
	}
}

// down moves the fields of an object to where the spoke has them.
func (r rules) down(o object) {
	for _, field := range r.fields {
		lossless.Move(o, field[1], field[0])
	}
	for _, field := range r.durations {
		lossless.MoveSeconds(o, field[1], field[0])
	}
}

// deletionTimeouts are the timeouts of the deletion of Machines.
func deletionTimeouts() [][2]path {
	return [][2]path{
		{{"nodeDrainTimeout"}, {"deletion", "nodeDrainTimeoutSeconds"}},
		{{"nodeVolumeDetachTimeout"}, {"deletion", "nodeVolumeDetachTimeoutSeconds"}},
		{{"nodeDeletionTimeout"}, {"deletion", "nodeDeletionTimeoutSeconds"}},
	}
}

// statusGrouping are the objects in the status of v1beta2 that v1beta1 does not have.
func statusGrouping() []string { return []string{"initialization", "deprecated", "v1beta1"} }

// status is how the status of a kind differs, in addition to conditions and failures.
type status struct {
	// done are the booleans of v1beta1 that tell that a provider did something, and the fields of v1beta2's initialization.
	done [][2]string
	// counters are those of v1beta1, which are deprecated in v1beta2.
	counters []string
	// newer are the fields of v1beta2 that v1beta1 has in an object of its own.
	newer []string
}

// newerCounters are the counters of what manages Machines.
func newerCounters() []string {
	return []string{"readyReplicas", "availableReplicas", "upToDateReplicas"}
}

// up converts a status to the hub.
func (s status) up(status object) {
	if status == nil {
		return
	}
	for _, name := range append([]string{"conditions", "failureReason", "failureMessage"}, s.counters...) {
		lossless.Move(status, path{name}, path{"deprecated", "v1beta1", name})
	}
	for _, name := range append([]string{"conditions"}, s.newer...) {
		lossless.Move(status, path{"v1beta2", name}, path{name})
	}
	for _, field := range s.done {
		if status[field[0]] == true {
			lossless.Put(status, true, "initialization", field[1])
		}
		delete(status, field[0])
	}
	if status["observedGeneration"] != nil && status["observedGeneration"] != int64(0) {
		return
	}
	// No controller has reported it, so that counters that are zero are not set: v1beta1 cannot tell.
	deprecated := lossless.At(status, "deprecated", "v1beta1")
	for _, name := range append([]string{"replicas"}, s.counters...) {
		for _, counters := range []object{status, deprecated} {
			if counters[name] == int64(0) {
				delete(counters, name)
			}
		}
	}
}

// down converts a status to the spoke.
func (s status) down(status object) {
	if status == nil {
		return
	}
	for _, name := range append([]string{"conditions"}, s.newer...) {
		lossless.Move(status, path{name}, path{"v1beta2", name})
	}
	for _, name := range append([]string{"conditions", "failureReason", "failureMessage"}, s.counters...) {
		lossless.Move(status, path{"deprecated", "v1beta1", name}, path{name})
	}
	for _, field := range s.done {
		lossless.Move(status, path{"initialization", field[1]}, path{field[0]})
	}
}
