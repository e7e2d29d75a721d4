package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// maxEvents is how many warnings a cause has.
const maxEvents = 3

// grace is how long controllers may take to create what objects refer to, to reconcile a change, and to notice that a machine
// has started.
const grace = time.Minute

// settling is how long controllers usually take to see a change. What ends within it is not worth a line.
const settling = 10 * time.Second

// rule finds one sort of cause.
type rule struct {
	name string
	find func(*view) []Cause
	// deletion: the rule also applies while the Cluster is being deleted.
	deletion bool
	// passing: what it finds often ends by itself, so it does not count as Blocked during the grace period.
	passing bool
	// settles: what it finds is not a cause before it has lasted longer than controllers usually take.
	settles bool
}

// rules are in the order in which causes have consequences; doc.go describes them.
func rules() []rule {
	return []rule{
		{name: "paused", find: (*view).paused, deletion: true},
		{name: "operations", find: (*view).operations},
		{name: "providers", find: (*view).providers, deletion: true},
		{name: "missing", find: (*view).missing},
		{name: "references", find: (*view).references, deletion: true},
		{name: "topology", find: (*view).topology, deletion: true},
		{name: "finalizers", find: (*view).finalizers, deletion: true},
		{name: "failures", find: (*view).failures},
		{name: "infrastructure", find: (*view).infrastructure, passing: true},
		{name: "certificates", find: (*view).certificates},
		{name: "addresses", find: (*view).addresses},
		{name: "machines", find: (*view).failedMachines, passing: true},
		{name: "controlPlane", find: (*view).hostedControlPlane, passing: true},
		{name: "connection", find: (*view).connection, deletion: true, passing: true},
		{name: "joining", find: (*view).failedJoins, passing: true},
		{name: "deletions", find: (*view).deletions, deletion: true, passing: true},
		{name: "restricted", find: (*view).restricted},
		{name: "unhealthy", find: (*view).unhealthy, passing: true},
		{name: "upgrades", find: (*view).upgrades},
		{name: "updates", find: (*view).updates},
		{name: "replicas", find: (*view).replicas},
		{name: "resourceSets", find: (*view).resourceSets, passing: true},
		{name: "stale", find: (*view).stale, deletion: true, passing: true, settles: true},
		{name: "progress", find: (*view).progress, deletion: true},
	}
}

// Explain returns what the Cluster waits for. The Cluster must be among the objects.
func Explain(in Input) Report {
	v := newView(in)
	r := Report{
		Cluster: Object{
			APIVersion: tree.ClusterKind.GroupVersion().String(), Kind: tree.ClusterKind.Kind,
			Namespace: in.Cluster.Namespace, Name: in.Cluster.Name,
		},
		Summary: v.summary(), Unread: in.Unread,
	}
	seen, above := map[Object]bool{}, map[Object]bool{}
	for _, rule := range rules() {
		if v.deleting() && !rule.deletion {
			continue
		}
		for _, c := range rule.find(v) {
			if rule.settles && c.Since != nil && v.Now.Sub(c.Since.Time) < settling {
				continue
			}
			if rule.passing && v.recent(c) {
				c.State = Progressing
			}
			if v.consequence(c) {
				continue
			}
			// Of several findings about one object, the first explains the others. What its owners wait for is a consequence.
			if seen[c.Object] || c.State == Progressing && above[c.Object] {
				continue
			}
			r.Causes = append(r.Causes, c.webhook())
			seen[c.Object] = true
			for _, link := range c.Chain {
				above[link.Object] = true
			}
		}
	}
	r.Causes = v.rolloutsFirst(r.Causes)
	if len(r.Causes) == 0 {
		r.Causes = v.other()
	}
	r.Healthy = len(r.Causes) == 0
	if !v.deleting() {
		r.Upcoming = v.expiring()
	}
	return r
}

// recent reports whether a cause has existed for less than the grace period.
func (v *view) recent(c Cause) bool { return c.Since != nil && v.Now.Sub(c.Since.Time) < grace }

// webhook adds what to do if the message is an API server's about a webhook that does not respond.
func (c Cause) webhook() Cause {
	_, rest, found := strings.Cut(c.Message, "failed calling webhook \"")
	if !found {
		return c
	}
	name, _, _ := strings.Cut(rest, "\"")
	return c.do(fmt.Sprintf("The API server cannot call webhook %s: "+
		"see the provider's Pods and Service, `kubectl get deployments,services -A -l %s`", name, providerLabel))
}

// cause returns a Cause of an object; c, which may be nil, is the condition that shows it.
func (v *view) cause(reason Reason, state State, u *unstructured.Unstructured, c *tree.Condition, message string) Cause {
	message = strings.Join(strings.Fields(message), " ")
	if message == "" && c != nil {
		message = conditionState(c) // Its provider has set no message.
	}
	cause := Cause{
		Reason: reason, State: state, Object: objectOf(u), Message: message,
		Since: since(c), Chain: v.chain(u),
	}
	if last := &cause.Chain[len(cause.Chain)-1]; c != nil && c.Type != string(clusterv1.ReadyV1Beta1Condition) {
		last.State = strings.TrimPrefix(last.State+", "+conditionState(c), ", ")
	}
	cause.Events = v.eventsOf(cause.Object)
	return cause
}

// do adds actions.
func (c Cause) do(actions ...string) Cause {
	c.Actions = append(c.Actions, actions...)
	return c
}

// from sets since when the cause exists.
func (c Cause) from(t *metav1.Time) Cause {
	if t != nil && !t.IsZero() {
		c.Since = t
	}
	return c
}

// chain returns the path from the Cluster to an object.
func (v *view) chain(u *unstructured.Unstructured) []Link {
	var links []Link
	for steps := 0; u != nil && steps < 10; steps++ { // Owner references may form a circle.
		links = append(links, Link{Object: objectOf(u), State: stateOf(u)})
		if u == v.cluster {
			break
		}
		next := v.parents[u]
		if next == nil {
			next = v.cluster
		}
		u = next
	}
	slices.Reverse(links)
	return links
}

// stateOf describes the readiness of an object.
func stateOf(u *unstructured.Unstructured) string {
	var parts []string
	if t := u.GetDeletionTimestamp(); t != nil {
		parts = append(parts, "deleting since "+t.UTC().Format("2006-01-02 15:04:05"))
	}
	ready := tree.ConditionOf(u, string(clusterv1.ReadyV1Beta1Condition))
	if ready == nil {
		return strings.Join(parts, ", ")
	}
	return strings.Join(append(parts, conditionState(ready)), ", ")
}

// conditionState describes a condition: "Ready=False ScalingUp: Scaling up to 3 replicas".
func conditionState(c *tree.Condition) string {
	state := c.Type + "=" + c.Status
	if c.Reason != "" {
		state += " " + c.Reason
	}
	if c.Message != "" {
		state += ": " + strings.Join(strings.Fields(c.Message), " ")
	}
	return state
}

// eventsOf returns the newest warnings about an object.
func (v *view) eventsOf(o Object) []Event {
	var list []Event
	for i := range v.Events {
		e := &v.Events[i]
		if e.InvolvedObject.Kind != o.Kind || e.InvolvedObject.Name != o.Name || e.Type != corev1.EventTypeWarning {
			continue
		}
		at := e.LastTimestamp
		if at.IsZero() {
			at = metav1.Time{Time: e.EventTime.Time}
		}
		if at.IsZero() {
			at = e.CreationTimestamp
		}
		list = append(list, Event{Time: at, Object: o, Reason: e.Reason, Message: strings.Join(strings.Fields(e.Message), " "), Count: e.Count})
	}
	slices.SortFunc(list, func(a, b Event) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return list[:min(len(list), maxEvents)]
}

// summary counts the Machines that are ready.
func (v *view) summary() string {
	plane := v.controlPlane()
	counts := ""
	if plane != nil && tree.Number(plane, "spec", "replicas") > 0 {
		counts = fmt.Sprintf("%d of %d control plane Machines and ",
			tree.Number(plane, "status", "readyReplicas"), tree.Number(plane, "spec", "replicas"))
	}
	var ready, desired int64
	for _, kind := range workerKinds() {
		for _, u := range v.Objects.Of(kind, v.Cluster) {
			if kind == tree.MachineSetKind && v.ownerOf(u) != nil {
				continue
			}
			ready += tree.Number(u, "status", "readyReplicas")
			desired += tree.Number(u, "spec", "replicas")
		}
	}
	return fmt.Sprintf("%s%d of %d workers are ready", counts, ready, desired)
}
