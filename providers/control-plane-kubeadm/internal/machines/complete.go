package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Complete creates the KubeadmConfigs and infrastructure machines that Machines refer to and that do not exist, because the
// creation of the Machine was interrupted.
func (mgr *Manager) Complete(ctx context.Context, cp *snapshot.ControlPlane) (step.Result, error) {
	var errs []error
	for _, m := range cp.Machines {
		if !m.Deleting() {
			errs = append(errs, mgr.complete(ctx, cp, m))
		}
	}
	err := errors.Join(errs...)
	announce(ctx, cp, err)
	if len(errs) == 0 {
		return step.Done().KeepCondition(), nil
	}
	return step.Done(), err
}

// complete completes a Machine of an earlier reconcile. Before the first Machine may initialize the cluster, that is checked
// live.
func (mgr *Manager) complete(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine) error {
	role := Join
	if restores(m) {
		return mgr.completeMachine(ctx, cp, m, Initialize)
	}
	if !cp.Initialized() && len(cp.Machines) == 1 && missesConfig(m) {
		role = Initialize
		if stale, err := mgr.Confirm().Initialization(ctx, cp); stale != "" || err != nil {
			return cmp.Or(err, stale.Err())
		}
	}
	return mgr.completeMachine(ctx, cp, m, role)
}

// missesConfig reports whether the KubeadmConfig must be created. Machines that we created refer to objects with their own
// name, or one that derives from it; adopted ones may refer to any objects, which are not created here.
func missesConfig(m *snapshot.Machine) bool {
	ref := m.Spec.Bootstrap.ConfigRef
	return m.Config == nil && ref.Name == m.Name && ptr.Deref(m.Spec.Bootstrap.DataSecretName, "") == ""
}

// missesInfrastructure reports whether the infrastructure machine must be created.
func missesInfrastructure(m *snapshot.Machine) bool {
	name := m.Spec.InfrastructureRef.Name
	return m.Infrastructure == nil && (name == m.Name || naming.IsOfTemplate(name, m.Name)) &&
		!ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false) && m.Spec.ProviderID == ""
}

func (mgr *Manager) completeMachine(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine, role Role) error {
	if missesConfig(m) {
		if err := mgr.createConfig(ctx, cp, m, role); err != nil {
			return failed(controlplanev1.BootstrapTemplateCloningFailedV1Beta1Reason, err)
		}
	}
	if missesInfrastructure(m) {
		if err := mgr.createInfrastructure(ctx, cp, m); err != nil {
			return failed(controlplanev1.InfrastructureTemplateCloningFailedV1Beta1Reason, err)
		}
	}
	return nil
}

// createConfig creates the KubeadmConfig of a Machine.
func (mgr *Manager) createConfig(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine, role Role) error {
	config, err := newConfig(ctx, cp.KCP, role)
	if err != nil {
		return err
	}
	older := config.Annotations
	config.ObjectMeta = dependent(cp, m.Machine)
	maps.Copy(config.Annotations, older)
	if restores(m) {
		config.Annotations[fleetv1.RestoreDataAnnotation] = m.Annotations[fleetv1.RestoreDataAnnotation]
	}
	err = mgr.Clients.Create(ctx, config)
	if apierrors.IsAlreadyExists(err) {
		return mgr.confirmOwned(ctx, snapshot.ConfigKind(), config.Name, m.Machine)
	}
	if err != nil {
		return fmt.Errorf("creating KubeadmConfig %s: %w", config.Name, err)
	}
	m.Config = config
	return nil
}

func (mgr *Manager) createInfrastructure(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine) error {
	infrastructure, err := mgr.clone(ctx, cp, m.Spec.InfrastructureRef.Name)
	if err != nil {
		return err
	}
	kind := infrastructure.GroupVersionKind()
	if kind.GroupKind() != m.Spec.InfrastructureRef.GroupKind() {
		return fmt.Errorf("machine %s refers to a %s, but the template is for a %s: delete the Machine",
			m.Name, m.Spec.InfrastructureRef.Kind, kind.Kind)
	}
	infrastructure.SetOwnerReferences(dependent(cp, m.Machine).OwnerReferences)
	err = mgr.Clients.Create(ctx, infrastructure)
	if apierrors.IsAlreadyExists(err) {
		return mgr.confirmOwned(ctx, kind, infrastructure.GetName(), m.Machine)
	}
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", kind.Kind, infrastructure.GetName(), err)
	}
	m.Infrastructure = infrastructure
	return nil
}

// dependent returns the metadata of objects that are created for a Machine.
func dependent(cp *snapshot.ControlPlane, m *clusterv1.Machine) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name,
		Labels: cp.MachineLabels(), Annotations: cp.MachineAnnotations(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))},
	}
}

// confirmOwned checks that the Machine controls an object that already exists.
func (mgr *Manager) confirmOwned(ctx context.Context, kind schema.GroupVersionKind, name string, m *clusterv1.Machine) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	if err := mgr.Live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, obj); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	if !metav1.IsControlledBy(obj, m) {
		return fmt.Errorf("%s %s already exists, and Machine %s does not control it: delete it", kind.Kind, name, m.Name)
	}
	return nil
}
