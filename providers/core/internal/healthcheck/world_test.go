package healthcheck

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	now   = object.Now()
	build object.Builder
)

// generous are the limits of a fleet that are never exceeded.
var generous, _ = diagnosis.NewFleetLimits("100%", "100%")

// badFor is how long Ready must be Unknown.
const badFor = 5 * time.Minute

// world is a fake management cluster with Cluster c and MachineHealthCheck h, and a fake workload cluster.
type world struct {
	*testing.T
	*fakeapi.Server
	workload *fakeapi.Workload
	limits   diagnosis.FleetLimits
	// check is the process under test.
	check *process
}

// process is one manager: it has a cache of each cluster.
type process struct {
	*step.Runner[*clusterv1.MachineHealthCheck]
	control *Controller
}

// newWorld returns a world with a check that is older than the delay of a first status, and with Machines.
func newWorld(t *testing.T, h *clusterv1.MachineHealthCheck, machines ...*clusterv1.Machine) *world {
	t.Helper()
	objects := []client.Object{build.Cluster(object.InfrastructureReady, object.Initialized), h, object.CRD(templateKind), object.CRD(requestKind)}
	for _, m := range machines {
		objects = append(objects, m)
	}
	w := &world{T: t, limits: generous, Server: fakeapi.New(t, fakeapi.Options{Objects: objects, Indexes: indexes()})}
	w.workload = w.NewWorkload(t)
	for _, m := range machines {
		if m.Status.NodeRef.IsDefined() {
			testenv.Must(t, w.workload.Client.Create(t.Context(), node(m.Status.NodeRef.Name, corev1.ConditionTrue, time.Hour)))
		}
	}
	w.check = w.newProcess()
	return w
}

// newProcess returns a manager with the current caches.
func (w *world) newProcess() *process {
	c := newController(w.ForController(), w.workload, w.limits)
	c.requestKinds = fakeapi.Follower(w, c.Clients, &clusterv1.MachineHealthCheckList{}).Watcher
	return &process{Runner: c.declared().Runner(c.Clients), control: c}
}

// reconcile reconciles the check once, and returns when it is reconciled again.
func (w *world) reconcile(by *process) (time.Duration, error) {
	w.Helper()
	result, err := by.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(build.MachineHealthCheck("h"))})
	return result.RequeueAfter, err
}

// settled reconciles the check until it writes nothing and is not requeued within a few seconds.
func (w *world) settled() {
	w.Helper()
	for range 10 {
		before := len(w.Writes)
		after, err := w.reconcile(w.check)
		testenv.Must(w, err)
		switch {
		case after > 0 && after <= countersDelay:
			w.Clock.Step(after)
		case len(w.Writes) == before: // Otherwise an event follows.
			return
		}
	}
	w.Error("the check is requeued again and again")
}

// begin settles the check, and forgets the requests until then.
func (w *world) begin() {
	w.Helper()
	w.settled()
	w.Events()
	w.Writes, w.LiveReads = nil, nil
}

// becomes gives condition Ready of Nodes a status, since some time ago.
func (w *world) becomes(status corev1.ConditionStatus, ago time.Duration, nodes ...string) {
	w.Helper()
	for _, name := range nodes {
		n := &corev1.Node{}
		testenv.Must(w, w.workload.Client.Get(w.Context(), client.ObjectKey{Name: name}, n))
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(w.Clock.Now().Add(-ago))}}
		testenv.Must(w, w.workload.Client.Status().Update(w.Context(), n))
	}
}

// change changes a Machine in the API server.
func (w *world) change(name string, change func(*clusterv1.Machine)) {
	w.Helper()
	m := w.machine(name)
	change(m)
	status := m.DeepCopy()
	testenv.Must(w, w.Update(w.Context(), m))
	status.ResourceVersion = m.ResourceVersion
	testenv.Must(w, w.Status().Update(w.Context(), status))
}

func (w *world) machine(name string) *clusterv1.Machine {
	w.Helper()
	m := build.Machine(name)
	testenv.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(m), m))
	return m
}

func (w *world) health() *clusterv1.MachineHealthCheck {
	w.Helper()
	h := build.MachineHealthCheck("h")
	testenv.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(h), h))
	return h
}

// marks describes the marks of Machines: "a: False UnhealthyNode, owner False WaitingForRemediation".
func (w *world) marks() []string {
	w.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(w, w.List(w.Context(), list))
	var out []string
	for i := range list.Items {
		m := &list.Items[i]
		checked, owner := condition.Get(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition), condition.Get(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
		line := m.Name + ":"
		if checked != nil {
			line += strings.TrimRight(fmt.Sprintf(" %s %s", checked.Status, checked.Reason), " ")
		}
		if owner != nil {
			line += fmt.Sprintf(", owner %s %s", owner.Status, owner.Reason)
		}
		if external := report.Get(m, clusterv1.MachineExternallyRemediatedCondition); external != nil {
			line += fmt.Sprintf(", external %s %s", external.Status, external.Reason)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// status describes the status of the check: "2/3, 1 allowed, True".
func (w *world) status() string {
	h := w.health()
	out := fmt.Sprintf("%d/%d, %d allowed", ptr.Deref(h.Status.CurrentHealthy, 0), ptr.Deref(h.Status.ExpectedMachines, 0), ptr.Deref(h.Status.RemediationsAllowed, 0))
	if c := condition.Get(h, clusterv1.RemediationAllowedV1Beta1Condition); c != nil {
		out += strings.TrimRight(fmt.Sprintf(", %s %s", c.Status, c.Reason), " ")
	}
	return out
}

// check returns MachineHealthCheck h with a limit.
func check(maxUnhealthy string, with ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	return build.MachineHealthCheck("h", append([]func(*clusterv1.MachineHealthCheck){func(h *clusterv1.MachineHealthCheck) {
		h.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		h.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
		h.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: object.UID("Cluster", "c")}}
		h.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.Parse(maxUnhealthy))
		h.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To(int32(badFor / time.Second)),
		}}
	}}, with...)...)
}

// running returns Machines with healthy Nodes of the same names.
func running(names ...string) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, name := range names {
		out = append(out, build.Machine(name, object.Running(now), func(m *clusterv1.Machine) {
			m.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		}))
	}
	return out
}

// fails gives a Machine a failure.
func fails(m *clusterv1.Machine) {
	older := m.GetV1Beta1Status()
	older.FailureMessage = ptr.To("no quota")
	m.SetV1Beta1Status(older)
}

func node(name string, status corev1.ConditionStatus, ago time.Duration) *corev1.Node {
	return object.Node(name, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	})
}

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}
