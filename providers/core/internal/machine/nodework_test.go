package machine

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func plane(f fields) *unstructured.Unstructured {
	u := provided("GenericControlPlane", "controlplane.cluster.x-k8s.io", nil, f)
	u.SetName("cp")
	return u
}

func managed(c *clusterv1.Cluster) {
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "GenericControlPlane", Name: "cp"}
}

func TestNodeWorkAllowed(t *testing.T) {
	beingDeleted := func(c *clusterv1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }
	remaining := machine(named("cp-1"), object.ControlPlane)
	terminating := plane(nil)
	terminating.SetDeletionTimestamp(&metav1.Time{Time: now})
	terminating.SetFinalizers([]string{"x/y"})
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		cluster *clusterv1.Cluster
		objects []client.Object
		want    bool
	}{
		"AllRemain":         {"Cluster, control plane and a control plane Machine remain", machine(withNode), build.Cluster(managed), []client.Object{plane(nil), remaining}, true},
		"NoNode":            {"there is nothing to drain", machine(), build.Cluster(managed, object.Initialized), []client.Object{plane(nil), remaining}, false},
		"MayJoin":           {"a Node may have joined", machine(withProviderID), build.Cluster(managed, object.Initialized), []client.Object{plane(nil), remaining}, true},
		"CannotJoin":        {"no Node can join yet", machine(withProviderID), build.Cluster(managed), []client.Object{plane(nil), remaining}, false},
		"NoCluster":         {"the Cluster does not exist", machine(withNode), nil, []client.Object{plane(nil), remaining}, false},
		"ClusterDeleting":   {"the Cluster is being deleted", machine(withNode), build.Cluster(managed, beingDeleted), []client.Object{plane(nil), remaining}, false},
		"PlaneDeleting":     {"the control plane is being deleted", machine(withNode), build.Cluster(managed), []client.Object{terminating, remaining}, false},
		"PlaneGone":         {"the control plane object does not exist, but a control plane Machine remains", machine(withNode), build.Cluster(managed), []client.Object{remaining}, true},
		"NoPlane":           {"there is no control plane object, but a control plane Machine remains", machine(withNode), build.Cluster(), []client.Object{remaining}, true},
		"LastOne":           {"the last control plane Machine is being deleted", machine(withNode, object.ControlPlane, deleting), build.Cluster(managed), []client.Object{plane(nil), machine(withNode, object.ControlPlane, deleting)}, false},
		"ExternallyManaged": {"the control plane has no Machines, but remains", machine(withNode), build.Cluster(managed), []client.Object{plane(fields{"status": fields{"externalManagedControlPlane": true}})}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newWorld(t, tc.objects...).nodeWorkAllowed(t.Context(), &scope{machine: tc.machine, cluster: tc.cluster})
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v, err = %v", tc.reason, got, err)
			}
		})
	}
}

// TestNodeWorkWithStaleCache has objects in the API server that are not in the cache.
func TestNodeWorkWithStaleCache(t *testing.T) {
	remaining := machine(named("cp-1"), object.ControlPlane)
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		live    []client.Object
		want    bool
	}{
		"ControlPlane": {"a control plane Machine is not in the cache", build.Cluster(), []client.Object{build.Cluster(), remaining}, true},
		"Cluster":      {"the Cluster is not in the cache", nil, []client.Object{build.Cluster(), remaining}, true},
		"Neither":      {"there is none in the API server", nil, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.live...)
			w.Cache.Hide(tc.live...)
			got, err := w.nodeWorkAllowed(t.Context(), &scope{machine: machine(withNode), cluster: tc.cluster})
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v, err = %v", tc.reason, got, err)
			}
		})
	}
}

// TestLateNode deletes a Machine whose status does not have its Node yet.
func TestLateNode(t *testing.T) {
	rival := machine(named("m-2"), withNode, withProviderID)
	ofInfra := func(owner *clusterv1.Machine) *unstructured.Unstructured {
		return provided("GenericMachine", infrastructure, owner, fields{"spec": fields{"providerID": id}})
	}
	for name, tc := range map[string]struct {
		reason  string
		machine *clusterv1.Machine
		objects []client.Object
		// late is whether the Node joins after the drain.
		late    bool
		away    error
		drained int
		deleted bool
	}{
		"Joined":       {reason: "its Node is drained and deleted", machine: machine(withProviderID, deleting), drained: 1, deleted: true},
		"JoinedLater":  {reason: "a Node that joins later is deleted", machine: machine(withProviderID, deleting), late: true, deleted: true},
		"Uncopied":     {reason: "the infrastructure machine has the provider ID", machine: machine(deleting), objects: []client.Object{ofInfra(machine())}, drained: 1, deleted: true},
		"Others":       {reason: "the infrastructure machine is that of another Machine", machine: machine(deleting), objects: []client.Object{ofInfra(machine(named("m-2")))}},
		"Rival":        {reason: "another Machine has the Node", machine: machine(withProviderID, deleting), objects: []client.Object{rival}},
		"Disconnected": {reason: "there is no connection when the deletion begins", machine: machine(withProviderID, deleting), away: errors.New("down"), deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, machine(named("cp-1"), object.ControlPlane))...)
			s := &scope{machine: tc.machine, cluster: build.Cluster(object.Initialized)}
			if !tc.late {
				testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
			}
			w.workload.Err = tc.away
			if r, err := w.step(t, "node-work", s); err != nil || r.Ends() {
				t.Fatalf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if s.nodeWork {
				if r, err := w.step(t, "drain", s); err != nil || r.Ends() {
					t.Fatalf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
				}
			}
			if tc.away != nil {
				if r, err := w.step(t, "delete-node", s); err != nil || r.After() == 0 {
					t.Errorf("%s: the deletion of a Node that may have joined is retried: %q, %v", tc.reason, r.Waiting(), err)
				}
				w.workload.Err = nil
			}
			if tc.late {
				testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
			}
			if r, err := w.step(t, "delete-node", s); err != nil || r.Ends() {
				t.Fatalf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			err := w.workload.Client.Get(t.Context(), client.ObjectKeyFromObject(node()), &corev1.Node{})
			if w.drained != tc.drained || apierrors.IsNotFound(err) != tc.deleted {
				t.Errorf("%s: drained %d times, deleted: %t", tc.reason, w.drained, apierrors.IsNotFound(err))
			}
		})
	}
}

// TestPastDrain lists when a Node is not drained, although the drain has not completed.
func TestPastDrain(t *testing.T) {
	const hook = clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition
	withCondition := func(m *clusterv1.Machine) {
		condition.Set(m, condition.False(hook, clusterv1.ConditionSeverityInfo, clusterv1.WaitingExternalHookV1Beta1Reason, ""))
	}
	withRecord := func(m *clusterv1.Machine) { record(m, hook, metav1.NewTime(now)) }
	leaving := infraMachine(nil)
	leaving.SetDeletionTimestamp(&metav1.Time{Time: now})
	leaving.SetFinalizers([]string{"x/y"})
	for name, tc := range map[string]struct {
		reason  string
		machine *clusterv1.Machine
		objects []client.Object
		hidden  bool // from the cache
		want    bool
	}{
		"Not":          {reason: "nothing stops it", machine: machine(withNode), objects: []client.Object{infraMachine(nil)}},
		"Hook":         {"a pre-terminate hook was reached without a complete drain", machine(withNode, withCondition), []client.Object{infraMachine(nil)}, false, true},
		"RecordedOnly": {"the condition is lost", machine(withNode, withRecord), []client.Object{infraMachine(nil)}, false, true},
		"Leaving":      {"someone deletes the infrastructure machine", machine(withNode), []client.Object{leaving}, false, true},
		"Gone":         {"the infrastructure machine is gone", machine(withNode), nil, false, true},
		"Stale":        {reason: "the infrastructure machine is missing only in the cache", machine: machine(withNode), objects: []client.Object{infraMachine(nil)}, hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, machine(named("cp-1"), object.ControlPlane))...)
			if tc.hidden {
				w.Cache.Hide(tc.objects...)
			}
			s := &scope{machine: tc.machine, cluster: build.Cluster()}
			if _, err := w.decide(t.Context(), s); err != nil || !s.nodeWork || s.pastDrain != tc.want {
				t.Errorf("%s: work on the Node: %t, past the drain: %t, err = %v", tc.reason, s.nodeWork, s.pastDrain, err)
			}
		})
	}
}
