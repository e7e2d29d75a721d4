package journey

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// hindrance is what may keep a Machine that is deleted from going.
type hindrance struct {
	reason string
	// guarded: a Pod runs on the Machine that its disruption budget does not let go. attached: a volume is attached.
	guarded, attached bool
	// machine is changed before the Machine is deleted.
	machine func(*clusterv1.Machine)
	// stated is the condition that says what is waited for, with its reason. Empty: the Machine goes by itself.
	stated clusterv1.ConditionType
	why    string
	// cordoned tells whether the Node takes no more Pods while the Machine waits.
	cordoned bool
}

const (
	preDrain     = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/test"
	preTerminate = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/test"
)

func annotated(key string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, "") }
}

func hindrances() []hindrance {
	soon := &metav1.Duration{Duration: time.Second}
	return []hindrance{
		{reason: "nothing is in the way"},
		{reason: "a disruption budget", guarded: true, stated: clusterv1.DrainingSucceededCondition, why: clusterv1.DrainingReason, cordoned: true},
		{reason: "no draining is wanted", guarded: true, machine: annotated(clusterv1.ExcludeNodeDrainingAnnotation)},
		{reason: "draining may not take long", guarded: true, machine: func(m *clusterv1.Machine) { m.Spec.NodeDrainTimeout = soon }},
		{reason: "a volume", attached: true, stated: clusterv1.VolumeDetachSucceededCondition, why: clusterv1.WaitingForVolumeDetachReason, cordoned: true},
		{reason: "volumes do not matter", attached: true, machine: annotated(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)},
		{reason: "detaching may not take long", attached: true, machine: func(m *clusterv1.Machine) { m.Spec.NodeVolumeDetachTimeout = soon }},
		{reason: "somebody acts before draining", machine: annotated(preDrain), stated: clusterv1.PreDrainDeleteHookSucceededCondition, why: clusterv1.WaitingExternalHookReason},
		{
			reason: "somebody acts before the end", machine: annotated(preTerminate),
			stated: clusterv1.PreTerminateDeleteHookSucceededCondition, why: clusterv1.WaitingExternalHookReason, cordoned: true,
		},
	}
}

// Machines that are deleted go when what is in their way has gone, and say what that is; all of them at the same time.
func TestWhatKeepsMachines(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	all := hindrances()
	c := w.Subject(NewCluster("keeps", w.Class(w.Tools.ProjectTemplate())).Workers(int32(len(all))).Build())
	c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(len(all)), c.Agrees)
	before := c.Picture()
	workers := before.Workers()
	for i, h := range all {
		c.hinder(h, &workers[i])
	}
	for i := range workers {
		if err := c.Client.Delete(t.Context(), &workers[i]); err != nil {
			t.Fatal(err)
		}
	}
	c.Eventually("each says what it waits for, or goes", func(p *Picture) error {
		var errs []error
		for i, h := range all {
			if err := c.waits(h, &workers[i], p); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", h.reason, err))
			}
		}
		return errors.Join(errs...)
	})
	for i, h := range all {
		if h.stated != "" {
			c.release(h, &workers[i])
		}
	}
	c.Eventually("all are replaced", Ready, ControlPlanes(1), Workers(len(all)), NewMachines((*Picture).Workers, before),
		SameMachines((*Picture).ControlPlane, before), c.Agrees)
	c.Gone()
}

// hinder puts what may be in the way onto a Machine and its Node.
func (c *Subject) hinder(h hindrance, m *clusterv1.Machine) {
	c.t.Helper()
	if h.machine != nil {
		c.update(m, func() { h.machine(m) })
	}
	if h.guarded {
		c.guard(m)
	}
	if h.attached {
		c.attach(m, []corev1.AttachedVolume{{Name: "v", DevicePath: "/dev/v"}})
	}
}

// waits looks whether a Machine that is being deleted waits as expected, or is gone if nothing keeps it.
func (c *Subject) waits(h hindrance, m *clusterv1.Machine, p *Picture) error {
	i := slices.IndexFunc(p.Machines.Items, func(now clusterv1.Machine) bool { return now.UID == m.UID })
	switch {
	case i < 0 && h.stated == "":
		return nil
	case i < 0:
		return errors.New("it is gone")
	case h.stated == "":
		return errors.New("it is still there")
	}
	if now := condition.Get(&p.Machines.Items[i], h.stated); now == nil || now.Status != corev1.ConditionFalse || now.Reason != h.why {
		return fmt.Errorf("condition %s is %+v, want False and %s", h.stated, now, h.why)
	}
	node := &corev1.Node{}
	if err := c.Workload().client.Get(c.t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
		return fmt.Errorf("its Node must stay as long as it does: %w", err)
	}
	if node.Spec.Unschedulable != h.cordoned {
		return fmt.Errorf("the Node is cordoned: %t, want %t", node.Spec.Unschedulable, h.cordoned)
	}
	return nil
}

// release takes away what is in the way of a Machine.
func (c *Subject) release(h hindrance, m *clusterv1.Machine) {
	c.t.Helper()
	switch {
	case h.guarded:
		if err := c.Workload().client.Delete(c.t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: named(m)}); err != nil {
			c.t.Fatal(err)
		}
	case h.attached:
		c.attach(m, nil)
	default:
		c.update(m, func() {
			delete(m.Annotations, preDrain)
			delete(m.Annotations, preTerminate)
		})
	}
}

func named(m *clusterv1.Machine) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: m.Name, Labels: map[string]string{"on": m.Name}}
}

// guard lets a Pod run on a Machine, with a disruption budget that does not let it go.
func (c *Subject) guard(m *clusterv1.Machine) {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: named(m),
		Spec:       corev1.PodSpec{NodeName: m.Status.NodeRef.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: named(m), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
	}}
	workload := c.Workload().client
	for _, o := range []client.Object{pod, budget} {
		if err := workload.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := workload.Status().Update(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
}

// attach says which volumes are attached to a Machine.
func (c *Subject) attach(m *clusterv1.Machine, volumes []corev1.AttachedVolume) {
	c.t.Helper()
	for {
		node := &corev1.Node{}
		err := c.Workload().client.Get(c.t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node)
		if err == nil {
			node.Status.VolumesAttached = volumes
			err = c.Workload().client.Status().Update(c.t.Context(), node)
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			c.t.Fatal(err)
		}
		return
	}
}
