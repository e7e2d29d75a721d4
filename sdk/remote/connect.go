package remote

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// Start watches kubeconfigs until the context ends, and then closes all connections permanently. Connections are also established
// before Start, because a manager starts it and the controllers in no particular order. It
// implements manager.Runnable.
func (c *Clusters) Start(ctx context.Context) error {
	handlers := toolscache.ResourceEventHandlerFuncs{
		// The Secret of an Add may have been used already: the handler may be registered after the first connections.
		AddFunc:    c.secretWritten,
		UpdateFunc: func(_, after any) { c.secretWritten(after) },
		DeleteFunc: c.secretGone,
	}
	if err := c.handle(ctx, &corev1.Secret{}, handlers); err != nil {
		return fmt.Errorf("watching kubeconfig Secrets: %w", err)
	}
	if err := c.handle(ctx, &clusterv1.Cluster{}, toolscache.ResourceEventHandlerFuncs{DeleteFunc: c.clusterGone}); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	<-ctx.Done()
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.clusters {
		c.drop(key)
	}
	return nil
}

func (c *Clusters) handle(ctx context.Context, kind client.Object, handlers toolscache.ResourceEventHandler) error {
	informer, err := c.options.Secrets.GetInformer(ctx, kind)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(handlers)
	return err
}

// secretWritten closes the connection if the kubeconfig has changed, and notifies all controllers, so that those that
// need the cluster call Get. It also notifies them of the first kubeconfig if Get was called before.
func (c *Clusters) secretWritten(obj any) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return
	}
	if key, ok := clusterOf(secret); ok && c.outdated(key, secret.Data[pki.KubeconfigKey]) {
		c.notify(key)
	}
}

// outdated drops the connection to a cluster if it has another kubeconfig than this one, and reports whether
// Get would return another result than before.
func (c *Clusters) outdated(key types.NamespacedName, kubeconfig []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.clusters[key]
	if conn == nil {
		_, asked := c.away[key]
		return asked
	}
	if bytes.Equal(conn.kubeconfig, kubeconfig) {
		return false
	}
	c.drop(key)
	return true
}

// secretGone closes the connection whose kubeconfig was deleted: the Cluster is deleted or was moved, and Get may never be
// called for it again.
func (c *Clusters) secretGone(obj any) {
	secret, ok := deleted(obj).(*corev1.Secret)
	if !ok {
		return
	}
	if key, ok := clusterOf(secret); ok {
		c.Forget(key)
	}
}

// clusterGone forgets a deleted Cluster. If it never had a kubeconfig, there is no Secret whose deletion would do that, and a later
// Cluster of the same name would have been disconnected since before its creation.
func (c *Clusters) clusterGone(obj any) {
	if cluster, ok := deleted(obj).(*clusterv1.Cluster); ok {
		c.Forget(client.ObjectKeyFromObject(cluster))
	}
}

// deleted returns the object of a deletion.
func deleted(obj any) any {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return obj
}

// clusterOf returns the cluster whose kubeconfig a Secret contains.
func clusterOf(secret *corev1.Secret) (types.NamespacedName, bool) {
	key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Labels[clusterv1.ClusterNameLabel]}
	return key, pki.SecretKey(key, pki.Kubeconfig) == client.ObjectKeyFromObject(secret)
}

// connect starts connecting in the background. The caller must hold the lock.
func (c *Clusters) connect(key types.NamespacedName, secret *corev1.Secret) *connection {
	ctx, cancel := context.WithCancel(c.ctx)
	conn := &connection{kubeconfig: secret.Data[pki.KubeconfigKey], cancel: cancel}
	c.clusters[key] = conn
	go c.keepConnected(ctx, key, conn)
	return conn
}

// keepConnected connects, waits until the connection is lost, and reconnects, until the connection is dropped or its
// kubeconfig is deleted. The backoff is only reset after a connection that lasted for a while: one that fails
// immediately counts as a failure.
func (c *Clusters) keepConnected(ctx context.Context, key types.NamespacedName, conn *connection) {
	log := ctrl.Log.WithName("remote").WithValues("Cluster", key)
	delay := firstRetry
	for ctx.Err() == nil {
		since := c.options.Clock.Now()
		connected, err := c.once(ctx, key, conn)
		log.V(2).Info("Not connected to the workload cluster", "reason", fmt.Sprint(Tidy(err)))
		if connected && c.options.Clock.Since(since) >= lastRetry {
			delay = firstRetry
		}
		pause := delay
		if IsRejected(err) {
			log.Info("Not connecting to the workload cluster until its kubeconfig or the cluster changes", "reason", Tidy(err).Error())
			pause = rejectedRetry
		}
		select {
		case <-ctx.Done():
		case <-c.options.Clock.After(pause):
		}
		delay = min(delay*2, lastRetry)
		if apierrors.IsNotFound(c.options.Secrets.Get(ctx, pki.SecretKey(key, pki.Kubeconfig), &corev1.Secret{})) {
			c.abandon(key, conn)
		}
	}
}

// once connects and waits until the connection is lost. It returns whether there was a connection, and why it ended.
func (c *Clusters) once(ctx context.Context, key types.NamespacedName, conn *connection) (connected bool, reason error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reason = func() (err error) {
		defer failsafe.Recover("connecting to a workload cluster", &err)
		cluster, err := dial(ctx, conn.kubeconfig, c.options)
		if err != nil {
			return err
		}
		connected = true
		_ = c.record(key, conn, cluster, nil) // The previous error is irrelevant now.
		ctrl.Log.WithName("remote").V(2).Info("Connected to the workload cluster", "Cluster", key)
		c.connected(key, cluster)
		return cluster.wait()
	}()
	before := c.record(key, conn, nil, Tidy(reason))
	// Rejections are reported in conditions; other failures are not, until the next call of Get.
	if connected || IsRejected(reason) && !IsRejected(before) {
		c.notify(key)
	}
	return connected, reason
}

// abandon drops a connection, unless it was replaced by another one.
func (c *Clusters) abandon(key types.NamespacedName, conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters[key] == conn {
		c.drop(key)
	}
}

// record records a connection, or the error, and returns the previous error.
func (c *Clusters) record(key types.NamespacedName, conn *connection, cluster *Cluster, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, lost := conn.lastError, conn.cluster != nil && cluster == nil
	if lost && !IsRejected(err) {
		err = nil // It is being re-established, and that has not failed yet.
	}
	if c.clusters[key] == conn {
		c.count(key, conn.cluster, cluster != nil)
	}
	conn.cluster, conn.lastError = cluster, err
	switch {
	case c.clusters[key] != conn:
	case lost:
		c.away[key] = c.options.Clock.Now()
	case cluster != nil:
		delete(c.away, key)
	}
	return before
}
