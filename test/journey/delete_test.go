package journey

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// blocker is a possible obstacle to the deletion of a Machine.
type blocker struct {
	reason string
	// protected: a disruption budget prevents the eviction of a Pod. attached: a volume is attached. detaching: only a VolumeAttachment says so.
	// kept: the volume is that of a Pod that stays.
	protected, attached, detaching, kept bool
	// machine changes the Machine before it is deleted.
	machine func(*clusterv1.Machine)
	// waitsFor is the condition that is False, with its reason in why. Empty: the Machine is deleted without waiting.
	waitsFor clusterv1.ConditionType
	why      string
	// cause is the reason that clusterctl explain reports, and the kind.
	cause string
	// cordoned is set if the Node is cordoned while the Machine waits.
	cordoned bool
}

const (
	preDrain     = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/test"
	preTerminate = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/test"
)

func annotated(key string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, "") }
}

func blockers() []blocker {
	soon := &metav1.Duration{Duration: time.Second}
	return []blocker{
		{reason: "no blocker"},
		{reason: "a disruption budget", protected: true, waitsFor: clusterv1.DrainingSucceededCondition, why: clusterv1.DrainingReason, cause: "DrainBlocked Machine", cordoned: true},
		{reason: "the Node is not drained", protected: true, machine: annotated(clusterv1.ExcludeNodeDrainingAnnotation)},
		{reason: "draining times out", protected: true, machine: func(m *clusterv1.Machine) { m.Spec.NodeDrainTimeout = soon }},
		{reason: "a volume", attached: true, waitsFor: clusterv1.VolumeDetachSucceededCondition, why: clusterv1.WaitingForVolumeDetachReason, cause: "VolumesAttached Machine", cordoned: true},
		{reason: "volumes are ignored", attached: true, machine: annotated(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)},
		{reason: "detaching times out", attached: true, machine: func(m *clusterv1.Machine) { m.Spec.NodeVolumeDetachTimeout = soon }},
		{reason: "a VolumeAttachment", detaching: true, waitsFor: clusterv1.VolumeDetachSucceededCondition, why: clusterv1.WaitingForVolumeDetachReason, cause: "VolumesAttached Machine", cordoned: true},
		{reason: "the volume of a Pod that stays", attached: true, kept: true},
		{reason: "a pre-drain hook", machine: annotated(preDrain), waitsFor: clusterv1.PreDrainDeleteHookSucceededCondition, why: clusterv1.WaitingExternalHookReason, cause: "DeletionHook Machine"},
		{
			reason: "a pre-terminate hook", machine: annotated(preTerminate),
			waitsFor: clusterv1.PreTerminateDeleteHookSucceededCondition, why: clusterv1.WaitingExternalHookReason, cause: "DeletionHook Machine", cordoned: true,
		},
	}
}

// TestMachineDeletionWaits deletes several Machines at the same time. Each reports what it waits for, and is deleted after that.
func TestMachineDeletionWaits(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	all := blockers()
	c := w.Subject(NewCluster("keeps", w.Class(w.Tools.ProjectTemplate())).Workers(int32(len(all))).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(len(all)), c.WorkloadMatches)
	before := c.Snapshot()
	workers := before.Workers()
	for i, h := range all {
		c.block(h, &workers[i])
	}
	for i := range workers {
		if err := c.Client.Delete(t.Context(), &workers[i]); err != nil {
			t.Fatal(err)
		}
	}
	c.Eventually("each Machine reports what it waits for, or is deleted", func(p *Snapshot) error {
		var errs []error
		for i, h := range all {
			if err := c.waits(h, &workers[i], p); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", h.reason, err))
			}
		}
		return errors.Join(errs...)
	})
	c.Eventually("what each Machine waits for is explained", c.ExplainsAll(causes(all, workers)...))
	for i, h := range all {
		if h.waitsFor != "" {
			c.release(h, &workers[i])
		}
	}
	c.Eventually("all are replaced", Ready, ControlPlanes(1), Workers(len(all)), NewMachines((*Snapshot).Workers, before),
		SameMachines((*Snapshot).ControlPlane, before), c.WorkloadMatches)
	c.Gone()
}

// causes returns what `clusterctl explain` reports about blocked Machines.
func causes(all []blocker, workers []clusterv1.Machine) []string {
	var list []string
	for i, h := range all {
		if h.waitsFor != "" {
			list = append(list, h.cause+"/"+workers[i].Name)
		}
	}
	return list
}

// block sets up a blocker for a Machine and its Node.
func (c *Subject) block(h blocker, m *clusterv1.Machine) {
	c.t.Helper()
	if h.machine != nil {
		c.update(m, func() { h.machine(m) })
	}
	if h.protected {
		c.guard(m)
	}
	if h.attached {
		c.attach(m, []corev1.AttachedVolume{{Name: "kubernetes.io/csi/example^v", DevicePath: "/dev/v"}})
	}
	if h.detaching {
		c.create(attachmentOf(m))
	}
	if h.kept {
		c.keep(m)
	}
}

func attachmentOf(m *clusterv1.Machine) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "example", NodeName: m.Status.NodeRef.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &m.Name},
	}}
}

// keep runs a Pod that drains skip on a Machine. It has the volume that block attaches.
func (c *Subject) keep(m *clusterv1.Machine) {
	c.t.Helper()
	csi := &corev1.CSIPersistentVolumeSource{Driver: "example", VolumeHandle: "v"}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Name}}
	pod := &corev1.Pod{ObjectMeta: named(m), Spec: corev1.PodSpec{
		NodeName: m.Status.NodeRef.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}},
	}}
	pod.Labels["cluster.x-k8s.io/drain"] = "skip"
	c.create(
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: csi}, Capacity: size, AccessModes: modes,
		}},
		&corev1.PersistentVolumeClaim{ObjectMeta: named(m), Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: m.Name, AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size},
		}},
		pod,
	)
}

// create creates objects in the workload cluster.
func (c *Subject) create(objects ...client.Object) {
	c.t.Helper()
	for _, o := range objects {
		if err := c.Workload().client.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
	}
}

// waits checks that a Machine that is being deleted waits as expected, or is deleted if there is no blocker.
func (c *Subject) waits(h blocker, m *clusterv1.Machine, p *Snapshot) error {
	i := slices.IndexFunc(p.Machines.Items, func(now clusterv1.Machine) bool { return now.UID == m.UID })
	switch {
	case i < 0 && h.waitsFor == "":
		return nil
	case i < 0:
		return errors.New("the Machine does not wait")
	case h.waitsFor == "":
		return errors.New("the Machine still exists")
	}
	if now := FindCondition(&p.Machines.Items[i], h.waitsFor); now == nil || now.Status != corev1.ConditionFalse || now.Reason != h.why {
		return fmt.Errorf("condition %s is %+v, want False and %s", h.waitsFor, now, h.why)
	}
	node := &corev1.Node{}
	if err := c.Workload().client.Get(c.t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
		return fmt.Errorf("the Node of a Machine that waits: %w", err)
	}
	if node.Spec.Unschedulable != h.cordoned {
		return fmt.Errorf("the Node is cordoned: %t, want %t", node.Spec.Unschedulable, h.cordoned)
	}
	return nil
}

// release removes the blocker of a Machine.
func (c *Subject) release(h blocker, m *clusterv1.Machine) {
	c.t.Helper()
	switch {
	case h.protected:
		if err := c.Workload().client.Delete(c.t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: named(m)}); err != nil {
			c.t.Fatal(err)
		}
	case h.attached:
		c.attach(m, nil)
	case h.detaching:
		if err := c.Workload().client.Delete(c.t.Context(), attachmentOf(m)); err != nil {
			c.t.Fatal(err)
		}
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

// guard runs a Pod on a Machine, with a disruption budget that prevents its eviction.
func (c *Subject) guard(m *clusterv1.Machine) {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: named(m),
		Spec:       corev1.PodSpec{NodeName: m.Status.NodeRef.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: named(m), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
	}}
	c.create(pod, budget)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := c.Workload().client.Status().Update(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
}

// attach sets the attached volumes of a Machine's Node.
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
