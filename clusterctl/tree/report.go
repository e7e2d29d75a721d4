package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Report is the state of an object in the conditions and counters of v1beta2.
type Report struct {
	// State is Available, or Ready of kinds without, or Ready of v1beta1 while there is neither; nil if the row does not show it.
	State *Condition
	// Replicas are the current and the desired number of Machines, such as 2/3; empty for kinds without.
	Replicas string
	// Available, Ready and UpToDate count Machines; nil if unknown.
	Available, Ready, UpToDate *int64
	// Conditions are all conditions, in the order in which they are stored.
	Conditions []Condition
}

// Reported reports whether the managers of a Cluster set conditions of v1beta2: those of Cluster API v1.8 and older do not.
func Reported(cluster *unstructured.Unstructured) bool {
	return cluster != nil && len(reportedConditions(cluster)) > 0
}

// reportOf returns the state of an object, which is in v1beta1 if it is of this project.
func reportOf(u *unstructured.Unstructured) *Report {
	r := &Report{Conditions: reportedConditions(u)}
	kind := u.GroupVersionKind().GroupKind()
	switch {
	case kind == ClusterKind.GroupKind():
		r.sum(u)
	case kind == MachineKind.GroupKind():
		r.Replicas = "1"
		for _, counter := range []struct {
			to   **int64
			kind string
		}{
			{&r.Available, clusterv1.AvailableCondition}, {&r.Ready, clusterv1.ReadyCondition},
			{&r.UpToDate, clusterv1.MachineUpToDateCondition},
		} {
			n := int64(0)
			if c := r.condition(counter.kind); c != nil && c.Status == "True" {
				n = 1
			}
			*counter.to = &n
		}
	default:
		r.count(u)
	}
	if kind != MachineSetKind.GroupKind() && kind != MachinePoolKind.GroupKind() {
		r.State = r.condition(clusterv1.ReadyCondition)
		if available := r.condition(clusterv1.AvailableCondition); available != nil && kind != MachineKind.GroupKind() {
			r.State = available
		}
		if r.State == nil { // It is not reported yet: first reports are held back.
			r.State = find(Conditions(u), string(clusterv1.ReadyV1Beta1Condition))
		}
	}
	return r
}

// unsummarized returns the condition of a Cluster that tells why it is not reconciled, if the state is not about that: that of a Cluster
// whose class has never been applied is not set yet. Of a Cluster that a restore of the management cluster has paused, it is the one that
// says why; of a control plane, the one that reports certificates that expire soon.
func (r *Report) unsummarized(u *unstructured.Unstructured) []Condition {
	if u.GetKind() == "KubeadmControlPlane" {
		c := r.condition(controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition)
		if c != nil && c.Status == "True" && c.Message != "" {
			return []Condition{*c}
		}
	}
	if _, restored := u.GetAnnotations()[clusterv1.PausedByRestoreAnnotation]; restored && u.GetKind() == ClusterKind.Kind {
		if c := r.condition(clusterv1.ClusterBackupUpToDateCondition); c != nil {
			return []Condition{*c}
		}
	}
	if u.GroupVersionKind().GroupKind() != ClusterKind.GroupKind() || r.State != nil && r.State.Status != "True" {
		return nil
	}
	c := r.condition(clusterv1.ClusterTopologyReconciledCondition)
	if c == nil || c.Status == "True" {
		return nil
	}
	return []Condition{*c}
}

// reportedConditions returns the conditions of v1beta2, or the others of an object that has only these.
func reportedConditions(u *unstructured.Unstructured) []Condition {
	field, found, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "v1beta2", "conditions")
	if items, ok := field.([]any); found && ok {
		return conditionsIn(items)
	}
	if _, known := conversion.Shared().KindOf(u); known {
		return nil // The conditions of v1beta1 are others of the same names.
	}
	field, _, _ = unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	items, _ := field.([]any)
	return conditionsIn(items)
}

// ReportedCondition returns the condition of v1beta2 of an object, or nil.
func ReportedCondition(u *unstructured.Unstructured, kind string) *Condition {
	return find(reportedConditions(u), kind)
}

// condition returns a condition, or nil.
func (r *Report) condition(kind string) *Condition { return find(r.Conditions, kind) }

// find returns a condition of a list, or nil.
func find(list []Condition, kind string) *Condition {
	i := slices.IndexFunc(list, func(c Condition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// count sets the counters of an object with replicas.
func (r *Report) count(u *unstructured.Unstructured) {
	desired, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		return
	}
	r.Replicas = fmt.Sprintf("%d/%d", Number(u, "status", "replicas"), desired)
	if u.GroupVersionKind().GroupKind() == MachinePoolKind.GroupKind() {
		return
	}
	r.Available, r.Ready, r.UpToDate = counter(u, "availableReplicas"), counter(u, "readyReplicas"), counter(u, "upToDateReplicas")
}

// counter returns a counter of v1beta2; nil if it is unknown.
func counter(u *unstructured.Unstructured, name string) *int64 {
	for _, path := range [][]string{{"status", "v1beta2", name}, {"status", name}} {
		if n, found, err := unstructured.NestedInt64(u.Object, path...); found && err == nil {
			return &n
		}
	}
	return nil
}

// sum sets the counters of a Cluster, to those of its control plane and workers together.
func (r *Report) sum(u *unstructured.Unstructured) {
	total := func(name string) *int64 {
		var sum *int64
		for _, part := range []string{"controlPlane", "workers"} {
			n, found, err := unstructured.NestedInt64(u.Object, "status", "v1beta2", part, name)
			if !found || err != nil {
				continue
			}
			if sum == nil {
				sum = new(int64)
			}
			*sum += n
		}
		return sum
	}
	current, desired := total("replicas"), total("desiredReplicas")
	if current != nil && desired != nil {
		r.Replicas = fmt.Sprintf("%d/%d", *current, *desired)
	}
	r.Available, r.Ready, r.UpToDate = total("availableReplicas"), total("readyReplicas"), total("upToDateReplicas")
}

// countMachines counts the Machines of the Cluster in its row. Pools may have replicas without Machines: then the status is shown.
func (b *builder) countMachines(root *Node) {
	machines := b.objects.Of(MachineKind, b.name)
	if !b.CountMachines || root.Report == nil || len(machines) == 0 || len(b.objects.Of(MachinePoolKind, b.name)) > 0 {
		return
	}
	sum := &Report{}
	for _, m := range machines {
		one := reportOf(m)
		for _, n := range [][2]**int64{
			{&sum.Available, &one.Available}, {&sum.Ready, &one.Ready}, {&sum.UpToDate, &one.UpToDate},
		} {
			if *n[0] == nil {
				*n[0] = new(int64)
			}
			**n[0] += **n[1]
		}
	}
	if _, desired, found := strings.Cut(root.Report.Replicas, "/"); found {
		root.Report.Replicas = fmt.Sprintf("%d/%s", len(machines), desired)
	}
	root.Report.Available, root.Report.Ready, root.Report.UpToDate = sum.Available, sum.Ready, sum.UpToDate
}

// state is the same for Machines that are grouped: status and reason of the conditions that the columns show.
func (r *Report) state() string {
	var all []string
	for _, kind := range []string{clusterv1.AvailableCondition, clusterv1.ReadyCondition, clusterv1.MachineUpToDateCondition} {
		if c := r.condition(kind); c != nil {
			all = append(all, kind, c.Status, c.Reason)
		}
	}
	if len(all) == 0 && r.State != nil {
		all = append(all, r.State.Status, r.State.Reason)
	}
	return strings.Join(all, " ")
}

// mergeReports returns the report of a group of Machines in the same state.
func mergeReports(list []*Node, message string) *Report {
	r := &Report{}
	for _, to := range []struct {
		sum  **int64
		from func(*Report) *int64
	}{
		{&r.Available, func(r *Report) *int64 { return r.Available }}, {&r.Ready, func(r *Report) *int64 { return r.Ready }},
		{&r.UpToDate, func(r *Report) *int64 { return r.UpToDate }},
	} {
		*to.sum = new(int64)
		for _, n := range list {
			if count := to.from(n.Report); count != nil {
				**to.sum += *count
			}
		}
	}
	state := Condition{}
	for _, n := range list {
		if s := n.Report.State; s != nil && (state.Type == "" || s.Since.Before(state.Since)) {
			state = *s
		}
	}
	state.Message = message
	r.State = &state
	return r
}

// shownConditions returns the conditions of an object to list below it, as --show-conditions demands; listed is whether that was demanded.
// Names are compared without case. With a + after a name, conditions that tell nothing are left out.
func (b *builder) shownConditions(n *Node) (shown []Condition, listed bool) {
	for _, wanted := range b.ShowConditions {
		wanted, some := strings.CutSuffix(strings.TrimSpace(wanted), "+")
		if !strings.EqualFold(wanted, "all") && !strings.EqualFold(wanted, n.Kind) && !strings.EqualFold(wanted, n.Kind+"/"+n.Name) {
			continue
		}
		listed = true
		for _, c := range n.Report.Conditions {
			if !some || c.tells() {
				shown = append(shown, c)
			}
		}
		break
	}
	return shown, listed
}

// showsAll reports whether the conditions of all objects are shown.
func (b *builder) showsAll() bool {
	return slices.ContainsFunc(b.ShowConditions, func(wanted string) bool {
		return strings.EqualFold(strings.TrimSuffix(strings.TrimSpace(wanted), "+"), "all")
	})
}

// tells reports whether a condition is one that users always look at, or is bad or unknown, or has a message.
func (c Condition) tells() bool {
	return c.Type == clusterv1.AvailableCondition || c.Type == clusterv1.ReadyCondition || c.Message != "" || c.health() != good
}

// health is what a condition says.
type health int

const (
	good health = iota
	unknown
	bad
)

// health returns what a condition says. Those that name a problem or an activity are good if they are False.
func (c Condition) health() health {
	wanted := "True"
	if slices.Contains(negative(), c.Type) {
		wanted = "False"
	}
	switch cmp.Or(c.Status, "Unknown") {
	case wanted:
		return good
	case "Unknown":
		return unknown
	}
	return bad
}

// negative returns the conditions that are good if they are False.
func negative() []string {
	return []string{
		clusterv1.PausedCondition, clusterv1.DeletingCondition, clusterv1.ScalingUpCondition, clusterv1.ScalingDownCondition,
		clusterv1.RemediatingCondition, clusterv1.RollingOutCondition,
	}
}
