package machines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// FieldManager is the field manager for Machines and objects that are created for them.
const FieldManager = "capi-kubeadmcontrolplane"

// Propagate updates labels, annotations, timeouts, readiness gates and taints of the Machines, and labels and annotations of their
// infrastructure machines and KubeadmConfigs, according to the template. Labels and annotations that are no longer in the template are
// removed if we have set them. The managedFields of the Machine show that, so the Machine is updated last: an interrupted
// propagation starts again. A Machine that does not have our hook, because Cluster API v1.7 created it, gets it when it is written anyway.
func (mgr *Manager) Propagate(ctx context.Context, cp *snapshot.ControlPlane) (step.Result, error) {
	var errs []error
	for _, m := range cp.Machines {
		errs = append(errs, mgr.propagate(ctx, cp, m))
	}
	return step.Done(), errors.Join(errs...)
}

func (mgr *Manager) propagate(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine) error {
	ours := owned(m.Machine)
	dropped := func(field, key string) bool {
		return ours.Has(fieldpath.MakePathOrDie("metadata", field, key))
	}
	if !m.Deleting() {
		for _, obj := range m.CreatedFrom() {
			if err := mgr.save(ctx, obj, func() { setMetadata(cp, obj, m.Machine, dropped) }); err != nil {
				return err
			}
		}
	}
	return mgr.save(ctx, m.Machine, func() {
		before := m.DeepCopy()
		if !m.Deleting() {
			setMetadata(cp, m.Machine, m.Machine, dropped)
			setGates(cp, m.Machine, ours)
		}
		setTimeouts(cp, m.Machine, ours)
		setTaints(cp, m.Machine, ours)
		if cp.StackedEtcd() && (membership.NeedsHook(m.Machine) || !m.Deleting() && !equality.Semantic.DeepEqual(before, m.Machine)) {
			membership.SetHook(m.Machine)
		}
	})
}

// setMetadata sets the labels and annotations of the template on obj, and removes those that its Machine has and that are
// dropped.
func setMetadata(cp *snapshot.ControlPlane, obj client.Object, of *clusterv1.Machine, dropped func(field, key string) bool) {
	obj.SetLabels(merged(obj.GetLabels(), of.Labels, cp.MachineLabels(), func(key string) bool { return dropped("labels", key) }))
	obj.SetAnnotations(merged(obj.GetAnnotations(), of.Annotations, cp.MachineAnnotations(), func(key string) bool {
		return !reserved(key) && dropped("annotations", key)
	}))
}

// merged returns current with the entries of wanted, and without those that the Machine has and that are dropped.
func merged(current, machine, wanted map[string]string, dropped func(string) bool) map[string]string {
	result := map[string]string{}
	for key, value := range current {
		_, onMachine := machine[key]
		if _, keep := wanted[key]; !keep && onMachine && dropped(key) {
			continue
		}
		result[key] = value
	}
	maps.Copy(result, wanted)
	if len(result) == 0 {
		return nil // because an empty map differs from none
	}
	return result
}

// reserved reports whether an annotation is never removed, because it does not come from the template.
func reserved(key string) bool {
	switch key {
	case controlplanev1.PreTerminateHookCleanupAnnotation, controlplanev1.RemediationForAnnotation, clusterv1.DeleteMachineAnnotation,
		clusterv1.ConversionDataAnnotation, conversion.OlderVersionAnnotation,
		clusterv1.UpdateInProgressAnnotation, runtimev1.PendingHooksAnnotation, fleetv1.RestoreDataAnnotation:
		return true
	}
	return snapshot.IsRecord(key)
}

// defaultDeletionTimeout is the default of the nodeDeletionTimeoutSeconds of Machines.
const defaultDeletionTimeout int32 = 10

// setTimeouts sets the timeouts of the template. Timeouts that the template does not have are removed if we have set them.
func setTimeouts(cp *snapshot.ControlPlane, m *clusterv1.Machine, ours *fieldpath.Set) {
	is, wanted := &m.Spec.Deletion, cp.KCP.Spec.MachineTemplate.Spec.Deletion
	owned := func(name string) bool { // managedFields have the version that was written, of which v1beta1 has other fields.
		return ours.Has(fieldpath.MakePathOrDie("spec", name)) || ours.Has(fieldpath.MakePathOrDie("spec", "deletion", name+"Seconds"))
	}
	set := func(field **int32, wanted *int32, name string) {
		if wanted != nil || owned(name) {
			*field = wanted
		}
	}
	set(&is.NodeDrainTimeoutSeconds, wanted.NodeDrainTimeoutSeconds, "nodeDrainTimeout")
	set(&is.NodeVolumeDetachTimeoutSeconds, wanted.NodeVolumeDetachTimeoutSeconds, "nodeVolumeDetachTimeout")
	const nodeDeletion = "nodeDeletionTimeout"
	if wanted.NodeDeletionTimeoutSeconds == nil && owned(nodeDeletion) {
		wanted.NodeDeletionTimeoutSeconds = ptr.To(defaultDeletionTimeout)
	}
	set(&is.NodeDeletionTimeoutSeconds, wanted.NodeDeletionTimeoutSeconds, nodeDeletion)
}

// setTaints sets the taints of the template, and removes those that we have set and that it no longer has. Key and effect identify a taint.
func setTaints(cp *snapshot.ControlPlane, m *clusterv1.Machine, ours *fieldpath.Set) {
	var taints []clusterv1.MachineTaint
	wanted := slices.Clone(cp.KCP.Spec.MachineTemplate.Spec.Taints)
	for _, is := range m.Spec.Taints {
		i := slices.IndexFunc(wanted, func(t clusterv1.MachineTaint) bool { return t.Key == is.Key && t.Effect == is.Effect })
		owned := ours.Has(fieldpath.MakePathOrDie("spec", "taints", fieldpath.KeyByFields("key", is.Key, "effect", string(is.Effect))))
		switch {
		case i >= 0:
			taints, wanted = append(taints, wanted[i]), slices.Delete(wanted, i, i+1)
		case !owned:
			taints = append(taints, is)
		}
	}
	m.Spec.Taints = append(taints, wanted...)
}

// save applies a change to obj, in memory and in the API server.
func (mgr *Manager) save(ctx context.Context, obj client.Object, change func()) error {
	err := mgr.Patch(ctx, obj, change)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("propagating labels, annotations, timeouts, readiness gates and taints to %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// owned returns the fields of an object that FieldManager owns.
func owned(obj metav1.Object) *fieldpath.Set { return ssa.Owned(obj, FieldManager) }
