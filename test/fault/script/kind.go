package script

import (
	"fmt"
	"strings"
)

// workloadMark is the prefix of resources of workload clusters in the text form.
const workloadMark = "@"

// Kind classifies requests, which are counted per Kind. In a Kind that selects requests, empty fields match any value.
type Kind struct {
	Manager  string
	Workload bool
	Verb     string
	Resource string
}

// Selects reports whether k matches other.
func (k Kind) Selects(other Kind) bool {
	either := func(want, have string) bool { return want == "" || want == have }
	return k.Workload == other.Workload && either(k.Manager, other.Manager) && either(k.Verb, other.Verb) && either(k.Resource, other.Resource)
}

// String returns <manager>:<verb>:<resource>, with the prefix "@" for resources of workload clusters.
func (k Kind) String() string {
	resource := k.Resource
	if k.Workload {
		resource = workloadMark + resource
	}
	return k.Manager + ":" + k.Verb + ":" + resource
}

// ParseKind parses the output of String.
func ParseKind(text string) (Kind, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return Kind{}, fmt.Errorf("%q must be <manager>:<verb>:<resource>", text)
	}
	resource, workload := strings.CutPrefix(parts[2], workloadMark)
	return Kind{Manager: parts[0], Workload: workload, Verb: parts[1], Resource: resource}, nil
}
