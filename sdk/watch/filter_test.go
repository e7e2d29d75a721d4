package watch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

func TestPredicate(t *testing.T) {
	labeled := func(labels map[string]string) *clusterv1.Cluster {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	blue := labeled(map[string]string{"cluster.x-k8s.io/watch-filter": "blue"})
	for name, c := range map[string]struct {
		reason string
		filter string
		obj    *clusterv1.Cluster
		want   bool
	}{
		"NoFilter":            {"a manager without a filter sees objects without the label", "", labeled(nil), true},
		"NoFilterAndLabel":    {"a manager without a filter sees labeled objects too", "", blue, true},
		"Same":                {"a manager with a filter sees the objects that carry its value", "blue", blue, true},
		"Other":               {"a manager with a filter leaves objects of another value to others", "green", blue, false},
		"Unlabeled":           {"a manager with a filter does not see objects without the label", "blue", labeled(nil), false},
		"EmptyValue":          {"an empty value is not the filter's", "blue", labeled(map[string]string{"cluster.x-k8s.io/watch-filter": ""}), false},
		"NotAPrefix":          {"values are compared whole", "blu", blue, false},
		"CaseMatters":         {"values are compared with their case", "Blue", blue, false},
		"ValueInAnotherLabel": {"only the one label counts", "blue", labeled(map[string]string{"color": "blue"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := watch.Filter(c.filter).Predicate()
			got := map[string]bool{
				"create":  p.Create(event.CreateEvent{Object: c.obj}),
				"update":  p.Update(event.UpdateEvent{ObjectOld: labeled(nil), ObjectNew: c.obj}),
				"delete":  p.Delete(event.DeleteEvent{Object: c.obj}),
				"generic": p.Generic(event.GenericEvent{Object: c.obj}),
			}
			want := map[string]bool{"create": c.want, "update": c.want, "delete": c.want, "generic": c.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
