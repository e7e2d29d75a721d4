package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func event(revision uint64, t watch.EventType, kind, name string) Event {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetKind(kind)
	o.SetName(name)
	return Event{Revision: revision, Type: t, Object: o}
}

// TestTimelineIsInOrder matters because watches of different kinds deliver in any order.
func TestTimelineIsInOrder(t *testing.T) {
	timeline := Timeline{
		event(5, watch.Deleted, "Machine", "a"), event(1, watch.Added, "Machine", "a"),
		event(4, watch.Added, "Secret", "s"), event(2, watch.Modified, "Machine", "a"),
	}
	timeline.Sort()
	var seen []int
	timeline.Play(func(_ Event, _ *unstructured.Unstructured, now State) bool {
		seen = append(seen, len(now))
		return true
	})
	if diff := cmp.Diff([]int{1, 1, 2, 1}, seen); diff != "" {
		t.Errorf("number of objects after each event (-want +got):\n%s", diff)
	}
	if end := timeline.End(); len(end.Of("Secret")) != 1 || len(end.Of("Machine")) != 0 {
		t.Errorf("the final state is %v", end)
	}
}
