package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func withReports(conditions ...metav1.Condition) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.SetConditions(conditions) }
}

// TestNodeReports is the order in which a Machine says why its Node is unknown.
func TestNodeReports(t *testing.T) {
	initialized := build.Cluster(object.Initialized, func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) })
	provisioned := build.Cluster(func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) })
	before := withReports(report.True("NodeReady", "NodeReady", ""), report.True("NodeHealthy", "NodeHealthy", ""))
	lost := func(ago time.Duration) error { return &remote.NotConnectedError{Since: now.Add(-ago)} }
	for _, tt := range []struct {
		reason  string
		machine *clusterv1.Machine
		cluster *clusterv1.Cluster
		found   nodeFinding
		want    *metav1.Condition // NodeReady; nil if it stays as it is.
	}{
		{"the infrastructure comes first", machine(), build.Cluster(), nodeFinding{}, unknownNode("InspectionFailed", "Waiting for Cluster status.infrastructureReady to be true")},
		{"then the control plane", machine(), provisioned, nodeFinding{}, unknownNode("InspectionFailed", "Waiting for Cluster control plane to be initialized")},
		{"then the machine", machine(), initialized, nodeFinding{}, unknownNode("InspectionFailed", "Waiting for GenericMachine to report spec.providerID")},
		{"then the Node", machine(withProviderID), initialized, nodeFinding{looked: true}, unknownNode("NodeDoesNotExist", "Waiting for a Node with spec.providerID "+id+" to exist")},
		{"no connection yet", machine(withProviderID), initialized, nodeFinding{err: lost(time.Second)}, unknownNode("ConnectionDown", "Remote connection not established yet")},
		{"a lost connection leaves what is known", machine(withProviderID, before), initialized, nodeFinding{err: lost(time.Minute)}, nil},
		{"for five minutes", machine(withProviderID, before), initialized, nodeFinding{err: lost(5 * time.Minute)},
			unknownNode("ConnectionDown", "Last successful probe at "+now.Add(-5*time.Minute).UTC().Format(time.RFC3339))},
		{"a manager that has started since does not know when it was lost", machine(withProviderID, withReports(report.Unknown("NodeReady", "ConnectionDown", "Last successful probe at T"))),
			initialized, nodeFinding{err: lost(5 * time.Minute)}, nil},
		{"other errors are in the log", machine(withProviderID, before), initialized, nodeFinding{err: errors.New("token=secret")}, unknownNode("InternalError", "Please check controller logs for errors")},
		{"a Node that is gone", machine(withProviderID, withNode), initialized, nodeFinding{looked: true},
			falseNode("NodeDeleted", "Node node-1 has been deleted while the Machine still exists")},
		{"which is right for a Machine in deletion", machine(withProviderID, withNode, deleting), initialized, nodeFinding{looked: true},
			falseNode("NodeDeleted", "Node node-1 has been deleted")},
		{"a deletion keeps what is known", machine(withProviderID, withNode, deleting, before), initialized, nodeFinding{}, nil},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := &scope{machine: tt.machine, cluster: tt.cluster, now: now}
			s.found.node = tt.found
			got := s.nodeReports(now)
			if tt.want == nil {
				if got != nil {
					t.Errorf("got %v, want what there was", got)
				}
				return
			}
			healthy := *tt.want
			healthy.Type = clusterv1.MachineNodeHealthyCondition
			if diff := cmp.Diff([]metav1.Condition{*tt.want, healthy}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func unknownNode(reason, message string) *metav1.Condition {
	c := report.Unknown(clusterv1.MachineNodeReadyCondition, reason, "%s", message)
	return &c
}

func falseNode(reason, message string) *metav1.Condition {
	c := report.False(clusterv1.MachineNodeReadyCondition, reason, "%s", message)
	return &c
}

func TestNodeConditions(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	type list = []corev1.NodeCondition
	of := func(ready, pressure corev1.ConditionStatus, message string) list {
		return list{{Type: "Ready", Status: ready, Message: message}, {Type: "MemoryPressure", Status: pressure, Message: message},
			{Type: "DiskPressure", Status: pressure, Message: message}, {Type: "PIDPressure", Status: pressure, Message: message}}
	}
	for _, tt := range []struct {
		reason         string
		conditions     list
		ready, healthy metav1.Condition
	}{
		{"healthy", of(yes, no, ""), report.True("NodeReady", "NodeReady", ""), report.True("NodeHealthy", "NodeHealthy", "")},
		{"the kubelet is silent: all conditions say the same", of(unknown, unknown, "silent"),
			report.Unknown("NodeReady", "NodeReadyUnknown", "* Node.Ready: silent"), report.Unknown("NodeHealthy", "NodeHealthyUnknown", "* Node.AllConditions: silent")},
		{"one is bad, without a message", append(of(yes, no, "")[:2:2], corev1.NodeCondition{Type: "DiskPressure", Status: yes}, of(yes, no, "")[3]),
			report.True("NodeReady", "NodeReady", ""), report.False("NodeHealthy", "NodeNotHealthy", "* Node.DiskPressure: Condition is True")},
		{"none was reported", nil, report.Unknown("NodeReady", "NodeReadyUnknown", "* Node.Ready: Condition not yet reported"),
			report.Unknown("NodeHealthy", "NodeHealthyUnknown", "* Node.AllConditions: Condition not yet reported")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			n := node(func(n *corev1.Node) { n.Status.Conditions = tt.conditions })
			if diff := cmp.Diff([]metav1.Condition{tt.ready, tt.healthy}, []metav1.Condition{nodeReady(n), nodeHealthy(n)}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMinReady: the MachineSet of a Machine says how long it must be ready, or else the Machine itself, as of other control plane providers.
func TestMinReady(t *testing.T) {
	set := build.MachineSet("set", func(set *clusterv1.MachineSet) { set.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](7) })
	own := func(m *clusterv1.Machine) { m.Spec.MinReadySeconds = ptr.To[int32](9) }
	owned := func(m *clusterv1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
	}
	for _, tt := range []struct {
		reason  string
		machine *clusterv1.Machine
		want    time.Duration
	}{
		{"none", machine(), 0},
		{"its own", machine(own), 9 * time.Second},
		{"of its MachineSet", machine(owned, own), 7 * time.Second},
	} {
		s := &scope{machine: tt.machine}
		if err := newWorld(t, set).compare(t.Context(), s); err != nil || s.found.minReady != tt.want {
			t.Errorf("%s: got %s, err = %v, want %s", tt.reason, s.found.minReady, err, tt.want)
		}
	}
}

func TestAvailable(t *testing.T) {
	yes := report.True("Ready", "Ready", "")
	since := yes
	since.LastTransitionTime = metav1.NewTime(now.Add(-40 * time.Second))
	for _, tt := range []struct {
		reason   string
		machine  *clusterv1.Machine
		ready    metav1.Condition
		minReady time.Duration
		want     metav1.Condition
		left     time.Duration
	}{
		{"not ready", machine(), report.False("Ready", "NotReady", "x"), 0, report.False("Available", "NotReady", ""), 0},
		{"ready is enough by default", machine(), yes, 0, report.True("Available", "Available", ""), 0},
		{"ready from now on", machine(), yes, time.Minute, report.False("Available", "WaitingForMinReadySeconds", ""), time.Minute},
		{"ready for a while", machine(withReports(since)), yes, time.Minute, report.False("Available", "WaitingForMinReadySeconds", ""), 20 * time.Second},
		{"ready for long enough", machine(withReports(since)), yes, 40 * time.Second, report.True("Available", "Available", ""), 0},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := &scope{machine: tt.machine}
			s.found.minReady = tt.minReady
			got, left := s.availableReport(tt.ready, now)
			if diff := cmp.Diff(tt.want, got); diff != "" || left != tt.left {
				t.Errorf("%s left, want %s; -want +got:\n%s", left, tt.left, diff)
			}
		})
	}
}

func TestUpToDate(t *testing.T) {
	family := func(own, newest string, change func(*clusterv1.MachineDeployment)) *revision {
		r := &revision{set: &clusterv1.MachineSet{}, deployment: &clusterv1.MachineDeployment{}}
		r.set.Annotations, r.deployment.Annotations = map[string]string{clusterv1.RevisionAnnotation: own}, map[string]string{clusterv1.RevisionAnnotation: newest}
		v := "v1"
		r.set.Spec.Template.Spec.Version, r.deployment.Spec.Template.Spec.Version = v, v
		if change != nil {
			change(r.deployment)
		}
		return r
	}
	newer, upToDate := "v2", []metav1.Condition{report.True("UpToDate", "UpToDate", "")}
	kubelet := func(is, wanted string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			m.Spec.Version, m.Status.NodeInfo = wanted, &corev1.NodeSystemInfo{KubeletVersion: is}
		}
	}
	for _, tt := range []struct {
		reason string
		family *revision
		want   []metav1.Condition
		with   func(*clusterv1.Machine)
	}{
		{"nothing decides about it", nil, nil, kubelet("v1.29.0", "v1.30.0")},
		{"the newest revision", family("2", "2", nil), upToDate, nil},
		{"a MachineSet that has no revision yet is new", family("", "2", nil), upToDate, nil},
		{"the kubelet is not updated yet", family("2", "2", nil), []metav1.Condition{
			report.False("UpToDate", "Updating", "* Node.status.nodeInfo.kubeletVersion v1.29.9, v1.30.0 required"),
		}, kubelet("v1.29.9", "v1.30.0")},
		{"the kubelet is newer", family("2", "2", nil), upToDate, kubelet("v1.31.0", "v1.30.0")},
		{"distributions add to the version", family("2", "2", nil), upToDate, kubelet("v1.30.0-eks-1", "v1.30.0")},
		{"the kubelet has another version scheme", family("2", "2", nil), upToDate, kubelet("latest", "v1.30.0")},
		{"the Machine has no version", family("2", "2", nil), upToDate, kubelet("v1.29.0", "")},
		{"an older revision, with all reasons", family("1", "2", func(md *clusterv1.MachineDeployment) {
			md.Spec.Template.Spec.Version = newer
			md.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "GenericMachineTemplate", Name: "new"}
		}), []metav1.Condition{report.False("UpToDate", "NotUpToDate", "* Version v1, v2 required\n* GenericMachine is not up-to-date")}, kubelet("v1.29.0", "v1.30.0")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := &scope{machine: machine(), now: now}
			if tt.with != nil {
				tt.with(s.machine)
			}
			s.found.revision = tt.family
			if diff := cmp.Diff(tt.want, s.upToDateReport()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDeletionStages: the step that waits says where the deletion is.
func TestDeletionStages(t *testing.T) {
	hook := clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/x"
	w := newWorld(t, build.Cluster(object.Initialized), machine(deleting, annotated(hook, ""), withReports(report.True("Ready", "Ready", ""))), infraMachine(nil))
	w.reconcile(t)
	m := machine()
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	got := report.Get(m, clusterv1.DeletingCondition)
	if got == nil || got.Reason != clusterv1.MachineDeletingWaitingForPreTerminateHookReason || got.Message != "Waiting for annotation "+hook+" to be removed" {
		t.Errorf("Deleting = %v", got)
	}
	if ready := report.Get(m, clusterv1.ReadyCondition); ready == nil || ready.Status != metav1.ConditionFalse ||
		condition.IsTrue(m, clusterv1.ReadyV1Beta1Condition) {
		t.Errorf("Ready = %v", ready)
	}
}
