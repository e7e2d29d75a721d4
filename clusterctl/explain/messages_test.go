package explain

import (
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// emptyPart matches a message in which a part is missing: "not available: : see", "Reason: ".
var emptyPart = regexp.MustCompile(`^$|^[:;.,]|[:;,]\s*[:;.,]|[:;,]\s*$|  `)

// TestNoMessageHasAnEmptyPart takes the messages of all conditions and containers away: providers need not set them.
func TestNoMessageHasAnEmptyPart(t *testing.T) {
	eachTranscript(t, func(t *testing.T, in Input, _ string) {
		for _, u := range in.Objects.All() {
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			for _, c := range conditions {
				if c, ok := c.(map[string]any); ok {
					delete(c, "message")
				}
			}
			if len(conditions) > 0 {
				if err := unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions"); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range in.Providers {
			for j := range in.Providers[i].Status.Conditions {
				in.Providers[i].Status.Conditions[j].Message = ""
			}
		}
		for i := range in.Pods {
			for _, s := range slices.Concat(in.Pods[i].Status.InitContainerStatuses, in.Pods[i].Status.ContainerStatuses) {
				if s.State.Waiting != nil {
					s.State.Waiting.Message = ""
				}
			}
		}
		for i := range in.PodEvents {
			in.PodEvents[i].Message = ""
		}
		for _, c := range Explain(in).Causes {
			if emptyPart.MatchString(c.Message) {
				t.Errorf("%s %s: message %q has an empty part", c.Object, c.Reason, c.Message)
			}
		}
	})
}
