package overview

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSort(t *testing.T) {
	at := func(hour int) metav1.Time { return metav1.NewTime(time.Date(2030, 1, 2, hour, 0, 0, 0, time.UTC)) }
	for _, tc := range []struct{ reason, key, want string }{
		{"no key keeps the order", "", "a b c"},
		{"versions are compared as such", "version", "c b a"},
		{"the oldest is first", "created", "b c a"},
		{"the least age is first", "age", "a c b"},
		{"kubectl's path of the creation", ".metadata.creationTimestamp", "b c a"},
		{"kubectl's path of a name in braces", "{.metadata.name}", "a b c"},
		{"what is not ready is first, what is unknown next", "ready", "b a c"},
		{"a Cluster without control plane has none", "control-plane", "b c a"},
		{"equal rows stay in their order", "class", "a b c"},
		{"the case does not matter", "WORKERS", "c a b"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			rows := []Row{
				{Name: "a", Version: "v1.31.0", Created: at(3), Ready: "Unknown", ControlPlane: &Replicas{Desired: 3}, Workers: Replicas{Desired: 2}},
				{Name: "b", Version: "v1.9.0", Created: at(1), Ready: "False", Workers: Replicas{Desired: 3}},
				{Name: "c", Created: at(2), Ready: "True", ControlPlane: &Replicas{Desired: 1}},
			}
			if err := Sort(rows, tc.key); err != nil {
				t.Fatal(err)
			}
			if got := rows[0].Name + " " + rows[1].Name + " " + rows[2].Name; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	if err := Sort(nil, ".spec.size"); err == nil || !strings.Contains(err.Error(), "use one of activity, age, class") {
		t.Errorf("an unknown key is an error that lists the keys, got %v", err)
	}
}
