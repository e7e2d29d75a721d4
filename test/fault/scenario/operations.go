package scenario

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// operationName is the name of the operation on a control plane.
const operationName = "operation"

// operations returns the scenarios of operations on control planes: a restore, a recovery, and a rotation of certificate authorities.
func operations() []Scenario {
	one, three := deployed(1, 1), deployed(3, 1)
	return []Scenario{{
		Name: "restore-1x1", Backups: true, Restores: true, Before: &one, Arrange: CreateBackupStore,
		Change: []Change{
			writeData("kept"), CreateBackups("kept"), ended("kept"), writeData("late"), CreateRestore("kept"),
			completed(fleetv1.ControlPlaneRestoreKind), hasData("kept", true), hasData("late", false),
		},
		Done: []Condition{Ready(one), verifiedBackups("kept")}, Discard: deleteBackedUp,
		Limits: Limits{MaxControlPlanes: 1, MaxWorkers: 1, MinWorkers: 1, NewControlPlanes: 1},
	}, {
		Name: "restore-3x1", Backups: true, Restores: true, Before: &three, Arrange: CreateBackupStore,
		Change: []Change{
			writeData("kept"), CreateBackups("kept"), ended("kept"), writeData("late"), CreateRestore("kept"),
			completed(fleetv1.ControlPlaneRestoreKind), hasData("kept", true), hasData("late", false),
		},
		Done: []Condition{Ready(three), verifiedBackups("kept")}, Discard: deleteBackedUp,
		Limits: Limits{MaxControlPlanes: 3, MaxWorkers: 1, MinWorkers: 1, NewControlPlanes: 3},
	}, {
		// Deleted when Machines were deleted: it goes on.
		Name: "restore-deleted-1x1", Backups: true, Restores: true, Before: &one, Arrange: CreateBackupStore,
		Change: []Change{
			writeData("kept"), CreateBackups("kept"), ended("kept"), writeData("late"), CreateRestore("kept"),
			begun(fleetv1.ControlPlaneRestoreKind, fleetv1.RestoreStepCreate), removed(fleetv1.ControlPlaneRestoreKind),
			hasData("kept", true), hasData("late", false),
		},
		Done: []Condition{Ready(one), verifiedBackups("kept")}, Discard: deleteBackedUp,
		Limits: Limits{MaxControlPlanes: 1, MaxWorkers: 1, MinWorkers: 1, NewControlPlanes: 1},
	}, {
		Name: "recover-3x1", Backups: true, Recovers: true, Before: &three,
		Change: []Change{
			writeData("kept"), LosePower(true, 2), CreateRecovery, ConfirmRecovery,
			completed(fleetv1.ControlPlaneRecoveryKind), hasData("kept", true),
		},
		Done: []Condition{Ready(three)}, Discard: deleteOperated,
		Limits: Limits{MaxControlPlanes: 3, MaxWorkers: 1, MinControlPlanes: 1, MinWorkers: 1, NewControlPlanes: 2},
	}, {
		Name: "rotate-authorities-1x1", Backups: true, Before: &one,
		Change: []Change{
			writeData("kept"), CreateRotation, completed(fleetv1.CertificateAuthorityRotationKind), hasData("kept", true),
			authoritiesRotated, oldKubeconfigRefused, nothingElseChanged,
		},
		Done: []Condition{Ready(one)}, Discard: deleteOperated,
		// Three steps, of which Reissue replaces the control plane twice.
		Limits: Limits{
			MaxControlPlanes: 2, MaxWorkers: 2, MinControlPlanes: 1, MinWorkers: 1, NewControlPlanes: 4, NewWorkers: 3,
		},
	}, {
		// Deleted when new keys are in use: it goes on.
		Name: "rotation-deleted-1x1", Backups: true, Before: &one,
		Change: []Change{
			writeData("kept"), CreateRotation, authoritiesRotated, removed(fleetv1.CertificateAuthorityRotationKind), hasData("kept", true),
			authoritiesRotated, oldKubeconfigRefused, nothingElseChanged,
		},
		Done: []Condition{Ready(one)}, Discard: deleteOperated,
		Limits: Limits{
			MaxControlPlanes: 2, MaxWorkers: 2, MinControlPlanes: 1, MinWorkers: 1, NewControlPlanes: 4, NewWorkers: 3,
		},
	}, {
		// Deleted before that: it goes back.
		Name: "rotation-withdrawn-1x1", Backups: true, Before: &one,
		Change: []Change{
			writeData("kept"), CreateRotation, begun(fleetv1.CertificateAuthorityRotationKind, fleetv1.TrustBothStep),
			removed(fleetv1.CertificateAuthorityRotationKind), hasData("kept", true), authoritiesKept, nothingElseChanged,
		},
		Done: []Condition{Ready(one)}, Discard: deleteOperated,
		Limits: Limits{
			MaxControlPlanes: 2, MaxWorkers: 2, MinControlPlanes: 1, MinWorkers: 1, NewControlPlanes: 1, NewWorkers: 1,
		},
	}}
}

// operation returns an operation on the control plane of the Cluster.
func operation(t Target, kind string, spec map[string]any) *unstructured.Unstructured {
	o := object(fleetAPI, kind, t.Namespace, operationName)
	o.Object["spec"] = spec
	return o
}

// completed fails, and is retried, until the operation has completed.
func completed(kind string) Change {
	return func(ctx context.Context, t Target) error {
		o := operation(t, kind, nil)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != string(fleetv1.OperationPhaseCompleted) {
			return fmt.Errorf("%s %s is %q: %s", kind, operationName, phase, Message(o, fleetv1.OperationCompletedCondition))
		}
		return nil
	}
}

// begun fails, and is retried, until a step of the operation has begun.
func begun(kind, name string) Change {
	return func(ctx context.Context, t Target) error {
		o := operation(t, kind, nil)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		steps, _, _ := unstructured.NestedSlice(o.Object, "status", "steps")
		for _, s := range steps {
			if one, _ := s.(map[string]any); one["name"] == name {
				return nil
			}
		}
		return fmt.Errorf("step %s of %s %s has not begun", name, kind, operationName)
	}
}

// removed deletes the operation, and is retried until it does not exist.
func removed(kind string) Change {
	return func(ctx context.Context, t Target) error {
		o := operation(t, kind, nil)
		if err := t.Client.Delete(ctx, o); err != nil {
			return client.IgnoreNotFound(err)
		}
		return fmt.Errorf("%s %s still exists", kind, operationName)
	}
}

// CreateRestore creates a ControlPlaneRestore of a backup, and confirms it.
func CreateRestore(backup string) Change {
	return func(ctx context.Context, t Target) error {
		b := object(fleetAPI, fleetv1.EtcdBackupKind, t.Namespace, backup)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		revision, _, _ := unstructured.NestedInt64(b.Object, "status", "etcd", "revision")
		if method, _, _ := unstructured.NestedString(b.Object, "status", "verified", "method"); method == "" {
			return fmt.Errorf("EtcdBackup %s is not verified: its revision may change", backup)
		}
		return ignoreExists(t.Client.Create(ctx, operation(t, fleetv1.ControlPlaneRestoreKind, map[string]any{
			"clusterName": ClusterName, "backupName": backup, "confirm": fmt.Sprintf("%s@%d", ClusterName, revision),
		})))
	}
}

// CreateRecovery creates a ControlPlaneRecovery, which asks the members of etcd for their state.
func CreateRecovery(ctx context.Context, t Target) error {
	return ignoreExists(t.Client.Create(ctx, operation(t, fleetv1.ControlPlaneRecoveryKind, map[string]any{
		"clusterName": ClusterName, "minimumLossSeconds": int64(0),
	})))
}

// ConfirmRecovery confirms the recovery from the one member that responds. It fails, and is retried, until that is known.
func ConfirmRecovery(ctx context.Context, t Target) error {
	o := operation(t, fleetv1.ControlPlaneRecoveryKind, nil)
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	recovery := &fleetv1.ControlPlaneRecovery{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, recovery); err != nil {
		return err
	}
	survivor, lost := "", []any{}
	for _, m := range recovery.Status.Members {
		if !m.Reachable {
			lost = append(lost, m.Machine)
		} else if m.Leader == "" {
			survivor = m.Machine
		}
	}
	if survivor == "" || len(lost) != 2 {
		return fmt.Errorf("the members are %+v, want one of three to respond, without a leader", recovery.Status.Members)
	}
	base := o.DeepCopy()
	for field, value := range map[string]any{"survivor": survivor, "lostMachines": lost, "confirm": ClusterName + "/" + survivor} {
		if err := unstructured.SetNestedField(o.Object, value, "spec", field); err != nil {
			return err
		}
	}
	return t.Client.Patch(ctx, o, client.MergeFrom(base))
}

// CreateRotation creates a CertificateAuthorityRotation of all authorities, and confirms it.
func CreateRotation(ctx context.Context, t Target) error {
	return ignoreExists(t.Client.Create(ctx, operation(t, fleetv1.CertificateAuthorityRotationKind, map[string]any{
		"clusterName": ClusterName, "confirm": ClusterName,
	})))
}

// authoritiesRotated fails unless all authorities have other certificates and keys than at the start.
func authoritiesRotated(ctx context.Context, t Target) error { return authorities(ctx, t, false) }

// authoritiesKept fails unless all authorities have the certificates and keys of the start.
func authoritiesKept(ctx context.Context, t Target) error { return authorities(ctx, t, true) }

func authorities(ctx context.Context, t Target, kept bool) error {
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
		now := object("v1", "Secret", t.Namespace, pki.SecretName(ClusterName, purpose))
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		for _, key := range []string{pki.CertificateKey, pki.PrivateKeyKey} {
			before, err := secretData(t.Start[history.Key{Kind: "Secret", Name: now.GetName()}], key)
			if err != nil {
				return err
			}
			after, err := secretData(now, key)
			if err != nil {
				return err
			}
			if slices.Equal(before, after) != kept {
				return fmt.Errorf("%s of Secret %s is that of the start: %t, want %t", key, now.GetName(), !kept, kept)
			}
		}
	}
	return nil
}

// oldKubeconfigRefused fails unless the API server accepts the current kubeconfig, and neither the kubeconfig of the start nor its
// client certificate.
func oldKubeconfigRefused(ctx context.Context, t Target) error {
	config, err := workloadConfig(ctx, t)
	if err != nil {
		return err
	}
	if err := reads(ctx, config); err != nil {
		return err
	}
	raw, err := secretData(t.Start[history.Key{Kind: "Secret", Name: pki.SecretName(ClusterName, pki.Kubeconfig)}], pki.KubeconfigKey)
	if err != nil {
		return err
	}
	old, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return err
	}
	if reads(ctx, old) == nil {
		return errors.New("the kubeconfig of the start is accepted")
	}
	old.CAData = config.CAData
	if reads(ctx, old) == nil {
		return errors.New("the client certificate of the kubeconfig of the start is accepted")
	}
	return nil
}

// nothingElseChanged fails unless what the Cluster consists of is what it was, except for the Machines and the time of their rollout.
func nothingElseChanged(ctx context.Context, t Target) error {
	return t.Until(ctx, func(now history.State) error {
		for _, kind := range []string{"Cluster", "InMemoryCluster", "KubeadmControlPlane", "MachineDeployment"} {
			for _, before := range t.Start.Of(kind) {
				after := now[history.Key{Kind: kind, Name: before.GetName()}]
				if after == nil || after.GetUID() != before.GetUID() {
					return fmt.Errorf("%s %s was deleted", kind, before.GetName())
				}
				if diff := cmp.Diff(specOf(before), specOf(after)); diff != "" {
					return fmt.Errorf("the spec of %s %s has changed (-before +after):\n%s", kind, before.GetName(), diff)
				}
			}
		}
		return nil
	})
}

// specOf returns a spec without the time of a rollout.
func specOf(o *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	delete(spec, "rolloutAfter")
	return spec
}

// writeData creates a ConfigMap in the workload cluster.
func writeData(name string) Change {
	return func(ctx context.Context, t Target) error {
		workload, err := workloadClient(ctx, t)
		if err != nil {
			return err
		}
		return ignoreExists(workload.Create(ctx, object("v1", "ConfigMap", "default", name)))
	}
}

// hasData fails, and is retried, until the workload cluster has a ConfigMap, or responds that it does not have it.
func hasData(name string, want bool) Change {
	return func(ctx context.Context, t Target) error {
		workload, err := workloadClient(ctx, t)
		if err != nil {
			return err
		}
		o := object("v1", "ConfigMap", "default", name)
		err = workload.Get(ctx, client.ObjectKeyFromObject(o), o)
		if client.IgnoreNotFound(err) == nil && (err == nil) != want {
			return fmt.Errorf("ConfigMap %s exists: %v, want %v", name, err == nil, want)
		}
		return client.IgnoreNotFound(err)
	}
}

// workloadTimeout is the timeout of a request to the workload cluster.
const workloadTimeout = 5 * time.Second

// workloadConfig returns the configuration of the current kubeconfig.
func workloadConfig(ctx context.Context, t Target) (*rest.Config, error) {
	secret := object("v1", "Secret", t.Namespace, pki.SecretName(ClusterName, pki.Kubeconfig))
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return nil, err
	}
	raw, err := secretData(secret, pki.KubeconfigKey)
	if err != nil {
		return nil, err
	}
	return clientcmd.RESTConfigFromKubeConfig(raw)
}

func workloadClient(ctx context.Context, t Target) (client.Client, error) {
	config, err := workloadConfig(ctx, t)
	if err != nil {
		return nil, err
	}
	config.Timeout = workloadTimeout
	return client.New(config, client.Options{})
}

// reads reads from the workload cluster, over a new connection.
func reads(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout, config.Dial = workloadTimeout, (&net.Dialer{}).DialContext // client-go keeps connections by configuration.
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer connection.CloseIdleConnections()
	workload, err := kubernetes.NewForConfigAndClient(config, connection)
	if err != nil {
		return err
	}
	_, err = workload.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	return err
}

// secretData returns a value of a Secret, which may be nil.
func secretData(secret *unstructured.Unstructured, key string) ([]byte, error) {
	if secret == nil {
		return nil, errors.New("the Secret does not exist")
	}
	text, _, _ := unstructured.NestedString(secret.Object, "data", key)
	return base64.StdEncoding.DecodeString(text)
}

// deleteOperated deletes the Cluster and the operation on it.
func deleteOperated(ctx context.Context, t Target) error {
	for _, kind := range []string{
		fleetv1.ControlPlaneRestoreKind, fleetv1.ControlPlaneRecoveryKind, fleetv1.CertificateAuthorityRotationKind,
	} {
		if err := client.IgnoreNotFound(t.Client.Delete(ctx, operation(t, kind, nil))); err != nil {
			return err
		}
	}
	return Delete(ctx, t)
}
