package diagnosis

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// What a percentage allows at least: a small fleet has too few Clusters and Machines to tell a cut network from a few failures.
const (
	minUnhealthyClusters = 10
	minUnhealthyMachines = 50
)

// Fleet counts the Clusters and Machines that have health checks.
type Fleet struct {
	// UnhealthyClusters are the Clusters with unhealthy Machines.
	Clusters, UnhealthyClusters int
	Machines, UnhealthyMachines int
}

// Census counts the Machines of all Clusters, and goes on counting those that become unhealthy.
type Census struct {
	fleet    Fleet
	clusters map[types.NamespacedName]bool // whether unhealthy
	machines map[types.UID]bool            // whether unhealthy
}

// NewCensus counts Machines of all Clusters. A Machine is under a health check since one has found it healthy or unhealthy. It is unhealthy
// if it is marked, or as soon as its condition NodeHealthy is not True: when a network is cut, the Nodes of all Clusters fail at the same
// time, but the timeouts of their health checks expire one after another.
func NewCensus(machines []clusterv1.Machine) *Census {
	c := &Census{clusters: map[types.NamespacedName]bool{}, machines: map[types.UID]bool{}}
	for i := range machines {
		m := &machines[i]
		marked := condition.IsFalse(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition)
		if !marked && (!m.DeletionTimestamp.IsZero() || !condition.Has(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition)) {
			continue
		}
		c.count(m, marked || !condition.IsTrue(m, clusterv1.MachineNodeHealthyV1Beta1Condition))
	}
	return c
}

// Due counts a Machine whose remediation has to begin: it is unhealthy, even if its Node looks healthy, or has never joined.
func (c *Census) Due(m *clusterv1.Machine) { c.count(m, true) }

// Fleet returns the numbers.
func (c *Census) Fleet() Fleet { return c.fleet }

func (c *Census) count(m *clusterv1.Machine, bad bool) {
	wasBad, known := c.machines[m.UID]
	if !known {
		c.fleet.Machines++
	}
	if bad && !wasBad {
		c.fleet.UnhealthyMachines++
	}
	c.machines[m.UID] = bad || wasBad
	cluster := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName}
	wasBad, known = c.clusters[cluster]
	if !known {
		c.fleet.Clusters++
	}
	if bad && !wasBad {
		c.fleet.UnhealthyClusters++
	}
	c.clusters[cluster] = bad || wasBad
}

// FleetLimits are how many Clusters may have unhealthy Machines at the same time, and how many Machines may be unhealthy. Percentages are
// rounded down, and allow at least 10 Clusters and 50 Machines.
type FleetLimits struct{ Clusters, Machines intstr.IntOrString }

// NewFleetLimits parses limits: each is a number or a percentage.
func NewFleetLimits(clusters, machines string) (FleetLimits, error) {
	l := FleetLimits{intstr.Parse(clusters), intstr.Parse(machines)}
	for _, v := range []*intstr.IntOrString{&l.Clusters, &l.Machines} {
		switch n, err := bounds.Scaled(v, 100, false); {
		case err != nil:
			return l, fmt.Errorf("%q: %w", v.String(), err)
		case n < 0:
			return l, fmt.Errorf("%q: must not be negative", v.String())
		}
	}
	return l, nil
}

// Brake is why no Machine of any Cluster is remediated.
type Brake struct {
	// Limit is the flag that sets the limit, with its value, and of what.
	Limit, Of string
	// Count is how many are unhealthy. It changes all the time, so that it does not belong into conditions.
	Count string
}

// Exceeded returns which limit a fleet exceeds; nil if none.
func (l FleetLimits) Exceeded(f Fleet) *Brake {
	switch {
	case exceeds(l.Clusters, f.UnhealthyClusters, f.Clusters, minUnhealthyClusters):
		return &Brake{"--remediation-max-unhealthy-clusters=" + l.Clusters.String(), "Clusters",
			fmt.Sprintf("%d of %d Clusters have unhealthy Machines", f.UnhealthyClusters, f.Clusters)}
	case exceeds(l.Machines, f.UnhealthyMachines, f.Machines, minUnhealthyMachines):
		return &Brake{"--remediation-max-unhealthy-machines=" + l.Machines.String(), "Machines of all Clusters",
			fmt.Sprintf("%d of %d Machines are unhealthy", f.UnhealthyMachines, f.Machines)}
	}
	return nil
}

func exceeds(limit intstr.IntOrString, unhealthy, total, least int) bool {
	most, err := bounds.Scaled(&limit, int32(min(total, math.MaxInt32)), false)
	if err != nil {
		return false // The flags were validated.
	}
	if limit.Type == intstr.String {
		most = max(most, int32(least))
	}
	return unhealthy > int(most)
}

// message returns the message of condition RemediationAllowed.
func (b *Brake) message() string {
	return fmt.Sprintf("No Machine is remediated: more %s are unhealthy at the same time than %s allows. Find what they have in common, "+
		"such as a network: remediation resumes when fewer are. Machines with annotation %s are remediated regardless",
		b.Of, b.Limit, clusterv1.RemediateMachineAnnotation)
}
