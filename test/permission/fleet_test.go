package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/managers"
)

// TestFleetManagerUsesItsPermissions is TestManagersUseTheirPermissions for the manager of the fleet provider.
func TestFleetManagerUsesItsPermissions(t *testing.T) {
	t.Parallel()
	w := start(t, append(managers.Programs(), managers.Fleet())...)
	w.walkFleet()
	// The others have another walk.
	others := w.managers[:len(w.managers)-1]
	w.managers = w.managers[len(w.managers)-1:]
	w.compare()
	for _, m := range others {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// fleetObject returns an object of the fleet provider.
func (w *world) fleetObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fleetv1.GroupVersion.String(), "kind": kind, "spec": spec,
	}}
	o.SetNamespace(w.namespace)
	o.SetName(name)
	return o
}

// walkFleet backs up a Cluster to a directory, with a policy, verifies the archive, and deletes it.
func (w *world) walkFleet() {
	w.t.Helper()
	w.createClass(func(*unstructured.Unstructured) bool { return true })
	size := scenario.Size{ControlPlanes: 1, Workers: 1}
	w.do("create", scenario.Create(size))
	w.waitFor("create", scenario.Ready(size))
	w.upgrade()
	clusters := &unstructured.UnstructuredList{}
	clusters.SetAPIVersion("cluster.x-k8s.io/v1beta1")
	clusters.SetKind("ClusterList")
	if err := w.Client.List(w.t.Context(), clusters, client.InNamespace(w.namespace)); err != nil || len(clusters.Items) != 1 {
		w.t.Fatalf("%d Clusters, %v", len(clusters.Items), err)
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		w.t.Fatal(err)
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{fleetv1.IdentityKey: key.String()},
	}}
	secret.SetNamespace(w.namespace)
	secret.SetName("key")
	settings := func(more map[string]any) map[string]any {
		more["storeRef"] = map[string]any{"name": "disk"}
		more["encryption"] = map[string]any{"identitySecretRef": map[string]any{"name": "key"}}
		return more
	}
	backup := w.fleetObject(fleetv1.EtcdBackupKind, "now", settings(map[string]any{"clusterName": clusters.Items[0].GetName()}))
	for _, o := range []client.Object{
		secret,
		w.fleetObject(fleetv1.BackupStoreKind, "disk", map[string]any{"directory": map[string]any{"path": "walk"}}),
		w.fleetObject(fleetv1.EtcdBackupPolicyKind, "yearly", settings(map[string]any{"schedule": "0 0 1 1 *"})),
		backup,
	} {
		w.eventually("creating "+o.GetName(), func(ctx context.Context) error {
			return w.Client.Create(ctx, o.DeepCopyObject().(client.Object))
		})
	}
	w.eventually("the archive to be verified", func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(backup), backup); err != nil {
			return err
		}
		if method, _, _ := unstructured.NestedString(backup.Object, "status", "verified", "method"); method != string(fleetv1.VerificationRestored) {
			return fmt.Errorf("status = %v", backup.Object["status"])
		}
		return nil
	})
	w.walkRestore(backup, clusters.Items[0].GetName())
	if err := w.Client.Delete(w.t.Context(), backup); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the deletion of the archive", func(ctx context.Context) error {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(backup), backup)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the EtcdBackup exists"), err)
	})
	w.rotate(clusters.Items[0].GetName())
	w.walkRecovery(clusters.Items[0].GetName())
	w.checkMetrics()
}

// upgrade upgrades all Clusters by a rollout.
func (w *world) upgrade() {
	w.t.Helper()
	strategy := w.fleetObject(fleetv1.ClusterRolloutStrategyKind, "careful", map[string]any{"stages": []any{map[string]any{"name": "all"}}})
	rollout := w.fleetObject(fleetv1.ClusterRolloutKind, "upgrade", map[string]any{
		"change": map[string]any{"version": "v1.30.5"}, "strategyRef": map[string]any{"name": "careful"},
	})
	for _, o := range []client.Object{strategy, rollout} {
		if err := w.Client.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
	w.completes("the rollout", rollout)
	if machines, _, _ := unstructured.NestedInt64(rollout.Object, "status", "plan", "machines"); machines == 0 {
		w.t.Errorf("the plan replaces no Machine: %v", rollout.Object["status"])
	}
}

// walkRecovery takes the power of two of three control plane machines of a Cluster, and recovers its control plane from the third.
func (w *world) walkRecovery(cluster string) {
	w.t.Helper()
	w.do("scale up", scenario.Resize(scenario.Size{ControlPlanes: 3, Workers: 1}))
	w.waitFor("scale up", scenario.Ready(scenario.Size{ControlPlanes: 3, Workers: 1}))
	w.do("lose the quorum", scenario.LosePower(true, 2))
	r := w.fleetObject(fleetv1.ControlPlaneRecoveryKind, "recovery", map[string]any{"clusterName": cluster, "minimumLossSeconds": int64(0)})
	if err := w.Client.Create(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the members to be known", func(ctx context.Context) error { return w.confirmRecovery(ctx, r, cluster) })
	w.completes("the recovery", r)
}

// confirmRecovery confirms a recovery, if one of three members responds, and knows no leader.
func (w *world) confirmRecovery(ctx context.Context, r *unstructured.Unstructured, cluster string) error {
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
		return err
	}
	typed := &fleetv1.ControlPlaneRecovery{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object, typed); err != nil {
		return err
	}
	survivor, lost := "", []any{}
	for _, m := range typed.Status.Members {
		if !m.Reachable {
			lost = append(lost, m.Machine)
		} else if m.Leader == "" {
			survivor = m.Machine
		}
	}
	if survivor == "" || len(lost) != 2 {
		return fmt.Errorf("members %+v", typed.Status.Members)
	}
	spec := map[string]any{"survivor": survivor, "lostMachines": lost, "confirm": cluster + "/" + survivor}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	return w.Client.Patch(ctx, r, client.RawPatch(types.MergePatchType, patch))
}

// walkRestore restores the control plane of a Cluster from a backup.
func (w *world) walkRestore(backup *unstructured.Unstructured, cluster string) {
	w.t.Helper()
	revision, _, _ := unstructured.NestedInt64(backup.Object, "status", "etcd", "revision")
	restore := w.fleetObject(fleetv1.ControlPlaneRestoreKind, "restore", map[string]any{
		"clusterName": cluster, "backupName": backup.GetName(), "confirm": fmt.Sprintf("%s@%d", cluster, revision),
	})
	if err := w.Client.Create(w.t.Context(), restore); err != nil {
		w.t.Fatal(err)
	}
	w.completes("the restore", restore)
}

// rotate rotates the certificate authorities of a Cluster, and deletes the rotation.
func (w *world) rotate(cluster string) {
	w.t.Helper()
	rotation := w.fleetObject(fleetv1.CertificateAuthorityRotationKind, "all", map[string]any{"clusterName": cluster, "confirm": cluster})
	w.eventually("creating the rotation", func(ctx context.Context) error {
		return w.Client.Create(ctx, rotation.DeepCopyObject().(client.Object))
	})
	w.completes("the rotation", rotation)
	if err := w.Client.Delete(w.t.Context(), rotation); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the deletion of the rotation", func(ctx context.Context) error {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(rotation), rotation)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the rotation exists"), err)
	})
}

// completes waits until an operation has completed.
func (w *world) completes(what string, operation *unstructured.Unstructured) {
	w.t.Helper()
	w.eventually(what+" to complete", func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(operation), operation); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(operation.Object, "status", "phase"); phase != string(fleetv1.OperationPhaseCompleted) {
			return fmt.Errorf("status = %v", operation.Object["status"])
		}
		return nil
	})
}
