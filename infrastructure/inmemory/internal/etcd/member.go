package etcd

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
)

// The annotations of an etcd Pod that hold its member's state.
const (
	// ClusterIDAnnotation is the ID of the etcd cluster, decimal.
	ClusterIDAnnotation = annotationPrefix + "cluster-id"
	// MemberIDAnnotation is the ID of the member, decimal.
	MemberIDAnnotation = annotationPrefix + "member-id"
	// LeaderFromAnnotation is when the member became leader last (RFC 3339). The latest leads.
	LeaderFromAnnotation = annotationPrefix + "leader-from"
	// MemberRemovedAnnotation is on the Pod of a member that was removed from the cluster.
	MemberRemovedAnnotation = annotationPrefix + "member-removed"
	// RaftTermAnnotation is the term in which the member became leader last, decimal.
	RaftTermAnnotation = annotationPrefix + "raft-term"

	annotationPrefix = "etcd.inmemory.infrastructure.cluster.x-k8s.io/"
)

const (
	podPrefix = "etcd-"
	firstTerm = 2
)

// Member is one member of a workload cluster's etcd.
type Member struct {
	// Name is the name of the member, its Node and its machine.
	Name string
	// ID identifies the member.
	ID uint64
	// Removed tells that the member is no longer part of the cluster.
	Removed bool
	// Dead tells that the member's machine lost its power.
	Dead bool

	host       string
	leaderFrom time.Time
	term       uint64
}

// Cluster is the state of a workload cluster's etcd at one moment.
type Cluster struct {
	// ID identifies the cluster.
	ID uint64
	// Members are the members in the order of their IDs, without removed ones.
	Members []Member
	// Leader is the ID of the member that leads, 0 when there is no quorum.
	Leader uint64
	// Term is the raft term: it grows with every change of the leader.
	Term uint64

	removed []Member
}

// Join makes the member of a control plane machine: the given Pod, named etcd-<node> in kube-system, with
// the member's state added. The first member of a cluster is its leader. A Pod that exists is left alone,
// so a machine that was removed from the cluster does not come back by it.
func Join(g *cloud.Group, pod *corev1.Pod) error {
	c, err := State(g)
	if err != nil {
		return err
	}
	pod = pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[ClusterIDAnnotation] = strconv.FormatUint(c.ID, 10)
	pod.Annotations[MemberIDAnnotation] = strconv.FormatUint(id(string(g.UID()), string(pod.UID), pod.Name), 10)
	if len(c.Members) == 0 {
		pod.Annotations[LeaderFromAnnotation] = g.Now().UTC().Format(time.RFC3339Nano)
		pod.Annotations[RaftTermAnnotation] = strconv.Itoa(firstTerm)
	}
	if _, err := cloud.Ensure(g, pod); err != nil {
		return fmt.Errorf("join etcd as %s: %w", pod.Name, err)
	}
	return nil
}

// State reads the state of a workload cluster's etcd.
func State(g *cloud.Group) (Cluster, error) {
	c := Cluster{ID: id(string(g.UID()), g.Key().String()), Term: firstTerm}
	stored, _ := g.List(cloud.Resource{Resource: "pods"}, metav1.NamespaceSystem,
		cloud.Selector{Labels: labels.SelectorFromSet(labels.Set{"component": "etcd"})})
	for _, o := range stored {
		var pod corev1.Pod
		if err := o.Into(&pod); err != nil {
			return Cluster{}, err
		}
		m, isMember, err := memberOf(g, &pod)
		if err != nil {
			return Cluster{}, err
		}
		if !isMember {
			continue
		}
		c.Term = max(c.Term, m.term)
		if m.Removed {
			c.removed = append(c.removed, m)
			continue
		}
		c.Members = append(c.Members, m)
	}
	slices.SortFunc(c.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	c.Leader = c.elect()
	return c, nil
}

func memberOf(g *cloud.Group, pod *corev1.Pod) (Member, bool, error) {
	node, named := strings.CutPrefix(pod.Name, podPrefix)
	text, annotated := pod.Annotations[MemberIDAnnotation]
	if !named || !annotated {
		return Member{}, false, nil
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return Member{}, false, fmt.Errorf("annotation %s of Pod %s: %w", MemberIDAnnotation, pod.Name, err)
	}
	_, removed := pod.Annotations[MemberRemovedAnnotation]
	m := Member{Name: node, ID: number, Removed: removed, Dead: g.Dead(node), host: cmp.Or(pod.Status.PodIP, node)}
	// Without these two a member is one that never led.
	m.leaderFrom, _ = time.Parse(time.RFC3339Nano, pod.Annotations[LeaderFromAnnotation])
	m.term, _ = strconv.ParseUint(pod.Annotations[RaftTermAnnotation], 10, 64)
	return m, true, nil
}

// HasQuorum tells whether more than half of the members live. A cluster without members counts as one
// that is being made.
func (c Cluster) HasQuorum() bool {
	return len(c.Members) == 0 || 2*c.alive() > len(c.Members)
}

func (c Cluster) alive() int {
	n := 0
	for _, m := range c.Members {
		if !m.Dead {
			n++
		}
	}
	return n
}

// elect returns the living member that became leader last; when none ever was, the one with the lowest ID.
func (c Cluster) elect() uint64 {
	if !c.HasQuorum() {
		return 0
	}
	var leader Member
	for _, m := range c.Members {
		if !m.Dead && (leader.ID == 0 || m.leaderFrom.After(leader.leaderFrom)) {
			leader = m
		}
	}
	return leader.ID
}

func (c Cluster) byID(id uint64) (Member, bool) {
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return c.Members[i], true
}

func (c Cluster) byName(name string) (Member, bool) {
	for _, m := range slices.Concat(c.Members, c.removed) {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// remove takes a member out of the cluster.
func remove(g *cloud.Group, m Member) error {
	return annotate(g, m, MemberRemovedAnnotation, "")
}

// lead makes a member the leader of a new term. The time of the change is never earlier than that of the
// leader before, whatever the clock says.
func lead(g *cloud.Group, c Cluster, m Member) error {
	from := g.Now()
	for _, other := range c.Members {
		if !from.After(other.leaderFrom) {
			from = other.leaderFrom.Add(time.Nanosecond)
		}
	}
	return annotate(g, m,
		LeaderFromAnnotation, from.UTC().Format(time.RFC3339Nano),
		RaftTermAnnotation, strconv.FormatUint(c.Term+1, 10))
}

func annotate(g *cloud.Group, m Member, keysAndValues ...string) error {
	err := cloud.Modify(g, metav1.NamespaceSystem, podPrefix+m.Name, func(pod *corev1.Pod) error {
		for i := 0; i < len(keysAndValues); i += 2 {
			pod.Annotations[keysAndValues[i]] = keysAndValues[i+1]
		}
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil // The member went together with its Pod.
	}
	return err
}

// id derives an identity, which is never 0.
func id(seed ...string) uint64 {
	hash := fnv.New64a()
	for _, part := range seed {
		_, _ = hash.Write([]byte(part)) // A hash does not fail.
		_, _ = hash.Write([]byte{0})
	}
	return max(hash.Sum64(), 1)
}
