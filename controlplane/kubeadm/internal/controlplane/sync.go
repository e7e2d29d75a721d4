package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/outdated"
	"sigs.k8s.io/cluster-api/provider/step"
)

// sync brings labels, annotations and timeouts of the template to the Machines that exist, and labels and annotations
// to their infrastructure and KubeadmConfigs: nothing is replaced for these. What the template dropped is removed where
// it came from us; what others put there stays. Who put it there is in the Machine's managedFields, so the Machine is
// written last: an interrupted sync begins anew.
func (c *Controller) sync(ctx context.Context, s *scope) (step.Result, error) {
	var errs []error
	for _, m := range s.machines {
		errs = append(errs, c.syncMachine(ctx, s, m))
	}
	return step.Done(), errors.Join(errs...)
}

func (c *Controller) syncMachine(ctx context.Context, s *scope, m *machine) error {
	ours := ownedBy(m.Machine, FieldManager)
	dropped := func(field, key string) bool {
		return ours.Has(fieldpath.MakePathOrDie("metadata", field, key))
	}
	if !m.deleting() {
		for _, obj := range m.parts() {
			if err := c.save(ctx, obj, func() { s.label(obj, m.Machine, dropped) }); err != nil {
				return err
			}
		}
	}
	return c.save(ctx, m.Machine, func() {
		if !m.deleting() {
			s.label(m.Machine, m.Machine, dropped)
			if s.stacked() {
				setHook(m.Machine) // Machines that were adopted, or made by others, do not have it yet.
			}
		}
		s.limit(m.Machine, ours)
	})
}

// parts are the objects that a Machine was made from.
func (m *machine) parts() []client.Object {
	var parts []client.Object
	if m.config != nil {
		parts = append(parts, m.config)
	}
	if m.infrastructure != nil {
		parts = append(parts, m.infrastructure)
	}
	return parts
}

// label sets labels and annotations of the template on obj, and removes those that obj's Machine has from us and the
// template has no more.
func (s *scope) label(obj client.Object, of *clusterv1.Machine, dropped func(field, key string) bool) {
	obj.SetLabels(merged(obj.GetLabels(), of.Labels, s.labels(), func(key string) bool { return dropped("labels", key) }))
	obj.SetAnnotations(merged(obj.GetAnnotations(), of.Annotations, s.annotations(), func(key string) bool {
		return !reserved(key) && dropped("annotations", key)
	}))
}

// merged is current with what is wanted and without what is on the Machine and dropped. Nothing is modified.
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
		return nil // an empty map is a difference to an object that has none
	}
	return result
}

// reserved annotations are ours and do not come from the template.
func reserved(key string) bool {
	switch key {
	case controlplanev1.KubeadmClusterConfigurationAnnotation, outdated.ConfigAnnotation, controlplanev1.PreTerminateHookCleanupAnnotation, controlplanev1.RemediationForAnnotation, clusterv1.DeleteMachineAnnotation:
		return true
	}
	return false
}

// defaultDeletionTimeout is what admission gives a Machine where the template says nothing.
const defaultDeletionTimeout = 10 * time.Second

// limit sets the timeouts of the template. One that the template does not have is removed if it came from us.
func (s *scope) limit(m *clusterv1.Machine, ours *fieldpath.Set) {
	template := s.kcp.Spec.MachineTemplate
	set := func(field **metav1.Duration, wanted *metav1.Duration, name string) {
		if wanted != nil || ours.Has(fieldpath.MakePathOrDie("spec", name)) {
			*field = wanted
		}
	}
	set(&m.Spec.NodeDrainTimeout, template.NodeDrainTimeout, "nodeDrainTimeout")
	set(&m.Spec.NodeVolumeDetachTimeout, template.NodeVolumeDetachTimeout, "nodeVolumeDetachTimeout")
	deletion := template.NodeDeletionTimeout
	if deletion == nil && ours.Has(fieldpath.MakePathOrDie("spec", "nodeDeletionTimeout")) {
		deletion = ptr.To(metav1.Duration{Duration: defaultDeletionTimeout})
	}
	set(&m.Spec.NodeDeletionTimeout, deletion, "nodeDeletionTimeout")
}

// save writes what change does to obj, if it does anything.
func (c *Controller) save(ctx context.Context, obj client.Object, change func()) error {
	err := c.Patch(ctx, obj, false, change)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("bringing labels, annotations and timeouts to %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// ownedBy is what a field manager has set on an object.
func ownedBy(obj metav1.Object, manager string) *fieldpath.Set {
	owned := fieldpath.NewSet()
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err == nil {
			owned = owned.Union(set)
		}
	}
	return owned
}
