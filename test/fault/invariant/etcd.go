package invariant

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/members"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// oneEtcdCluster checks that etcd's cluster ID does not change, except once by a restore or a recovery. A simulated cluster that is made of
// a survivor has an ID of its own, so that a second one, or the old one again, is noticed.
func oneEtcdCluster(r Run) []Violation {
	most := 1
	if r.Scenario.Restores || r.Scenario.Recovers {
		most = 2
	}
	var ids []uint64
	for _, s := range r.Samples {
		if s.ClusterID == 0 || len(ids) > 0 && ids[len(ids)-1] == s.ClusterID {
			continue
		}
		if ids = append(ids, s.ClusterID); len(ids) > most {
			return []Violation{{Detail: fmt.Sprintf("etcd's cluster ID is %x on %s, but was %x", s.ClusterID, s.Asked, ids[:len(ids)-1])}}
		}
	}
	return nil
}

// oneInit checks that only one Machine of the Cluster under test has bootstrap data that initialize a cluster, and one that restores it.
func oneInit(r Run) []Violation {
	machines, restored, restores := map[string]bool{}, map[string]bool{}, 0
	if r.Scenario.Restores {
		restores = 1
	}
	for _, e := range slices.Concat(r.Before, r.Timeline) {
		if e.Object.GetKind() != "Secret" || !tested(e.Object) {
			continue
		}
		if script := bootstrapScript(e.Object); strings.Contains(script, restoreScript) {
			restored[e.Object.GetName()] = true
		} else if strings.Contains(script, "kubeadm init") {
			machines[e.Object.GetName()] = true
		}
	}
	if len(machines) > 1 || len(restored) > restores {
		return []Violation{{Detail: fmt.Sprintf("%d Machines have bootstrap data for kubeadm init, %d for a restore",
			len(machines), len(restored))}}
	}
	return nil
}

// restoreScript is in the bootstrap data of a Machine that restores a control plane.
const restoreScript = "/etc/cluster-api/restore.sh"

// tested reports whether an object belongs to the Cluster under test.
func tested(o *unstructured.Unstructured) bool {
	return o.GetLabels()[clusterv1.ClusterNameLabel] == scenario.ClusterName
}

// bootstrapScript returns the bootstrap data in a Secret. Empty: it has none.
func bootstrapScript(secret *unstructured.Unstructured) string {
	if _, isBootstrapData, _ := unstructured.NestedString(secret.Object, "data", "format"); !isBootstrapData {
		return ""
	}
	text, _, _ := unstructured.NestedString(secret.Object, "data", pki.KubeconfigKey)
	raw, _ := base64.StdEncoding.DecodeString(text) // The API server has encoded it.
	return string(raw)
}

// membersRemovedFirst checks that each etcd member has a machine, except those that an operation gives up.
func membersRemovedFirst(r Run) []Violation {
	for _, s := range withoutGivenUp(r) {
		if len(s.Gone) > 0 && !s.Over {
			return []Violation{{Detail: fmt.Sprintf("the machine of %s is gone, but etcd's members are %v", strings.Join(s.Gone, ", "), s.Members)}}
		}
	}
	return nil
}

// alwaysQuorum checks that a quorum of etcd members have machines, not counting those that an operation gives up.
func alwaysQuorum(r Run) []Violation {
	for _, s := range withoutGivenUp(r) {
		if !s.Over && len(s.Members) > 0 && 2*(len(s.Members)-len(s.Gone)) <= len(s.Members) {
			return []Violation{{Detail: fmt.Sprintf("etcd's members are %v, but the machines of %v are gone", s.Members, s.Gone)}}
		}
	}
	return nil
}

// withoutGivenUp returns the samples without what an operation gives up: a restore the whole etcd, all of whose machines are deleted, and a
// recovery the members of Machines without power, which are gone before their members are removed.
func withoutGivenUp(r Run) []members.Sample {
	if r.Scenario.Restores && len(r.Samples) > 0 {
		old := r.Samples[0].ClusterID
		return slices.DeleteFunc(slices.Clone(r.Samples), func(s members.Sample) bool { return s.ClusterID == old })
	}
	if !r.Scenario.Recovers {
		return r.Samples
	}
	lost := scenario.Powerless(slices.Concat(r.Before, r.Timeline).End())
	kept := slices.Clone(r.Samples)
	for i, s := range kept {
		givenUp := func(member string) bool { return slices.Contains(lost, member) }
		kept[i].Members = slices.DeleteFunc(slices.Clone(s.Members), givenUp)
		kept[i].Gone = slices.DeleteFunc(slices.Clone(s.Gone), givenUp)
	}
	return kept
}

// finalMembers checks that the last sample has one member for each control plane Machine. External etcd is not sampled.
func finalMembers(r Run) []Violation {
	if r.Scenario.Deletes || r.Unwatched || r.Scenario.ExternalEtcd || r.Scenario.IPAM || r.Scenario.Operator {
		return nil
	}
	if len(r.Samples) == 0 {
		return []Violation{{Detail: "etcd was never reachable"}}
	}
	var want []string
	end := append(append(history.Timeline{}, r.Before...), r.Timeline...).End()
	controlPlane, _ := scenario.Machines(scenario.OfCluster(end, scenario.ClusterName))
	for _, m := range controlPlane {
		want = append(want, m.GetName())
	}
	if last := r.Samples[len(r.Samples)-1]; !slices.Equal(want, last.Members) {
		return []Violation{{Detail: fmt.Sprintf("the control plane Machines are %v, etcd's members %v", want, last.Members)}}
	}
	return nil
}
