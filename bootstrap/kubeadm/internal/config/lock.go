package config

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/ownership"
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

// locks makes sure that one Machine initializes a control plane: the ConfigMap <cluster>-lock names it.
type locks struct {
	mu       sync.Mutex
	released map[types.UID]bool
}

func lockName(cluster *clusterv1.Cluster) string { return cluster.Name + "-lock" }

// acquire takes the lock for a Machine, or reports who holds it. A holder that does not exist any more
// loses the lock; the caller comes back for it.
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
	if err := c.Create(ctx, lock); !apierrors.IsAlreadyExists(err) {
		return machine, err
	}
	// A new object: what is read into the one above would be merged with what it asked for.
	wanted := client.ObjectKeyFromObject(lock)
	lock = &corev1.ConfigMap{}
	if err := live.Get(ctx, wanted, lock); err != nil {
		return "", fmt.Errorf("reading the init lock %s: %w", wanted.Name, err)
	}
	var held holder
	if err := json.Unmarshal([]byte(lock.Data[lockKey]), &held); err != nil {
		return "", fmt.Errorf("the init lock %s/%s is damaged, key %q: %w; delete it if no control plane is being initialized",
			lock.Namespace, lock.Name, lockKey, err)
	}
	if held.MachineName == machine {
		return machine, nil
	}
	err = live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: held.MachineName}, &clusterv1.Machine{})
	if apierrors.IsNotFound(err) {
		precondition := client.Preconditions{UID: ptr.To(lock.UID)}
		return held.MachineName, client.IgnoreNotFound(c.Delete(ctx, lock, precondition))
	}
	return held.MachineName, err
}

// release frees the lock of a cluster whose control plane has been initialized, once per process.
func (l *locks) release(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, now time.Time) error {
	initialized := condition.Get(cluster, clusterv1.ControlPlaneInitializedCondition)
	if initialized == nil || now.Sub(initialized.LastTransitionTime.Time) > releaseWindow || !l.firstRelease(cluster.UID) {
		return nil
	}
	lock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: lockName(cluster)}}
	if err := c.Delete(ctx, lock); client.IgnoreNotFound(err) != nil {
		l.forget(cluster.UID)
		return fmt.Errorf("releasing the init lock %s: %w", lock.Name, err)
	}
	return nil
}

func (l *locks) firstRelease(cluster types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released[cluster] {
		return false
	}
	if l.released == nil {
		l.released = map[types.UID]bool{}
	}
	l.released[cluster] = true
	return true
}

func (l *locks) forget(cluster types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.released, cluster)
}
