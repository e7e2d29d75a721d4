package replicas

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Counts are numbers of Machines with a condition. Machines that are being deleted count as long as they have it.
type Counts struct{ Ready, Available, UpToDate int32 }

// Count counts Machines.
func Count(machines []*clusterv1.Machine) Counts {
	var c Counts
	for _, m := range machines {
		if report.IsTrue(m, clusterv1.ReadyCondition) {
			c.Ready++
		}
		if report.IsTrue(m, clusterv1.AvailableCondition) {
			c.Available++
		}
		if report.IsTrue(m, clusterv1.MachineUpToDateCondition) {
			c.UpToDate++
		}
	}
	return c
}

// newborn is how long a Machine may be without a condition that its controller sets soon.
const newborn = 10 * time.Second

// MachinesReady aggregates the condition Ready of Machines, as condition t.
func MachinesReady(t string, machines []*clusterv1.Machine) metav1.Condition {
	return aggregate(t, clusterv1.ReadyCondition, machines)
}

// MachinesUpToDate aggregates the condition UpToDate of Machines, as condition t. New Machines may be without it for ten seconds.
func MachinesUpToDate(t string, machines []*clusterv1.Machine, now time.Time) metav1.Condition {
	known := make([]*clusterv1.Machine, 0, len(machines))
	for _, m := range machines {
		if report.Get(m, clusterv1.MachineUpToDateCondition) != nil || now.Sub(m.CreationTimestamp.Time) >= newborn {
			known = append(known, m)
		}
	}
	return aggregate(t, clusterv1.MachineUpToDateCondition, known)
}

func aggregate(t, of string, machines []*clusterv1.Machine) metav1.Condition {
	if len(machines) == 0 {
		return report.True(t, clusterv1.NoReplicasReason, "")
	}
	children := make([]report.Child, 0, len(machines))
	for _, m := range machines {
		c := report.Get(m, of)
		if c == nil {
			missing := report.Missing(of)
			c = &missing
		}
		_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		children = append(children, report.Child{
			Kind: clusterv1.MachineKind, Name: m.Name, ControlPlane: controlPlane, Source: report.Source{Condition: *c},
		})
	}
	return report.Aggregate(t, report.ReasonsOf(of), false, children)
}

// Remediating reports whether the owner, such as MachineSet, remediates Machines, and which unhealthy ones it does not.
func Remediating(owner string, machines []*clusterv1.Machine) metav1.Condition {
	t := clusterv1.RemediatingCondition
	var children []report.Child
	var unhealthy []string
	for _, m := range machines {
		remediated := report.Get(m, clusterv1.MachineOwnerRemediatedCondition)
		switch {
		case remediated != nil:
			c := *remediated
			c.Status = metav1.ConditionTrue // Whatever its state is, the remediation has begun.
			children = append(children, report.Child{Kind: clusterv1.MachineKind, Name: m.Name, Source: report.Source{Condition: c, Negative: true}})
		case report.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition):
			unhealthy = append(unhealthy, m.Name)
		}
	}
	slices.Sort(unhealthy)
	switch {
	case len(children) > 0:
		reasons := report.Reasons{True: clusterv1.RemediatingReason, False: clusterv1.NotRemediatingReason}
		return report.Aggregate(t, reasons, true, children)
	case len(unhealthy) == 1:
		return report.False(t, clusterv1.NotRemediatingReason, "Machine %s is not healthy (not to be remediated by %s)", unhealthy[0], owner)
	case len(unhealthy) > 1:
		return report.False(t, clusterv1.NotRemediatingReason, "Machines %s are not healthy (not to be remediated by %s)",
			report.Names(unhealthy), owner)
	}
	return report.False(t, clusterv1.NotRemediatingReason, "")
}

// Scale is how many replicas there are, and how many are wanted.
type Scale struct {
	Current int
	// Desired is spec.replicas. While the object is being deleted, none are wanted.
	Desired  *int32
	Deleting bool
	// Blocked are the reasons why nothing is done about it, if there are any.
	Blocked []string
	// Stale is a line about what takes long; empty if nothing does: see Stale.
	Stale string
}

// Up reports whether replicas are missing.
func (s Scale) Up() metav1.Condition {
	t := clusterv1.ScalingUpCondition
	wanted, ok := s.wanted()
	switch {
	case !ok:
		return waiting(t)
	case s.Current >= wanted:
		return report.False(t, clusterv1.NotScalingUpReason, "")
	}
	return report.True(t, clusterv1.ScalingUpReason, "%s", s.message("up", wanted))
}

// Down reports whether there are too many replicas.
func (s Scale) Down() metav1.Condition {
	t := clusterv1.ScalingDownCondition
	wanted, ok := s.wanted()
	switch {
	case !ok:
		return waiting(t)
	case s.Current <= wanted:
		return report.False(t, clusterv1.NotScalingDownReason, "")
	}
	message := s.message("down", wanted)
	if s.Stale != "" {
		message += "\n* " + s.Stale
	}
	return report.True(t, clusterv1.ScalingDownReason, "%s", message)
}

func (s Scale) wanted() (int, bool) {
	if s.Deleting {
		return 0, true
	}
	return int(max(0, ptr.Deref(s.Desired, 0))), s.Desired != nil
}

func (s Scale) message(direction string, wanted int) string {
	message := fmt.Sprintf("Scaling %s from %d to %d replicas", direction, s.Current, wanted)
	if len(s.Blocked) > 0 {
		message += " is blocked because:\n* " + strings.Join(s.Blocked, "\n* ")
	}
	return message
}

func waiting(t string) metav1.Condition {
	return report.Unknown(t, clusterv1.WaitingForReplicasSetReason, "Waiting for spec.replicas set")
}

// slowDeletion is how long a Machine may be in deletion until that is mentioned.
const slowDeletion = 15 * time.Minute

// Stale returns a line about the Machines that have been in deletion for long; empty if there are none.
func Stale(machines []*clusterv1.Machine, now time.Time) string {
	var names []string
	for _, m := range machines {
		if m.DeletionTimestamp != nil && now.Sub(m.DeletionTimestamp.Time) > slowDeletion {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "Machine " + names[0] + " in deletion since more than 15m"
	}
	return "Machines " + report.Names(names) + " in deletion since more than 15m"
}

// RollingOut reports whether Machines are replaced because they are not up to date, and why they are not.
func RollingOut(machines []*clusterv1.Machine) metav1.Condition {
	t := clusterv1.RollingOutCondition
	var lines []string
	outdated := 0
	for _, m := range machines {
		c := report.Get(m, clusterv1.MachineUpToDateCondition)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		outdated++
		for line := range strings.SplitSeq(c.Message, "\n") {
			if line != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	if outdated == 0 {
		return report.False(t, clusterv1.NotRollingOutReason, "")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(versionFirst(a), versionFirst(b)) })
	return report.True(t, clusterv1.RollingOutReason, "%s",
		strings.Join(append([]string{fmt.Sprintf("Rolling out %d not up-to-date replicas", outdated)}, lines...), "\n"))
}

// versionFirst returns a key that sorts lines about versions before all others.
func versionFirst(line string) string {
	if strings.HasPrefix(line, "* Version ") {
		return "0" + line
	}
	return "1" + line
}

// Deleting reports what the deletion of an object waits for; whats are such as "4 Machines".
func Deleting(deleting bool, whats ...string) metav1.Condition {
	t := clusterv1.DeletingCondition
	switch {
	case !deleting:
		return report.False(t, clusterv1.NotDeletingReason, "")
	case len(whats) == 0:
		return report.True(t, clusterv1.DeletionCompletedReason, "Deletion completed")
	}
	return report.True(t, clusterv1.DeletingReason, "Deleting %s", strings.Join(whats, " and "))
}

// Machines returns "1 Machine", or "4 Machines"; nothing if there are none.
func Machines(n int) []string {
	switch n {
	case 0:
		return nil
	case 1:
		return []string{"1 Machine"}
	}
	return []string{fmt.Sprintf("%d Machines", n)}
}
