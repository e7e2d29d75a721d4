package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// part is the size of the ConfigMaps that fill an etcd, below the limit of API servers.
const part = 512 << 10

// backupOf prints what one backup of a cluster with a database of a size costs. The content is random, so that it compresses little.
func (w *world) backupOf(ctx context.Context, out io.Writer, mebibytes int, verification string) error {
	if _, err := w.measure(ctx, scenario{Clusters: 1, ControlPlanes: 1}, "b-"); err != nil {
		return err
	}
	name := w.clusters.named("b-")[0].GetName()
	if err := w.fill(ctx, name, mebibytes); err != nil {
		return err
	}
	member := w.component("infrastructure-in-memory").Running.PID()
	memberCPU := cpuOf(member)
	if _, err := w.backedUp(ctx, out, name, verification, func() error { return nil }); err != nil {
		return err
	}
	fmt.Fprintf(out, "in-memory provider: %.1f s of CPU\n", cpuOf(member)-memberCPU)
	return nil
}

// backup are the times of one.
type backup struct {
	began            time.Time
	stored, verified time.Duration
}

// backedUp backs a cluster up, prints what it costs the fleet manager, and calls onStored when the archive is stored.
func (w *world) backedUp(ctx context.Context, out io.Writer, cluster, verification string, onStored func() error) (backup, error) {
	if err := w.createStore(ctx); err != nil {
		return backup{}, err
	}
	fleet := w.fleet().Running.PID()
	cpu, memory, one := cpuOf(fleet), memoryOf(fleet), backup{began: time.Now()}
	b := w.fleetObject(fleetv1.EtcdBackupKind, map[string]any{
		"clusterName": cluster, "verification": verification, "storeRef": map[string]any{"name": backupsKey},
		"encryption": map[string]any{"identitySecretRef": map[string]any{"name": backupsKey}},
	})
	if err := w.Client.Create(ctx, b); err != nil {
		return backup{}, err
	}
	var failed error
	err := w.await(ctx, func() (string, bool) {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err.Error(), false
		}
		phase, _, _ := unstructured.NestedString(b.Object, "status", "phase")
		if phase == "Completed" && one.stored == 0 {
			one.stored = time.Since(one.began)
			failed = onStored()
		}
		if _, done, _ := unstructured.NestedString(b.Object, "status", "verified", "method"); done {
			one.verified = time.Since(one.began)
		}
		return "the backup is " + phase, one.verified > 0
	})
	if err := errors.Join(err, failed); err != nil {
		return backup{}, err
	}
	size, _, _ := unstructured.NestedInt64(b.Object, "status", "etcd", "sizeBytes")
	archive, _, _ := unstructured.NestedInt64(b.Object, "status", "archive", "sizeBytes")
	fmt.Fprintf(out, "database %d MiB, archive %d MiB: stored after %.1f s, verified by %s after %.1f s\n",
		size>>20, archive>>20, one.stored.Seconds(), verification, one.verified.Seconds())
	fmt.Fprintf(out, "fleet manager: %.1f s of CPU, memory %d MiB before, %d MiB at most\n", cpuOf(fleet)-cpu, memory, peakOf(fleet))
	return one, nil
}

// fill creates ConfigMaps in a workload cluster.
func (w *world) fill(ctx context.Context, cluster string, mebibytes int) error {
	workload, err := w.workload(ctx, cluster)
	if err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{})
	content := make([]byte, part*3/4)
	var errs []error
	for i := range mebibytes << 20 / part {
		_, _ = random.Read(content) // It never fails.
		errs = append(errs, workload.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("fill-%d", i)},
			Data:       map[string]string{"content": base64.StdEncoding.EncodeToString(content)},
		}))
	}
	return errors.Join(errs...)
}

// workload returns a client for a workload cluster, with the credentials of its kubeconfig.
func (w *world) workload(ctx context.Context, cluster string) (client.Client, error) {
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: cluster + "-kubeconfig"}, secret); err != nil {
		return nil, err
	}
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", "value")
	kubeconfig, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return client.New(config, client.Options{})
}
