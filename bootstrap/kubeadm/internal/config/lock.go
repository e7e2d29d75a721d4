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

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/ownership"
)

const (
	lockKey = "lock-information"
	// releaseWindow is how long after a control plane was initialized its lock is still looked for. A lock
	// that outlives it does no harm: its holder either is gone, which frees it, or has long initialized.
	releaseWindow = 10 * time.Minute
)

// holder is what a lock says of who holds it.
type holder struct {
	MachineName string `json:"machineName"`
}

// locks makes sure that one Machine initializes a control plane: the ConfigMap <cluster>-lock names it. The lock is
// always read live, and only the very object that was read is deleted, or the one that this process made. Holding it is not enough: it is released once
// the control plane is initialized, so whoever takes it has to look at the Cluster afterwards.
type locks struct {
	mu sync.Mutex
	// released has, by the UID of Clusters, when their locks were released.
	released map[types.UID]time.Time
	// taken are the locks that this process made, by the UID of Clusters. Forgetting one costs a read.
	taken map[types.UID]*corev1.ConfigMap
}

// takenLimit is how many locks are remembered. Each is for as long as a control plane takes to be initialized.
const takenLimit = 1024

func lockName(cluster *clusterv1.Cluster) string { return cluster.Name + "-lock" }

// acquire takes the lock for a Machine, or reports who holds it: nobody, if it was just freed. A holder that does not
// exist any more loses the lock, and so does a Cluster that this one replaced; the caller comes back for it.
func (l *locks) acquire(ctx context.Context, live client.Reader, c client.Client, cluster *clusterv1.Cluster, machine string) (heldBy string, err error) {
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
	err = c.Create(ctx, lock)
	if err == nil {
		l.took(cluster.UID, lock)
	}
	if !apierrors.IsAlreadyExists(err) {
		return machine, err
	}
	lock, err = readLock(ctx, live, cluster)
	if err != nil || lock == nil {
		return "", err
	}
	var held holder
	if err := json.Unmarshal([]byte(lock.Data[lockKey]), &held); err != nil {
		return "", fmt.Errorf("the init lock %s/%s is damaged, key %q: %w; delete it if no control plane is being initialized",
			lock.Namespace, lock.Name, lockKey, err)
	}
	if !guards(lock, cluster) {
		return "", replace(ctx, live, c, cluster, lock)
	}
	if held.MachineName == machine {
		return machine, nil
	}
	other := &clusterv1.Machine{}
	err = live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: held.MachineName}, other)
	if apierrors.IsNotFound(err) || err == nil && other.Spec.ClusterName != cluster.Name {
		return held.MachineName, remove(ctx, c, lock)
	}
	return held.MachineName, err
}

// readLock is the lock of a Cluster's name; nil when there is none.
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

// guards reports whether a lock is this Cluster's, and not that of another one that has, or had, its name. A lock
// without a Cluster as owner is.
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

// replace deletes the lock of a Cluster that is gone, which the garbage collector is about to do at any moment: who
// relied on it could lose it in the midst of initializing. If our own copy of the Cluster is the old one, it does nothing.
func replace(ctx context.Context, live client.Reader, c client.Client, cluster *clusterv1.Cluster, lock *corev1.ConfigMap) error {
	now := &clusterv1.Cluster{}
	if err := live.Get(ctx, client.ObjectKeyFromObject(cluster), now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID != cluster.UID {
		return nil
	}
	return remove(ctx, c, lock)
}

// remove deletes a lock as it was read. That somebody else was faster is fine.
func remove(ctx context.Context, c client.Client, lock *corev1.ConfigMap) error {
	err := c.Delete(ctx, lock, client.Preconditions{UID: &lock.UID, ResourceVersion: &lock.ResourceVersion})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// release frees the lock of a cluster whose control plane has been initialized, once per process.
func (l *locks) release(ctx context.Context, live client.Reader, c client.Client, cluster *clusterv1.Cluster, now time.Time) error {
	initialized := condition.Get(cluster, clusterv1.ControlPlaneInitializedCondition)
	if initialized == nil || now.Sub(initialized.LastTransitionTime.Time) > releaseWindow || !l.firstRelease(cluster.UID, now) {
		return nil
	}
	if err := l.drop(ctx, live, c, cluster); err != nil {
		l.forget(cluster.UID)
		return fmt.Errorf("releasing the init lock %s: %w", lockName(cluster), err)
	}
	return nil
}

// drop deletes the lock of a cluster, if it has one. The one that this process made needs no reading, unless somebody wrote
// it since: deleting it is tied to its version.
func (l *locks) drop(ctx context.Context, live client.Reader, c client.Client, cluster *clusterv1.Cluster) error {
	if lock := l.tookBack(cluster.UID); lock != nil {
		err := c.Delete(ctx, lock, client.Preconditions{UID: &lock.UID, ResourceVersion: &lock.ResourceVersion})
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	lock, err := readLock(ctx, live, cluster)
	if err != nil || lock == nil || !guards(lock, cluster) {
		return err
	}
	return remove(ctx, c, lock)
}

// took remembers a lock that this process made.
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

// tookBack is the lock that this process made, once; nil if it is not known.
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
	// After releaseWindow nobody asks any more.
	maps.DeleteFunc(l.released, func(_ types.UID, at time.Time) bool { return now.Sub(at) > releaseWindow })
	l.released[cluster] = now
	return true
}

func (l *locks) forget(cluster types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.released, cluster)
}
