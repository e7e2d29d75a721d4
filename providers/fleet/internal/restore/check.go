package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// beginLimit is how long a restore that is confirmed may wait for what it needs before it begins: it must not begin by surprise days later.
const beginLimit = time.Hour

// source is where an archive is, and who can decrypt it.
type source struct {
	store, key, identity string
	// version is that of Kubernetes, if it is known before the archive was read.
	version string
}

// facts are what checks are made of.
type facts struct {
	restore  *fleetv1.ControlPlaneRestore
	cluster  *clusterv1.Cluster
	kcp      *controlplanev1.KubeadmControlPlane
	machines []clusterv1.Machine
	// backup is nil for archives without one.
	backup *fleetv1.EtcdBackup
}

// check finds out whether the restore does harm or cannot work, until Machines are deleted. Later, it must go on in any case.
func (c *Controller) check(ctx context.Context, s *scope) (step.Result, error) {
	f, err := c.facts(ctx, s)
	s.cluster, s.kcp = f.cluster, f.kcp
	if s.Begun(fleetv1.RestoreStepFence) {
		if err == nil && (s.cluster == nil || s.kcp == nil || !s.cluster.DeletionTimestamp.IsZero()) {
			return c.end(ctx, s, "Cluster "+s.restore.Spec.ClusterName+" was deleted meanwhile")
		}
		return step.Done(), err
	}
	if err != nil {
		return c.unknown(ctx, s, err)
	}
	for _, one := range preflight() {
		if reason := one.of(f); reason != "" {
			return s.Refuse(reason), nil
		}
	}
	if s.source, err = sourceOf(f); err != nil {
		return s.Refuse(err.Error()), nil
	}
	if err := c.reachable(ctx, s); err != nil {
		return c.unknown(ctx, s, err)
	}
	return step.Done(), nil
}

// end ends a restore whose Cluster no longer exists.
func (c *Controller) end(ctx context.Context, s *scope, reason string) (step.Result, error) {
	if err := c.giveBack(ctx, s); err != nil {
		return s.Wait(operation.Retry, "what was stored to be deleted: "+err.Error()), nil
	}
	return s.Fail(reason), nil
}

// unknown is the result if a check cannot be made now, or is an error that refuses the restore. It begins soon or not at all.
func (c *Controller) unknown(ctx context.Context, s *scope, err error) (step.Result, error) {
	if ctx.Err() != nil {
		return step.Result{}, ctx.Err()
	}
	if reason, refused := operation.RefusalOf(err); refused {
		return s.Refuse(reason), nil
	}
	if s.Confirmed && !s.Underway() && c.Clock.Since(s.restore.CreationTimestamp.Time) > beginLimit {
		return s.Refuse(fmt.Sprintf("it could not begin within %s: %v", beginLimit, err)), nil
	}
	return s.Wait(operation.Retry, s.At()+err.Error()), nil
}

// facts reads what the checks need, from the API server. Objects that do not exist are nil.
func (c *Controller) facts(ctx context.Context, s *scope) (facts, error) {
	f := facts{restore: s.restore}
	cluster := &clusterv1.Cluster{}
	if err := c.Live.Get(ctx, s.clusterKey(), cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return f, nil
		}
		return f, fmt.Errorf("reading Cluster %s: %w", s.clusterKey(), err)
	}
	f.cluster = cluster
	if cluster.Spec.ControlPlaneRef.Kind == "KubeadmControlPlane" {
		kcp := &controlplanev1.KubeadmControlPlane{}
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
		err := c.Live.Get(ctx, key, kcp)
		if err != nil && !apierrors.IsNotFound(err) {
			return f, fmt.Errorf("reading KubeadmControlPlane %s: %w", key, err)
		}
		if err == nil {
			f.kcp = kcp
		}
	}
	if s.Begun(fleetv1.RestoreStepFence) {
		return f, nil
	}
	var err error
	if f.machines, err = c.controlPlaneMachines(ctx, s.clusterKey()); err != nil {
		return f, err
	}
	if name := s.restore.Spec.BackupName; name != "" {
		backup := &fleetv1.EtcdBackup{}
		err := c.Live.Get(ctx, client.ObjectKey{Namespace: s.restore.Namespace, Name: name}, backup)
		switch {
		case apierrors.IsNotFound(err):
			return f, operation.Refusal(fmt.Sprintf("EtcdBackup %s does not exist in namespace %s; if its archive does, use spec.archive",
				name, s.restore.Namespace))
		case err != nil:
			return f, fmt.Errorf("reading EtcdBackup %s: %w", name, err)
		}
		f.backup = backup
	}
	return f, nil
}

// controlPlaneMachines returns the control plane Machines of a Cluster, from the API server, by name.
func (c *Controller) controlPlaneMachines(ctx context.Context, cluster client.ObjectKey) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := c.Live.List(ctx, list, client.InNamespace(cluster.Namespace), client.HasLabels{clusterv1.MachineControlPlaneLabel},
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return nil, fmt.Errorf("listing the control plane Machines: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// preflightCheck returns why a restore would do harm, or cannot work; empty if it does not.
type preflightCheck struct {
	name string
	of   func(f facts) string
}

// preflight are the checks without requests, in order: later ones rely on earlier ones.
func preflight() []preflightCheck {
	return []preflightCheck{
		{"cluster", clusterFits}, {"control plane", controlPlaneFits}, {"endpoint", endpointFollows}, {"backup", backupFits},
		{"version", func(f facts) string {
			if f.backup == nil {
				return ""
			}
			etcd := ""
			if f.backup.Status.Etcd != nil {
				etcd = f.backup.Status.Etcd.Version
			}
			return versionsFit(f.kcp, f.backup.Status.KubernetesVersion, etcd)
		}},
	}
}

// clusterFits checks that there is a Cluster whose Machines are reconciled.
func clusterFits(f facts) string {
	name := f.restore.Spec.ClusterName
	switch {
	case f.cluster == nil:
		return fmt.Sprintf("Cluster %s does not exist in namespace %s: create it first, with the manifests of the one that was backed up",
			name, f.restore.Namespace)
	case !f.cluster.DeletionTimestamp.IsZero():
		return fmt.Sprintf("Cluster %s is being deleted", name)
	case ptr.Deref(f.cluster.Spec.Paused, false):
		return fmt.Sprintf("Cluster %s is paused, so nothing would be replaced: set spec.paused to false", name)
	}
	return ""
}

// controlPlaneFits checks that the control plane has etcd on its Machines, and is free.
func controlPlaneFits(f facts) string {
	ref := f.cluster.Spec.ControlPlaneRef
	switch {
	case f.kcp == nil && ref.Kind == "KubeadmControlPlane":
		return fmt.Sprintf("KubeadmControlPlane %s does not exist", ref.Name)
	case f.kcp == nil:
		return fmt.Sprintf("the control plane of Cluster %s is not a KubeadmControlPlane: only those can be restored", f.cluster.Name)
	case !f.kcp.DeletionTimestamp.IsZero():
		return fmt.Sprintf("KubeadmControlPlane %s is being deleted", f.kcp.Name)
	case len(f.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints) > 0:
		return fmt.Sprintf("KubeadmControlPlane %s has an external etcd: restore that with its own tools", f.kcp.Name)
	}
	if _, paused := f.kcp.Annotations[clusterv1.PausedAnnotation]; paused {
		return fmt.Sprintf("KubeadmControlPlane %s is paused, so nothing would be replaced: remove the annotation %s", f.kcp.Name,
			clusterv1.PausedAnnotation)
	}
	if err := hold.Busy(f.kcp, heldBy(f.restore, fleetv1.OperationModeHold)); err != nil {
		return err.Error()
	}
	return ""
}

// backupFits checks that there is an archive.
func backupFits(f facts) string {
	b := f.backup
	switch {
	case b == nil:
		return ""
	case !b.DeletionTimestamp.IsZero():
		return fmt.Sprintf("EtcdBackup %s is being deleted, with its archive", b.Name)
	case b.Status.Phase == fleetv1.BackupPhaseFailed:
		return fmt.Sprintf("EtcdBackup %s has failed or is damaged: use another one", b.Name)
	case b.Status.Phase != fleetv1.BackupPhaseCompleted || b.Status.Archive == nil:
		return fmt.Sprintf("EtcdBackup %s is not complete", b.Name)
	}
	return ""
}

// endpointFollows checks that the endpoint of the control plane leads to the new Machine.
func endpointFollows(f facts) string {
	host := f.cluster.Spec.ControlPlaneEndpoint.Host
	if host == "" {
		return fmt.Sprintf("Cluster %s has no spec.controlPlaneEndpoint yet: wait until its infrastructure is ready", f.cluster.Name)
	}
	for i := range f.machines {
		for _, address := range f.machines[i].Status.Addresses {
			if address.Address == host {
				return fmt.Sprintf("the endpoint of the control plane, %s, is an address of Machine %s: a new Machine has another one. "+
					"Only control planes behind a load balancer, a virtual address or a name can be restored", host, f.machines[i].Name)
			}
		}
	}
	return ""
}

// sourceOf returns where the archive is.
func sourceOf(f facts) (source, error) {
	spec, from := &f.restore.Spec, source{}
	if f.backup != nil {
		from = source{store: f.backup.Spec.StoreRef.Name, key: f.backup.Status.Archive.Key, version: f.backup.Status.KubernetesVersion}
		if ref := f.backup.Spec.Encryption.IdentitySecretRef; ref != nil {
			from.identity = ref.Name
		}
	} else {
		from = source{store: spec.Archive.StoreRef.Name, key: spec.Archive.Key}
	}
	if spec.IdentitySecretRef != nil {
		from.identity = spec.IdentitySecretRef.Name
	}
	if from.identity == "" {
		return from, fmt.Errorf("EtcdBackup %s names no Secret with its private key: create one, and set spec.identitySecretRef", f.backup.Name)
	}
	return from, nil
}

// reachable checks that the store can be used, by this manager and by Machines, and that the key exists.
func (c *Controller) reachable(ctx context.Context, s *scope) error {
	if s.Completed(fleetv1.RestoreStepPrepare) {
		return nil
	}
	if _, err := content.Identities(ctx, c.Live, s.restore.Namespace, s.source.identity); err != nil {
		if errors.Is(err, content.ErrInvalidKeys) {
			return operation.Refusal(err.Error())
		}
		return err
	}
	opened, err := c.opener.Named(ctx, s.restore.Namespace, s.source.store)
	if errors.Is(err, backupstore.ErrInvalid) {
		return operation.Refusal(err.Error())
	}
	if err != nil {
		return err
	}
	_, err = c.address(ctx, s.restore, opened, dataKey(s.restore))
	if errors.Is(err, store.ErrNoURL) {
		return operation.Refusal(fmt.Sprintf("BackupStore %s is a directory, which Machines cannot reach: "+
			"set the flags --serve-address and --serve-url of "+
			"the fleet provider, or copy the archive into a bucket and use spec.archive", s.source.store))
	}
	return err
}

// address returns the URL at which Machines reach an object.
func (c *Controller) address(ctx context.Context, r *fleetv1.ControlPlaneRestore, in store.Store, key string) (string, error) {
	url, err := in.URL(ctx, key, lifetime)
	if errors.Is(err, store.ErrNoURL) && c.server != nil {
		return c.server.URL(r), nil
	}
	return url, err
}
