package journey

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tail is the number of Events, and of log lines, in a description.
const tail = 25

// describe returns objects, Events and logs for diagnosing a failed test.
func (c *Subject) describe() string {
	b := &strings.Builder{}
	p, err := c.snapshot(c.t.Context())
	if err != nil {
		return err.Error()
	}
	b.WriteString(p.String())
	fmt.Fprintf(b, "Objects in the namespace: %s\n", strings.Join(c.Inventory(), " "))
	events := &corev1.EventList{}
	if err := c.Client.List(c.t.Context(), events, client.InNamespace(c.Namespace)); err != nil {
		return b.String() + err.Error()
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, e := range last(events.Items) {
		fmt.Fprintf(b, "Event %s on %s %s: %s\n", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
	}
	b.WriteString(c.log())
	return b.String()
}

// width is the maximum length of log lines in a description.
const width = 500

// log returns lines of the management cluster's log: the last errors that have the namespace or none, and the last lines of other
// levels that have it, which say what controllers wait for.
func (c *Subject) log() string {
	raw, err := os.ReadFile(c.LogFile)
	if err != nil {
		return fmt.Sprintf("No log: %v", err)
	}
	var failures, others []string
	for line := range bytes.Lines(raw) {
		ours := bytes.Contains(line, []byte(c.Namespace))
		text := string(line[:min(len(line), width)]) + "\n"
		switch {
		case bytes.HasPrefix(line, []byte("E")) && (ours || !bytes.Contains(line, []byte(`namespace="journey-`))):
			failures = append(failures, text)
		case ours:
			others = append(others, text)
		}
	}
	return "Errors in the log:\n" + strings.Join(last(failures), "") + "Other lines:\n" + strings.Join(last(others), "")
}

func last[T any](all []T) []T { return all[max(0, len(all)-tail):] }
