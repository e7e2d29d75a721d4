package config

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	lockKey = "lock-information"
	// releaseWindow is how long after a control plane was initialized its lock is released. A lock
	// that is left over later is harmless: its holder either does not exist, which releases it, or has initialized the control plane.
	releaseWindow = 10 * time.Minute
)

// holder is the content of a lock.
type holder struct {
	MachineName string `json:"machineName"`
}

// locks ensures that only one Machine initializes a control plane, the one in the ConfigMap <cluster>-lock. The lock is
// always read live, and only deleted as it was read, or as this process created it. Holding it does not suffice: it is released once
// the control plane is initialized, so the Cluster must be read after the lock was taken.
type locks struct {
	mu sync.Mutex
	// released are the times when locks were released, by the UID of Clusters.
	released map[types.UID]time.Time
	// taken are the locks that this process created, by the UID of Clusters. Forgetting one costs a read.
	taken map[types.UID]*corev1.ConfigMap
}

// takenLimit is the number of locks that are remembered. Each is needed until a control plane is initialized.
const takenLimit = 1024

func lockName(cluster *clusterv1.Cluster) string { return cluster.Name + "-lock" }

// acquire takes the lock for a Machine, or returns its holder; empty if it was just released. A holder that no longer
// exists loses the lock, and so does a Cluster that was replaced by this one; the caller must retry.
func (l *locks) acquire(ctx context.Context, clients step.Clients, cluster *clusterv1.Cluster, machine string) (heldBy string, err error) {
	information, err := json.Marshal(holder{machine})
	if err != nil {
		return "", err
	}
	lock := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: lockName(cluster),
			Labels: map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{
				ownership.Reference(cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false),
			},
		},
		Data: map[string]string{lockKey: string(information)},
	}
	err = clients.CreateIn(ctx, nil, lock)
	if err == nil {
		l.took(cluster.UID, lock)
		return machine, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating the init lock %s: %w", lock.Name, err)
	}
	lock, err = readLock(ctx, clients.Live, cluster)
	if err != nil || lock == nil {
		return "", err
	}
	var held holder
	if err := json.Unmarshal([]byte(lock.Data[lockKey]), &held); err != nil {
		return "", fmt.Errorf("the init lock %s/%s is invalid, key %q: %w; delete it if no control plane is being initialized",
			lock.Namespace, lock.Name, lockKey, err)
	}
	if !guards(lock, cluster) {
		return "", replace(ctx, clients, cluster, lock)
	}
	if held.MachineName == machine {
		return machine, nil
	}
	other := &clusterv1.Machine{}
	err = clients.Live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: held.MachineName}, other)
	if apierrors.IsNotFound(err) || err == nil && other.Spec.ClusterName != cluster.Name {
		return held.MachineName, remove(ctx, clients, lock)
	}
	return held.MachineName, err
}

// readLock returns the lock with a Cluster's name; nil if it does not exist.
func readLock(ctx context.Context, live client.Reader, cluster *clusterv1.Cluster) (*corev1.ConfigMap, error) {
	lock := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: lockName(cluster)}
	if err := live.Get(ctx, key, lock); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the init lock %s: %w", key.Name, err)
	}
	return lock, nil
}

// guards reports whether a lock belongs to this Cluster, and not to another one of the same name. A lock
// without a Cluster as owner does.
func guards(lock *corev1.ConfigMap, cluster *clusterv1.Cluster) bool {
	others := false
	for _, owner := range lock.OwnerReferences {
		if owner.UID == cluster.UID {
			return true
		}
		others = others || owner.Kind == clusterv1.ClusterKind
	}
	return !others
}

// replace deletes the lock of a deleted Cluster, which the garbage collector may do at any time: its holder
// could lose it during initialization. If our own copy of the Cluster is the deleted one, it does nothing.
func replace(ctx context.Context, clients step.Clients, cluster *clusterv1.Cluster, lock *corev1.ConfigMap) error {
	now := &clusterv1.Cluster{}
	if err := clients.Live.Get(ctx, client.ObjectKeyFromObject(cluster), now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID != cluster.UID {
		return nil
	}
	return remove(ctx, clients, lock)
}

// remove deletes a lock as it was read. If it was written since, the error is stale.
func remove(ctx context.Context, clients step.Clients, lock *corev1.ConfigMap) error {
	if err := clients.Delete(ctx, lock); err != nil {
		return fmt.Errorf("deleting the init lock %s: %w", lock.Name, err)
	}
	return nil
}

// release releases the lock of a cluster whose control plane has been initialized, once per process.
func (l *locks) release(ctx context.Context, clients step.Clients, cluster *clusterv1.Cluster) error {
	now := clients.Clock.Now()
	initialized := condition.Get(cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition)
	if initialized == nil || now.Sub(initialized.LastTransitionTime.Time) > releaseWindow || !l.firstRelease(cluster.UID, now) {
		return nil
	}
	if err := l.drop(ctx, clients, cluster); err != nil {
		l.forget(cluster.UID)
		return err
	}
	return nil
}

// drop deletes the lock of a cluster, if it has one. The one that this process created is not read, unless it was written
// since: the deletion requires its resource version.
func (l *locks) drop(ctx context.Context, clients step.Clients, cluster *clusterv1.Cluster) error {
	if lock := l.tookBack(cluster.UID); lock != nil {
		if err := remove(ctx, clients, lock); !apierrors.IsConflict(err) {
			return err
		}
	}
	lock, err := readLock(ctx, clients.Live, cluster)
	if err != nil || lock == nil || !guards(lock, cluster) {
		return err
	}
	return remove(ctx, clients, lock)
}

// took remembers a lock that this process created.
func (l *locks) took(cluster types.UID, lock *corev1.ConfigMap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken == nil || len(l.taken) >= takenLimit {
		l.taken = map[types.UID]*corev1.ConfigMap{}
	}
	l.taken[cluster] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: lock.Namespace, Name: lock.Name, UID: lock.UID, ResourceVersion: lock.ResourceVersion,
	}}
}

// tookBack returns the lock that this process created and forgets it; nil if it is unknown.
func (l *locks) tookBack(cluster types.UID) *corev1.ConfigMap {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock := l.taken[cluster]
	delete(l.taken, cluster)
	return lock
}

func (l *locks) firstRelease(cluster types.UID, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.released[cluster]; ok {
		return false
	}
	if l.released == nil {
		l.released = map[types.UID]time.Time{}
	}
	// After releaseWindow, release no longer checks it.
	maps.DeleteFunc(l.released, func(_ types.UID, at time.Time) bool { return now.Sub(at) > releaseWindow })
	l.released[cluster] = now
	return true
}

func (l *locks) forget(cluster types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.released, cluster)
}
