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
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// oneEtcdCluster checks that etcd's cluster ID does not change, except by a restore.
func oneEtcdCluster(r Run) []Violation {
	if r.Scenario.Restores {
		return nil
	}
	var first uint64
	for _, s := range r.Samples {
		if first == 0 {
			first = s.ClusterID
		}
		if s.ClusterID != first && s.ClusterID != 0 {
			return []Violation{{Detail: fmt.Sprintf("etcd's cluster ID was %x, but is %x on %s", first, s.ClusterID, s.Asked)}}
		}
	}
	return nil
}

// oneInit checks that only one Machine of the Cluster under test has bootstrap data that initialize a cluster, and one that restores it.
func oneInit(r Run) []Violation {
	machines, most := map[string]bool{}, 1
	if r.Scenario.Restores {
		most = 2
	}
	for _, e := range slices.Concat(r.Before, r.Timeline) {
		if e.Object.GetKind() == "Secret" && tested(e.Object) && initializes(e.Object) {
			machines[e.Object.GetName()] = true
		}
	}
	if len(machines) > most {
		return []Violation{{Detail: fmt.Sprintf("%d Machines have bootstrap data for kubeadm init", len(machines))}}
	}
	return nil
}

// tested reports whether an object belongs to the Cluster under test.
func tested(o *unstructured.Unstructured) bool {
	return o.GetLabels()[clusterv1.ClusterNameLabel] == scenario.ClusterName
}

func initializes(secret *unstructured.Unstructured) bool {
	if _, isBootstrapData, _ := unstructured.NestedString(secret.Object, "data", "format"); !isBootstrapData {
		return false
	}
	text, _, _ := unstructured.NestedString(secret.Object, "data", pki.KubeconfigKey)
	raw, err := base64.StdEncoding.DecodeString(text)
	return err == nil && strings.Contains(string(raw), "kubeadm init")
}

// membersRemovedFirst checks that each etcd member has a machine.
func membersRemovedFirst(r Run) []Violation {
	for _, s := range r.Samples {
		if len(s.Gone) > 0 && !s.Over && !r.Scenario.Restores {
			return []Violation{{Detail: fmt.Sprintf("the machine of %s is gone, but etcd's members are %v", strings.Join(s.Gone, ", "), s.Members)}}
		}
	}
	return nil
}

// alwaysQuorum checks that a quorum of etcd members have machines.
func alwaysQuorum(r Run) []Violation {
	for _, s := range r.Samples {
		if !s.Over && !r.Scenario.Restores && len(s.Members) > 0 && 2*(len(s.Members)-len(s.Gone)) <= len(s.Members) {
			return []Violation{{Detail: fmt.Sprintf("etcd's members are %v, but the machines of %v are gone", s.Members, s.Gone)}}
		}
	}
	return nil
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
