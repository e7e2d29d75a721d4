package request

import (
	"fmt"
	"strings"
)

// workloadMark begins the resource of a request to a workload cluster, in text.
const workloadMark = "@"

// Kind is what requests are counted by. An empty field of a Kind that selects requests stands for any value.
type Kind struct {
	Manager  string
	Workload bool
	Verb     string
	Resource string
}

// Selects reports whether other is of this kind.
func (k Kind) Selects(other Kind) bool {
	either := func(want, have string) bool { return want == "" || want == have }
	return k.Workload == other.Workload && either(k.Manager, other.Manager) && either(k.Verb, other.Verb) && either(k.Resource, other.Resource)
}

// String is <manager>:<verb>:<resource>, where "@" begins the resources of workload clusters.
func (k Kind) String() string {
	resource := k.Resource
	if k.Workload {
		resource = workloadMark + resource
	}
	return k.Manager + ":" + k.Verb + ":" + resource
}

// ParseKind reads what String writes.
func ParseKind(text string) (Kind, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return Kind{}, fmt.Errorf("%q is not <manager>:<verb>:<resource>", text)
	}
	resource, workload := strings.CutPrefix(parts[2], workloadMark)
	return Kind{Manager: parts[0], Workload: workload, Verb: parts[1], Resource: resource}, nil
}
