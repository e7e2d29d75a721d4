package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	"sigs.k8s.io/cluster-api/providers/internal/nametemplate"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Role is the role of a new Machine when it starts.
type Role bool

const (
	// Initialize is the role of the Machine that runs kubeadm init. The caller has checked that the cluster is not initialized.
	Initialize Role = true
	// Join is the role of Machines that run kubeadm join.
	Join Role = false
)

// Manager creates and changes Machines.
type Manager struct {
	step.Clients
	// External reads infrastructure templates and machines.
	External external.Reader
	// NamedAfterTemplates names new infrastructure machines after their template instead of their Machine.
	NamedAfterTemplates bool
}

// Confirm returns the reader that checks snapshots against the API server.
func (mgr *Manager) Confirm() snapshot.LiveReader { return snapshot.LiveReader{Reader: mgr.Live} }

// Create creates a Machine, and then the objects that it refers to. After an interruption, Complete creates those.
func (mgr *Manager) Create(ctx context.Context, cp *snapshot.ControlPlane, failureDomain string, role Role) error {
	err := mgr.create(ctx, cp, failureDomain, role, nil)
	announce(ctx, cp, err)
	return err
}

// create creates a Machine; that of an operation that restores the control plane, if there is one.
func (mgr *Manager) create(
	ctx context.Context, cp *snapshot.ControlPlane, failureDomain string, role Role, restore *fleetv1.Operation,
) error {
	name, err := machineName(cp, restore)
	if err != nil {
		return failed(controlplanev1.MachineGenerationFailedV1Beta1Reason, err)
	}
	infrastructure, err := mgr.clone(ctx, cp, mgr.infrastructureName(cp, name))
	if err != nil {
		return failed(controlplanev1.InfrastructureTemplateCloningFailedV1Beta1Reason, err)
	}
	m, err := newMachine(ctx, cp, name, infrastructure, failureDomain)
	if err != nil {
		return failed(controlplanev1.MachineGenerationFailedV1Beta1Reason, err)
	}
	if restore != nil {
		m.Annotations[fleetv1.RestoreDataAnnotation] = restore.DataSecret
	}
	err = mgr.Clients.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		return mgr.alreadyExists(ctx, cp, m)
	}
	if err != nil {
		return failed(controlplanev1.MachineGenerationFailedV1Beta1Reason, fmt.Errorf("creating Machine %s: %w", m.Name, err))
	}
	delete(cp.KCP.Annotations, controlplanev1.RemediationInProgressAnnotation) // It is in an annotation of the Machine now.
	created := &snapshot.Machine{Machine: m}
	cp.Machines = append(cp.Machines, created)
	return mgr.completeMachine(ctx, cp, created, role)
}

// alreadyExists returns the error for a Machine that already exists. Normally an earlier reconcile created it, and the cache
// does not show it yet.
func (mgr *Manager) alreadyExists(ctx context.Context, cp *snapshot.ControlPlane, m *clusterv1.Machine) error {
	existing := &clusterv1.Machine{}
	if err := mgr.Live.Get(ctx, client.ObjectKeyFromObject(m), existing); err != nil {
		return fmt.Errorf("reading Machine %s: %w", m.Name, err)
	}
	if !metav1.IsControlledBy(existing, cp.KCP) {
		err := fmt.Errorf("Machine %s already exists, and this control plane does not control it: delete it", m.Name)
		return failed(controlplanev1.MachineGenerationFailedV1Beta1Reason, err)
	}
	return step.Stale("Machine %s exists, and the cache does not show it", m.Name)
}

// failed makes err the reason of a condition, unless err is a stale error.
func failed(reason string, err error) error {
	if step.IsStale(err) {
		return err
	}
	return &step.Error{Reason: reason, Err: err}
}

// announce sends an event for a failure to create a Machine, unless the condition already reports it.
func announce(ctx context.Context, cp *snapshot.ControlPlane, err error) {
	var failure *step.Error
	if !errors.As(err, &failure) {
		return
	}
	reported := condition.False(controlplanev1.MachinesCreatedV1Beta1Condition, clusterv1.ConditionSeverityError,
		failure.Reason, "%v", failure)
	if before := condition.Get(cp.KCP, reported.Type); before != nil && condition.SameState(*before, reported) {
		return
	}
	event := "FailedScaleUp"
	if !ptr.Deref(cp.KCP.Status.Initialization.ControlPlaneInitialized, false) {
		event = "FailedInitialization"
	}
	step.Warning(ctx, event, "Cannot create a control plane Machine: %s", failure)
}

// machineName derives a name from the UIDs of the existing Machines, which are unique over time: creating a Machine twice from
// the same state of the cache results in a name collision. The record of the remediation in progress is part of it: after a
// Machine that failed was deleted, the others are the same as before its creation, but its replacement needs another name.
//
// Without Machines that is the name of the very first one, of which restored data of etcd may have a Node. So the name of a Machine that
// restores the control plane derives from the operation.
func machineName(cp *snapshot.ControlPlane, restore *fleetv1.Operation) (string, error) {
	parts := []string{string(cp.KCP.UID), cp.KCP.Annotations[controlplanev1.RemediationInProgressAnnotation]}
	var uids []string
	for _, m := range cp.Machines {
		uids = append(uids, string(m.UID))
	}
	slices.Sort(uids)
	if restored := cp.KCP.Annotations[clusterv1.RestoredAnnotation]; restored != "" {
		parts = append(parts, restored) // Machines may have the names that were next when the backup was made.
	}
	if operated := cp.KCP.Annotations[fleetv1.OperatedAnnotation]; operated != "" {
		parts = append(parts, operated) // Hardware with the next name may have been given up, and start again.
	}
	if restore != nil {
		parts, uids = []string{string(cp.KCP.UID), restore.Kind, string(restore.UID)}, nil
	}
	random := naming.Suffix(append(parts, uids...)...)
	template := cp.KCP.Spec.MachineNaming.Template
	if template == "" {
		return naming.WithSuffix(cp.KCP.Name, random), nil
	}
	name, err := nametemplate.Render(template, nametemplate.OfMachine(cp.Cluster.Name, "kubeadmControlPlane", cp.KCP.Name), random)
	if err != nil {
		return "", fmt.Errorf("spec.machineNaming.template: %w", err)
	}
	return name, nil
}

// infrastructureName returns the name of a new Machine's infrastructure machine.
func (mgr *Manager) infrastructureName(cp *snapshot.ControlPlane, machine string) string {
	if mgr.NamedAfterTemplates {
		return naming.OfTemplate(cp.KCP.Spec.MachineTemplate.Spec.InfrastructureRef.Name, machine)
	}
	return machine
}

func newMachine(
	ctx context.Context, cp *snapshot.ControlPlane, name string, infrastructure *unstructured.Unstructured, failureDomain string,
) (*clusterv1.Machine, error) {
	spec, err := snapshot.SpecOf(ctx, cp.KCP)
	if err != nil {
		return nil, err
	}
	annotations := cp.MachineAnnotations()
	if err := spec.Record(annotations); err != nil {
		return nil, err
	}
	if cp.StackedEtcd() {
		annotations[controlplanev1.PreTerminateHookCleanupAnnotation] = "" // see package membership
	}
	if remediated, ok := cp.KCP.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok {
		annotations[controlplanev1.RemediationForAnnotation] = remediated
	}
	config, machine := snapshot.ConfigKind(), infrastructure.GroupVersionKind()
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cp.KCP.Namespace, Name: name,
			Labels: cp.MachineLabels(), Annotations: annotations,
			Finalizers:      []string{clusterv1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{*cp.Owner()},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName:       cp.Cluster.Name,
			Version:           cp.KCP.Spec.Version,
			FailureDomain:     failureDomain,
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: reference(config.GroupKind(), name)},
			InfrastructureRef: reference(machine.GroupKind(), infrastructure.GetName()),
			Deletion:          cp.KCP.Spec.MachineTemplate.Spec.Deletion,
			ReadinessGates:    cp.KCP.Spec.MachineTemplate.Spec.ReadinessGates,
			Taints:            cp.KCP.Spec.MachineTemplate.Spec.Taints,
		},
	}, nil
}

func reference(kind schema.GroupKind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: name}
}

// clone returns an infrastructure machine according to the template.
func (mgr *Manager) clone(ctx context.Context, cp *snapshot.ControlPlane, name string) (*unstructured.Unstructured, error) {
	ref := cp.KCP.Spec.MachineTemplate.Spec.InfrastructureRef
	template, err := mgr.External.Get(ctx, &ref, cp.KCP.Namespace)
	if err != nil {
		return nil, fmt.Errorf("reading the infrastructure template: %w", err)
	}
	return contract.Clone(contract.CloneInput{
		Template: template, Name: name, Namespace: cp.KCP.Namespace, ClusterName: cp.Cluster.Name,
		Labels: cp.MachineLabels(), Annotations: cp.MachineAnnotations(),
	})
}
