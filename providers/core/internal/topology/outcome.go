package topology

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Event reasons.
const (
	createEvent = "TopologyCreate"
	updateEvent = "TopologyUpdate"
	deleteEvent = "TopologyDelete"
)

// outcome is what a reconcile changed.
type outcome struct {
	// created, updated and deleted are kinds and names.
	created, updated, deleted []string
	// newObjects are the created objects, as they are cached: of Go types if the controller reads them so.
	newObjects []client.Object
}

// applied records an object that was created or updated.
func (o *outcome) applied(isNew bool, result *unstructured.Unstructured) {
	if !isNew {
		o.updated = append(o.updated, kindAndName(result))
		return
	}
	o.created = append(o.created, kindAndName(result))
	typed := plan.TypedObject(result.GroupVersionKind())
	if typed == nil {
		o.newObjects = append(o.newObjects, result)
		return
	}
	typed.SetNamespace(result.GetNamespace())
	typed.SetName(result.GetName())
	typed.SetResourceVersion(result.GetResourceVersion())
	o.newObjects = append(o.newObjects, typed)
}

// announce reports all changes of a reconcile in a single event, because each event is a write. Of several reasons, an
// update wins over a creation, and a creation over a deletion.
func (o *outcome) announce(ctx context.Context, cluster metav1.Object) {
	var parts []string
	reason := ""
	for _, part := range []struct {
		reason, verb string
		names        []string
	}{
		{deleteEvent, "deleted", o.deleted},
		{createEvent, "created", o.created},
		{updateEvent, "updated", o.updated},
	} {
		if len(part.names) > 0 {
			reason = part.reason
			slices.Sort(part.names)
			parts = append(parts, part.verb+" "+strings.Join(part.names, ", "))
		}
	}
	if reason == "" {
		return
	}
	step.Event(ctx, reason, "Topology of Cluster %s: %s", cluster.GetName(), strings.Join(parts, "; "))
}

func kindAndName(u *unstructured.Unstructured) string { return u.GetKind() + " " + u.GetName() }
