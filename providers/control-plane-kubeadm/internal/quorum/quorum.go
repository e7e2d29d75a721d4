package quorum

import (
	"fmt"
	"slices"
	"strings"
)

// Member is the response of the etcd member on one Node.
type Member struct {
	// Node is the Node of the member.
	Node string
	// Err is why there is no response. All other fields are empty then.
	Err error
	// ClusterID identifies the etcd cluster that the member belongs to.
	ClusterID uint64
	// Name is the name of the member, which is that of its Node.
	Name string
	// Leader is true if the member is the leader.
	Leader bool
	// Version is the version of etcd that the member reports. It is not validated, and empty if it reports none.
	Version string
	// Members are the names of all members that it knows, sorted. The names of members that have not started yet are empty.
	Members []string
	// Alarms are the alarms of this member.
	Alarms []string
}

// Cluster is an etcd cluster according to the members that respond.
type Cluster struct {
	// Members are the names of all members, sorted; nil if no member responds.
	Members []string
	// Healthy are the names of the members that respond and have no alarm.
	Healthy []string
	// Leader is the name of the leader, empty if it is unknown.
	Leader string
}

// Of returns the etcd cluster according to these responses.
func Of(responses []Member) Cluster {
	var c Cluster
	for _, member := range responses {
		if member.Err != nil {
			continue
		}
		// The list of a member that lags behind may be too short; the longest list is the safe choice.
		if len(member.Members) > len(c.Members) {
			c.Members = member.Members
		}
		if len(member.Alarms) == 0 {
			c.Healthy = append(c.Healthy, member.Node)
		}
		if member.Leader {
			c.Leader = member.Node
		}
	}
	return c
}

// Disagree reports whether the responses contain different lists of members.
func Disagree(responses []Member) bool {
	responses = slices.DeleteFunc(slices.Clone(responses), func(m Member) bool { return m.Err != nil })
	return slices.ContainsFunc(responses, func(m Member) bool { return !slices.Equal(m.Members, responses[0].Members) })
}

// HealthyWithout returns the healthy members other than this one.
func (c Cluster) HealthyWithout(name string) []string {
	return slices.DeleteFunc(slices.Clone(c.Healthy), func(n string) bool { return n == name })
}

// Without returns the cluster after the removal of a member.
func (c Cluster) Without(name string) Cluster {
	c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(n string) bool { return n == name })
	c.Healthy = c.HealthyWithout(name)
	return c
}

// MayRemove returns what is missing before a member can be removed: a quorum of the remaining members must be healthy. It is
// empty if the member can be removed.
func (c Cluster) MayRemove(name string) string {
	remaining := len(c.Members) - 1
	if remaining < 1 {
		return "another etcd member: the last one cannot be removed"
	}
	quorum := remaining/2 + 1
	if healthy := len(c.HealthyWithout(name)); healthy < quorum {
		return fmt.Sprintf("%s other than %s (found %d)", healthyMembers(quorum), name, healthy)
	}
	return ""
}

// MayAdd returns what is missing before a member can be added: even if it never starts, a quorum must be healthy. It is empty if a member
// can be added.
func (c Cluster) MayAdd() string { return c.MayGain(1) }

// MayGain returns what is missing so that a quorum is healthy even if n members are added that never respond. It is empty if nothing is.
func (c Cluster) MayGain(n int) string {
	if quorum := (len(c.Members)+n)/2 + 1; len(c.Healthy) < quorum {
		return fmt.Sprintf("%s (found %d)", healthyMembers(quorum), len(c.Healthy))
	}
	return ""
}

func healthyMembers(n int) string {
	if n == 1 {
		return "a healthy etcd member"
	}
	return fmt.Sprintf("%d healthy etcd members", n)
}

// MayAbandon returns what is missing before a machine can be deleted that may run one of these members, if it is unknown which
// one: the healthy members other than these must be a quorum of all. It is empty if the machine can be deleted; its member, if
// it has one, is removed later because it has no Machine.
func (c Cluster) MayAbandon(names []string) string {
	healthy := slices.DeleteFunc(slices.Clone(c.Healthy), func(n string) bool { return slices.Contains(names, n) })
	if quorum := len(c.Members)/2 + 1; len(healthy) < quorum {
		return fmt.Sprintf("%s other than [%s] (found %d): these may be the members of Machines without a Node",
			healthyMembers(quorum), strings.Join(names, " "), len(healthy))
	}
	return ""
}
